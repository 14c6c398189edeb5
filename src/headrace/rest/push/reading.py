"""A consumer that reads for streams: its thread, its start, and its commits.

It is asked for records only when somebody takes them, and librdkafka fetches only a little ahead,
so who reads slowly is read for slowly.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import ParamSpec, TypeVar

from confluent_kafka import KafkaException, TopicPartition

from headrace.client.async_thread import SLICE_S, ClientThread
from headrace.client.consumer import CommitFailed, Consumer
from headrace.client.librdkafka import raised
from headrace.client.rebalancing import RebalanceListener
from headrace.errors import HeadraceError, UnknownTopicOrPartition
from headrace.rest.errors import no_answer, partition_not_found, topic_not_found
from headrace.rest.push.entries import Entry, message_size
from headrace.rest.push.requested import Start, StreamRequest

P = ParamSpec("P")
T = TypeVar("T")

_log = logging.getLogger(__name__)

_PROPERTIES = {
    "client.id": "headrace-rest-push",
    "enable.auto.commit": "false",
    "max.poll.records": "200",
    "queued.max.messages.kbytes": "1024",
}

Place = tuple[str, int]
"""A topic and a partition."""


class Reader:
    """One consumer. Its calls follow each other in its thread; each has an end."""

    def __init__(self, properties: Mapping[str, str], timeout_s: float) -> None:
        self._consumer = Consumer(
            {
                **_PROPERTIES,
                **properties,
                "enable.auto.commit": "false",
                "default.api.timeout.ms": str(int(timeout_s * 1000)),
            }
        )
        self._timeout_s = timeout_s
        self._thread = ClientThread("headrace-rest-push")
        self._to_commit: dict[Place, int] = {}

    async def begin(self, request: StreamRequest) -> dict[int, int]:
        """Read partitions from where a client wants it; the result is where that is."""
        return await self._run(self._begin, request)

    async def go_on(self, topic: str, positions: Mapping[int, int]) -> None:
        """Read partitions from known offsets."""
        await self._run(self._assign, topic, dict(positions))

    async def join(self, topics: Sequence[str]) -> None:
        """Read as a member of the group; topics that are missing are told at once."""
        await self._run(self._join, list(topics))

    async def ends(self, topic: str, partitions: Sequence[int]) -> dict[int, int]:
        """The offsets after the last records."""
        return await self._run(self._ends, topic, partitions)

    async def partitions_of(self, topic: str) -> list[int]:
        return await self._run(self._partitions_of, topic)

    async def read(self, timeout_s: float, bytes_max: int | None = None) -> list[Entry]:
        """The next records, or none within the time; what is too much at once comes later."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        while True:
            left_s = max(0.0, deadline - loop.time())
            found = await self._run(self._read, min(left_s, SLICE_S), bytes_max)
            if found or loop.time() >= deadline:
                return found

    def note(self, topic: str, partition: int, next_offset: int) -> None:
        """A record before this offset is done with; the next commit says so."""
        place = (topic, partition)
        self._to_commit[place] = max(next_offset, self._to_commit.get(place, 0))

    @property
    def has_to_commit(self) -> bool:
        return bool(self._to_commit)

    async def commit(self) -> None:
        """Tell the group what is done with, in the partitions that are still this member's."""
        await self._run(self._commit)

    async def lag(self) -> int:
        """How many records the group has not done with, in this member's partitions."""
        return await self._run(self._lag)

    async def stay(self) -> None:
        """Stay a member of the group without reading on, until `resume`."""
        await self._run(self._stay)

    async def resume(self) -> None:
        await self._run(self._consumer.resume)

    async def close(self) -> None:
        """Commit what is done with and leave; a broker that is away ends it, too."""
        try:
            if self._to_commit:
                await self._run(self._commit)
        except HeadraceError as error:
            _log.warning("the last commit of a stream failed, records will come again: %s", error)
        try:
            await self._run(self._consumer.close_after_error)
        except HeadraceError as error:
            _log.warning("a stream's consumer did not end well: %s", error)
        finally:
            self._thread.close()

    def _begin(self, request: StreamRequest) -> dict[int, int]:
        known = self._partitions_of(request.topic)
        wanted = list(request.partitions) if request.partitions is not None else known
        if not set(known).issuperset({*wanted, *request.offsets}):
            raise partition_not_found()
        others = [one for one in wanted if one not in request.offsets]
        found = {**self._starts(request, others), **request.offsets}
        self._assign(request.topic, found)
        return found

    def _starts(self, request: StreamRequest, partitions: Sequence[int]) -> dict[int, int]:
        if request.start is Start.TIME:
            places = [TopicPartition(request.topic, one) for one in partitions]
            found = {
                one.partition: one.offset
                for one in self._consumer.offsets_for_time(request.timestamp_ms, places)
            }
            late = [one for one, offset in found.items() if offset < 0]
            return found | self._ends(request.topic, late)
        if request.start is Start.LATEST:
            return self._ends(request.topic, partitions)
        return {one: self._bounds(request.topic, one)[0] for one in partitions}

    def _ends(self, topic: str, partitions: Sequence[int]) -> dict[int, int]:
        return {one: self._bounds(topic, one)[1] for one in partitions}

    def _bounds(self, topic: str, partition: int) -> tuple[int, int]:
        return self._consumer.bounds(TopicPartition(topic, partition))

    def _assign(self, topic: str, positions: Mapping[int, int]) -> None:
        places = [TopicPartition(topic, one, offset) for one, offset in positions.items()]
        self._consumer.assign(places)

    def _join(self, topics: list[str]) -> None:
        for topic in topics:
            self._partitions_of(topic)
        self._consumer.subscribe(topics, _CommitsFirst(self))

    def _partitions_of(self, topic: str) -> list[int]:
        try:
            return [one.partition for one in self._consumer.partitions_of(topic)]
        except UnknownTopicOrPartition:
            raise topic_not_found() from None

    def _read(self, timeout_s: float, bytes_max: int | None) -> list[Entry]:
        if not self._consumer.fetch(timeout_s):
            return []
        if bytes_max is None:
            return [Entry(one) for one in self._consumer.hand_out()]
        return [Entry(one) for one in self._consumer.hand_out_within(bytes_max, message_size)]

    def _commit(self) -> None:
        owned = {(one.topic, one.partition) for one in self._consumer.assignment()}
        taken, self._to_commit = self._to_commit, {}
        wanted = [TopicPartition(*one, offset) for one, offset in taken.items() if one in owned]
        try:
            self._consumer.commit(wanted)
        except CommitFailed as error:
            # The next owners read on from the last commit, so these records come once more.
            _log.info("a stream was too late with a commit: %s", error)
        except HeadraceError:
            for place, offset in taken.items():
                self.note(*place, offset)
            raise

    def _stay(self) -> None:
        self._consumer.pause()
        self._consumer.fetch(0)

    def _lag(self) -> int:
        owned = self._consumer.assignment()
        total = 0
        for one in self._consumer.committed(owned):
            low, high = self._bounds(one.topic, one.partition)
            total += max(0, high - max(low, one.offset))
        return total

    async def _run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            # A start asks several things, each of which has its own end.
            async with asyncio.timeout(self._timeout_s * 2):
                return await self._thread.run(call, *args, **kwargs)
        except KafkaException as error:
            raise raised(error) from None
        except TimeoutError as error:
            raise no_answer(f"it took too long: {error}") from error


class _CommitsFirst(RebalanceListener):
    """Commits before partitions go, so that their next owners repeat as little as possible."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def on_partitions_revoked(
        self, consumer: Consumer, partitions: Sequence[TopicPartition]
    ) -> None:
        try:
            self._reader._commit()
        except HeadraceError as error:
            _log.info("partitions went before a commit: %s", error)

    def on_partitions_lost(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        """They are another member's already; their commits are not ours any more."""
