"""Consumer instances, which callers use by requests; each has its own thread.

A record counts as processed when the caller reads again, commits or deletes the instance. The timer
of `auto.commit.enable` commits processed records only.
"""

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from confluent_kafka import Message, TopicPartition

from headrace.client.async_consumer import AsyncConsumer
from headrace.client.async_thread import SLICE_S
from headrace.client.consumer import Consumer, DeserializationFailed
from headrace.client.partitioners import InvalidPartition
from headrace.rest.errors import (
    consumer_instance_not_found,
    illegal_state,
    registry_failed,
    unprocessable,
)
from headrace.rest.formats import Format
from headrace.schema_clients.registry_client.failures import RegistryFailure

_NOT_BOTH = "Subscription to topics, partitions and pattern are mutually exclusive"


class InstanceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of an instance by its creator."""

    format: Format
    min_bytes: int
    timeout_ms: int


class Shown(msgspec.Struct, frozen=True):
    """A key or value as it is shown, and its size in bytes."""

    size: int
    data: Any


class ConsumedRecord(msgspec.Struct, frozen=True):
    """A record of an answer."""

    topic: str
    key: Any
    value: Any
    partition: int
    offset: int


class ConsumerInstance:
    """A consumer for one owner, whose calls run one after the other."""

    def __init__(self, consumer: AsyncConsumer, settings: InstanceSettings, owner: str) -> None:
        self.settings = settings
        self.owner = owner
        self.used_at = time.monotonic()
        self._consumer = consumer
        self._reading = asyncio.Lock()
        self._topics: list[str] | None = None
        self._is_assigned = False
        self._is_closed = False

    async def subscribe(self, topics: Sequence[str] | None, pattern: str | None) -> None:
        """Subscribe to topics by name or by a pattern."""
        if self._is_assigned or (topics is not None and pattern is not None):
            raise illegal_state(_NOT_BOTH)
        if topics is None and pattern is None:
            raise unprocessable("topics or topic_pattern is required")
        names = [_anchored(pattern)] if pattern is not None else list(topics or ())
        if not names:
            await self.unsubscribe()
            return
        await self._open.subscribe(names)
        self._topics = None if pattern is not None else names

    async def unsubscribe(self) -> None:
        await self._open.unsubscribe()
        self._topics, self._is_assigned = None, False

    async def subscription(self) -> list[str]:
        """Return the subscribed topics; for a pattern those with an assigned partition."""
        if self._is_assigned:
            return []
        if self._topics is not None:
            return sorted(self._topics)
        return sorted({one.topic for one in await self._open.assignment()})

    async def assign(self, partitions: Sequence[TopicPartition]) -> None:
        if not self._is_assigned and (self._topics or await self.assignment()):
            raise illegal_state(_NOT_BOTH)
        await self._open.assign(list(partitions))
        self._is_assigned = bool(partitions)

    async def assignment(self) -> list[TopicPartition]:
        return await self._open.assignment()

    async def seek(self, targets: Sequence[TopicPartition]) -> None:
        """Continue at other offsets of assigned partitions."""
        await self._seek(targets, lambda _, target: target.offset)

    async def seek_to_end(self, partitions: Sequence[TopicPartition]) -> None:
        """Continue at the end of partitions.

        The end is resolved here, because librdkafka would resolve it after the answer.
        """
        await self._seek(partitions, lambda consumer, one: consumer.bounds(one)[1])

    async def seek_to_times(self, targets: Sequence[tuple[TopicPartition, int]]) -> None:
        """Continue at the first record of a time or later, or at the end."""
        for partition, timestamp_ms in targets:
            await self._seek(
                [partition],
                lambda consumer, one, time=timestamp_ms: (  # type: ignore[misc]
                    consumer.offsets_for_time(time, [one])[0].offset
                ),
            )

    async def commit(self, offsets: Sequence[TopicPartition] | None, *, is_async: bool) -> None:
        """Commit the given offsets, or all records that were read."""
        if offsets is None and is_async:
            await self._open.commit_async()
        else:
            await self._open.commit(offsets)

    async def committed(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        return await self._open.committed(list(partitions))

    async def read(self, timeout_s: float, bytes_max: int) -> list[ConsumedRecord]:
        """Return records once there are enough bytes, or after the timeout."""
        async with self._reading:
            return await self._read(timeout_s, bytes_max)

    async def close(self) -> None:
        """Leave the group; with automatic commits, commit the records that were read.

        Earlier calls run first; later calls fail.
        """
        self._is_closed = True
        await self._consumer.close()

    async def _read(self, timeout_s: float, bytes_max: int) -> list[ConsumedRecord]:
        deadline = time.monotonic() + timeout_s
        records: list[Message] = []
        size = 0
        while True:
            self.used_at = time.monotonic()
            left_s = max(0.0, deadline - time.monotonic())
            try:
                is_ready = await self._open.fetch(min(left_s, SLICE_S))
            except DeserializationFailed as error:
                if records:
                    break  # Return the records before it; the next read fails.
                raise registry_failed(explained(error)) from error
            except RuntimeError as error:  # Closed between two slices of the wait.
                if not self._is_closed:
                    raise
                raise consumer_instance_not_found() from error
            if is_ready:
                found = self._consumer.plain.hand_out_within(bytes_max - size, _size)
                size += sum(map(_size, found))
                records += found
            enough = size >= bytes_max or 0 <= self.settings.min_bytes <= size
            if (records and enough) or time.monotonic() >= deadline:
                break
        return list(map(_record, records))

    async def _seek(
        self,
        targets: Sequence[TopicPartition],
        offset_of: Callable[[Consumer, TopicPartition], int],
    ) -> None:
        def seek(consumer: Consumer) -> None:
            present = {(one.topic, one.partition) for one in consumer.assignment()}
            for one in targets:
                if (one.topic, one.partition) not in present:
                    place = f"{one.topic}-{one.partition}"
                    raise illegal_state(f"No current assignment for partition {place}")
            for one in targets:
                consumer.seek(one, offset_of(consumer, one))

        try:
            await self._open.call(seek)
        except InvalidPartition as error:
            raise illegal_state(str(error)) from None

    @property
    def _open(self) -> AsyncConsumer:
        if self._is_closed:  # Deleted or expired during a request.
            raise consumer_instance_not_found()
        return self._consumer


def explained(error: DeserializationFailed) -> str:
    """Return the error with the request that skips the record, unless the registry failed."""
    if isinstance(error.__cause__, RegistryFailure):
        return str(error)
    record = error.message
    following = f'"partition": {record.partition()}, "offset": {(record.offset() or 0) + 1}'
    position = f'{{"offsets": [{{"topic": "{record.topic()}", {following}}}]}}'
    return f"{error}; to skip the record, POST {position} to the instance's positions"


def _anchored(pattern: str) -> str:
    """Anchor a pattern to whole names, like Java; librdkafka recognizes patterns by ^."""
    try:
        re.compile(pattern)
    except re.error as error:
        raise unprocessable(
            f"topic_pattern {pattern!r} is not a regular expression: {error}"
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
    assert isinstance(part, Shown), "the consumer shows all parts"
    return part
