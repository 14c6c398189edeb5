"""The consumer of a stream: its thread, its start, and its commits.

Records are read only when a client takes them, and librdkafka prefetches little. So a slow client
slows down its own stream.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from confluent_kafka import TopicPartition

from headrace.client.async_consumer import AsyncConsumer
from headrace.client.async_thread import Awaited
from headrace.client.consumer import CommitFailed, Consumer, RebalanceListener
from headrace.errors import HeadraceError, UnknownTopicOrPartition
from headrace.rest.errors import partition_not_found, topic_not_found
from headrace.rest.push.entries import Entry, message_size
from headrace.rest.push.requested import Start, StreamRequest

T = TypeVar("T")

_log = logging.getLogger(__name__)

_PROPERTIES = {
    "client.id": "headrace-rest-push",
    "chunk.memory": "0",  # Chunks are pushed as they are.
    "enable.auto.commit": "false",
    "max.poll.records": "200",
    "queued.max.messages.kbytes": "1024",
}

Place = tuple[str, int]
"""A topic and a partition."""


class Reader:
    """A consumer whose calls run in its thread, with the offsets to commit."""

    def __init__(self, properties: Mapping[str, str], timeout_s: float) -> None:
        self._async = AsyncConsumer(
            {
                **_PROPERTIES,
                **properties,
                "enable.auto.commit": "false",
                "default.api.timeout.ms": str(int(timeout_s * 1000)),
            },
            # A start makes several requests, each with its own time limit.
            call_timeout_s=timeout_s * 2,
        )
        self._consumer = self._async.plain
        self._to_commit: dict[Place, int] = {}
        self._is_held = False

    async def start_at(self, topic: str, positions: Mapping[int, int]) -> None:
        """Start reading partitions at offsets."""
        await self.call(lambda _: self._assign(topic, dict(positions)))

    async def read(self, timeout_s: float, bytes_max: int | None = None) -> list[Entry]:
        """Return the next records up to a size, or none after the timeout."""
        if self._is_held:
            await self._async.resume()
            self._is_held = False
        await self._async.fetch(timeout_s)
        if bytes_max is None:
            return [Entry(one) for one in self._consumer.hand_out()]
        return [Entry(one) for one in self._consumer.hand_out_within(bytes_max, message_size)]

    def note(self, topic: str, partition: int, next_offset: int) -> None:
        """Note an offset for the next commit."""
        place = (topic, partition)
        self._to_commit[place] = max(next_offset, self._to_commit.get(place, 0))

    @property
    def has_to_commit(self) -> bool:
        return bool(self._to_commit)

    async def close(self) -> None:
        """Commit the noted offsets and leave the group, also if no broker answers."""
        try:
            if self._to_commit:
                await self.commit()
        except HeadraceError as error:
            _log.warning(
                "last commit of a stream failed, records will be delivered again",
                extra={"error": str(error)},
            )
        try:
            await self._async.close_after_error()
        except HeadraceError as error:
            _log.warning("consumer of a stream not closed", extra={"error": str(error)})

    def _begin(self, request: StreamRequest) -> dict[int, int]:
        """Start reading as requested; return the start offsets."""
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
        """Return the end offsets of partitions."""
        return {one: self._bounds(topic, one)[1] for one in partitions}

    def _bounds(self, topic: str, partition: int) -> tuple[int, int]:
        return self._consumer.bounds(TopicPartition(topic, partition))

    def _assign(self, topic: str, positions: Mapping[int, int]) -> None:
        places = [TopicPartition(topic, one, offset) for one, offset in positions.items()]
        self._consumer.assign(places)

    def _join(self, topics: Sequence[str]) -> None:
        """Join the group, or raise an error for missing topics."""
        for topic in topics:
            self._partitions_of(topic)
        self._consumer.subscribe(list(topics), _CommitsFirst(self))

    def _partitions_of(self, topic: str) -> list[int]:
        try:
            return [one.partition for one in self._consumer.partitions_of(topic)]
        except UnknownTopicOrPartition:
            raise topic_not_found() from None

    def _commit(self) -> None:
        """Commit the noted offsets of partitions that are still assigned."""
        owned = {(one.topic, one.partition) for one in self._consumer.assignment()}
        taken, self._to_commit = self._to_commit, {}
        wanted = [TopicPartition(*one, offset) for one, offset in taken.items() if one in owned]
        try:
            self._consumer.commit(wanted)
        except CommitFailed as error:
            # The next owners continue after the last commit, so these records are delivered again.
            _log.info("commit of a stream was too late", extra={"error": str(error)})
        except HeadraceError:
            for place, offset in taken.items():
                self.note(*place, offset)
            raise

    def _stay(self) -> None:
        """Stay a member of the group until the next `read`."""
        self._is_held = True
        self._consumer.pause()
        self._consumer.fetch(0)

    def _lag(self) -> int:
        """Return the lag of the group in the assigned partitions."""
        owned = self._consumer.assignment()
        total = 0
        for one in self._consumer.committed(owned):
            low, high = self._bounds(one.topic, one.partition)
            total += max(0, high - max(low, one.offset))
        return total

    begin = Awaited(_begin)
    commit = Awaited(_commit)
    ends = Awaited(_ends)
    join = Awaited(_join)
    lag = Awaited(_lag)
    stay = Awaited(_stay)

    async def call(self, function: Callable[["Reader"], T]) -> T:
        """Call a function in the thread of the consumer."""
        return await self._async.call(lambda _: function(self))


class _CommitsFirst(RebalanceListener):
    """Commits before partitions are revoked, so that few records are delivered again."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def on_partitions_revoked(
        self, consumer: Consumer, partitions: Sequence[TopicPartition]
    ) -> None:
        try:
            self._reader._commit()
        except HeadraceError as error:
            _log.info("partitions revoked before a commit", extra={"error": str(error)})

    def on_partitions_lost(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        """Do nothing: lost partitions cannot be committed."""
