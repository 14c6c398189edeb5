"""A consumer that callers drive by requests: one instance, its thread, and what it was told.

The consumer is our client's, so a record counts as processed when the caller reads on, commits or
deletes the instance; the timer of `auto.commit.enable` commits no record that is still in hand.
"""

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import msgspec
from confluent_kafka import KafkaException, Message, TopicPartition

from headrace.client.async_thread import SLICE_S, ClientThread
from headrace.client.consumer import Consumer, DeserializationFailed
from headrace.client.librdkafka import raised
from headrace.client.partitioners import InvalidPartition
from headrace.rest.errors import (
    consumer_instance_not_found,
    illegal_state,
    no_answer,
    registry_failed,
    unprocessable,
)
from headrace.rest.formats import Format

P = ParamSpec("P")
T = TypeVar("T")

_NOT_BOTH = "Subscription to topics, partitions and pattern are mutually exclusive"


class InstanceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the maker of an instance chose."""

    format: Format
    min_bytes: int
    timeout_ms: int


class Shown(msgspec.Struct, frozen=True):
    """A key or value as it is shown, and how many bytes it is made of."""

    size: int
    data: Any


class ConsumedRecord(msgspec.Struct, frozen=True):
    """A record in an answer."""

    topic: str
    key: Any
    value: Any
    partition: int
    offset: int


class ConsumerInstance:
    """Calls of one instance follow each other in its thread; each has an end."""

    def __init__(
        self, consumer: Consumer, settings: InstanceSettings, owner: str, timeout_s: float
    ) -> None:
        self.settings = settings
        self.owner = owner
        self.used_at = time.monotonic()
        self._consumer = consumer
        self._timeout_s = timeout_s
        self._thread = ClientThread("headrace-rest-consumer")
        self._reading = asyncio.Lock()
        self._topics: list[str] | None = None
        self._is_assigned = False
        self._is_closed = False

    async def subscribe(self, topics: Sequence[str] | None, pattern: str | None) -> None:
        """Share topics with the group, by their names or by what their names look like."""
        if self._is_assigned or (topics is not None and pattern is not None):
            raise illegal_state(_NOT_BOTH)
        if topics is None and pattern is None:
            raise unprocessable("name topics, or a topic_pattern")
        names = [_anchored(pattern)] if pattern is not None else list(topics or ())
        if not names:
            await self.unsubscribe()
            return
        await self._run(self._consumer.subscribe, names)
        self._topics = None if pattern is not None else names

    async def unsubscribe(self) -> None:
        await self._run(self._consumer.unsubscribe)
        self._topics, self._is_assigned = None, False

    async def subscription(self) -> list[str]:
        """The topics that were named; of a pattern those that have fallen to this instance."""
        if self._is_assigned:
            return []
        if self._topics is not None:
            return sorted(self._topics)
        return sorted({one.topic for one in await self._run(self._consumer.assignment)})

    async def assign(self, partitions: Sequence[TopicPartition]) -> None:
        if not self._is_assigned and (self._topics or await self.assignment()):
            raise illegal_state(_NOT_BOTH)
        await self._run(self._consumer.assign, list(partitions))
        self._is_assigned = bool(partitions)

    async def assignment(self) -> list[TopicPartition]:
        return await self._run(self._consumer.assignment)

    async def seek(self, targets: Sequence[TopicPartition]) -> None:
        """Read on elsewhere; only partitions that are assigned have a place to read on from."""
        await self._run(self._seek, targets)

    async def seek_to_end(self, partitions: Sequence[TopicPartition]) -> None:
        """Read what is written from now on.

        The end is looked up here: librdkafka would do it some time after the answer has gone.
        """
        await self._run(self._check_assigned, partitions)
        for one in partitions:
            _, end = await self._run(self._consumer.bounds, one)
            await self._run(self._consumer.seek, TopicPartition(one.topic, one.partition, end))

    async def seek_to_times(self, targets: Sequence[tuple[TopicPartition, int]]) -> None:
        """Read on at the first record of a time or later, or at the end."""
        for partition, timestamp_ms in targets:
            await self._run(self._check_assigned, [partition])
            await self._run(self._consumer.seek_to_time, timestamp_ms, [partition])

    async def commit(self, offsets: Sequence[TopicPartition] | None, *, is_async: bool) -> None:
        """Commit these offsets, or everything that was read."""
        if offsets is None and is_async:
            await self._run(self._consumer.commit_async)
        else:
            await self._run(self._consumer.commit, offsets)

    async def committed(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        return await self._run(self._consumer.committed, list(partitions))

    async def read(self, timeout_s: float, bytes_max: int) -> list[ConsumedRecord]:
        """The next records: when there are enough bytes of them, or when the time is up."""
        async with self._reading:
            return await self._read(timeout_s, bytes_max)

    async def close(self) -> None:
        """Leave the group; what was read is committed where that is automatic.

        Calls that came before have their turn first; those that come now are refused.
        """
        leaving = self._thread.start(self._consumer.close)
        self._is_closed = True
        try:
            await self._outcome(leaving)
        finally:
            self._thread.close()

    async def _read(self, timeout_s: float, bytes_max: int) -> list[ConsumedRecord]:
        deadline = time.monotonic() + timeout_s
        records: list[Message] = []
        size = 0
        while True:
            self.used_at = time.monotonic()
            left_s = max(0.0, deadline - time.monotonic())
            try:
                is_ready = await self._run(self._consumer.fetch, min(left_s, SLICE_S))
            except DeserializationFailed as error:
                if records:
                    break  # Those before it are told first; the next read meets it again.
                raise registry_failed(str(error)) from error
            if is_ready:
                found = self._consumer.hand_out_within(bytes_max - size, _size)
                size += sum(map(_size, found))
                records += found
            enough = size >= bytes_max or 0 <= self.settings.min_bytes <= size
            if (records and enough) or time.monotonic() >= deadline:
                break
        return list(map(_record, records))

    def _seek(self, targets: Sequence[TopicPartition]) -> None:
        self._check_assigned(targets)
        for target in targets:
            self._consumer.seek(target)

    def _check_assigned(self, targets: Sequence[TopicPartition]) -> None:
        present = {(one.topic, one.partition) for one in self._consumer.assignment()}
        for target in targets:
            if (target.topic, target.partition) not in present:
                place = f"{target.topic}-{target.partition}"
                raise illegal_state(f"No current assignment for partition {place}")

    async def _run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._is_closed:  # Deleted or expired while a request still had calls to make.
            raise consumer_instance_not_found()
        return await self._outcome(self._thread.start(call, *args, **kwargs))

    async def _outcome(self, call: "asyncio.Future[T]") -> T:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await call
        except KafkaException as error:
            raise raised(error) from None
        except InvalidPartition as error:
            raise illegal_state(str(error)) from None
        except TimeoutError as error:
            raise no_answer(f"nothing came within {self._timeout_s:g} seconds: {error}") from error


def _anchored(pattern: str) -> str:
    """A pattern is to fit whole names, as Java's does; librdkafka takes ^ as the sign of one."""
    try:
        re.compile(pattern)
    except re.error as error:
        raise unprocessable(
            f"topic_pattern {pattern!r} is no regular expression: {error}"
        ) from None
    if pattern.startswith("^"):
        return pattern
    return f"^({pattern})$" if "|" in pattern else f"^{pattern}$"


def _size(message: Message) -> int:
    return _shown(message.key()).size + _shown(message.value()).size


def _record(message: Message) -> ConsumedRecord:
    return ConsumedRecord(
        message.topic() or "",
        _shown(message.key()).data,
        _shown(message.value()).data,
        message.partition() or 0,
        message.offset() or 0,
    )


def _shown(part: object) -> Shown:
    assert isinstance(part, Shown), "the consumer shows what it reads"
    return part
