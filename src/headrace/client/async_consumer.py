"""Consumers for asyncio: the same consumers, with every wait in a thread of their own.

`async for` is the back pressure: the next records are asked for when those before are done with,
and librdkafka fetches no more than `queued.max.messages.kbytes` ahead.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from types import TracebackType
from typing import Self

from confluent_kafka import Message, TopicPartition

from headrace.client.async_thread import ClientThread, until_ready
from headrace.client.consumer import Consumer
from headrace.client.properties import Properties
from headrace.client.rebalancing import RebalanceListener
from headrace.client.serializers import AnyDeserializer
from headrace.client.share_consumer import ShareConsumer

_ITERATION_S = 1.0


class AsyncConsumer:
    """`Consumer` for asyncio; the methods of a rebalance listener run in its thread.

    They are plain functions and use the plain consumer that they are given.
    """

    def __init__(
        self,
        properties: Properties,
        *,
        key_deserializer: AnyDeserializer | None = None,
        value_deserializer: AnyDeserializer | None = None,
    ) -> None:
        self._consumer = Consumer(
            properties, key_deserializer=key_deserializer, value_deserializer=value_deserializer
        )
        self._thread = ClientThread("headrace-consumer")

    @property
    def plain(self) -> Consumer:
        """The consumer that does the work, for use in this consumer's thread."""
        return self._consumer

    async def subscribe(
        self, topics: Sequence[str] | str, listener: RebalanceListener | None = None
    ) -> None:
        await self._thread.run(self._consumer.subscribe, topics, listener)

    async def assign(self, partitions: Sequence[TopicPartition] | str) -> None:
        await self._thread.run(self._consumer.assign, partitions)

    async def unsubscribe(self) -> None:
        await self._thread.run(self._consumer.unsubscribe)

    async def poll(self, timeout_s: float = 1.0) -> list[Message]:
        await until_ready(self._thread, self._consumer.fetch, timeout_s)
        return self._consumer.hand_out()

    async def __aiter__(self) -> AsyncIterator[Message]:
        """Records without end, one by one; each is processed when the next is asked for."""
        while True:
            await until_ready(self._thread, self._consumer.fetch, _ITERATION_S)
            for message in self._consumer.hand_out_singly():
                yield message

    async def commit(self, offsets: Sequence[TopicPartition] | None = None) -> None:
        await self._thread.run(self._consumer.commit, offsets)

    async def commit_async(self, offsets: Sequence[TopicPartition] | None = None) -> None:
        await self._thread.run(self._consumer.commit_async, offsets)

    async def seek(self, partition: TopicPartition, offset: int | None = None) -> None:
        await self._thread.run(self._consumer.seek, partition, offset)

    async def seek_to_beginning(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        await self._thread.run(self._consumer.seek_to_beginning, partitions)

    async def seek_to_end(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        await self._thread.run(self._consumer.seek_to_end, partitions)

    async def seek_to_time(
        self, timestamp_ms: int, partitions: Iterable[TopicPartition] | None = None
    ) -> None:
        await self._thread.run(self._consumer.seek_to_time, timestamp_ms, partitions)

    async def rewind(self) -> None:
        await self._thread.run(self._consumer.rewind)

    async def position(self, partition: TopicPartition) -> int | None:
        return await self._thread.run(self._consumer.position, partition)

    async def committed(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        return await self._thread.run(self._consumer.committed, partitions)

    async def assignment(self) -> list[TopicPartition]:
        return await self._thread.run(self._consumer.assignment)

    async def pause(self, partitions: Sequence[TopicPartition] | None = None) -> None:
        await self._thread.run(self._consumer.pause, partitions)

    async def resume(self, partitions: Sequence[TopicPartition] | None = None) -> None:
        await self._thread.run(self._consumer.resume, partitions)

    async def bounds(self, partition: TopicPartition) -> tuple[int, int]:
        return await self._thread.run(self._consumer.bounds, partition)

    async def offsets_for_time(
        self, timestamp_ms: int, partitions: Iterable[TopicPartition] | None = None
    ) -> list[TopicPartition]:
        return await self._thread.run(self._consumer.offsets_for_time, timestamp_ms, partitions)

    async def partitions_of(self, topic: str) -> list[TopicPartition]:
        return await self._thread.run(self._consumer.partitions_of, topic)

    async def close(self) -> None:
        await self._thread.run(self._consumer.close)
        self._thread.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            await self._thread.run(self._consumer.close_after_error)
        await self.close()


class AsyncShareConsumer:
    """`ShareConsumer` for asyncio."""

    def __init__(self, properties: Properties) -> None:
        self._consumer = ShareConsumer(properties)
        self._thread = ClientThread("headrace-share-consumer")

    async def subscribe(self, topics: Sequence[str] | str) -> None:
        await self._thread.run(self._consumer.subscribe, topics)

    async def unsubscribe(self) -> None:
        await self._thread.run(self._consumer.unsubscribe)

    async def poll(self, timeout_s: float = 1.0) -> list[Message]:
        await until_ready(self._thread, self._consumer.fetch, timeout_s)
        return self._consumer.hand_out()

    async def __aiter__(self) -> AsyncIterator[Message]:
        """Records without end, one by one."""
        while True:
            await until_ready(self._thread, self._consumer.fetch, _ITERATION_S)
            for message in self._consumer.hand_out_singly():
                yield message

    async def accept(self, message: Message) -> None:
        await self._thread.run(self._consumer.accept, message)

    async def release(self, message: Message) -> None:
        await self._thread.run(self._consumer.release, message)

    async def reject(self, message: Message) -> None:
        await self._thread.run(self._consumer.reject, message)

    async def commit(self, timeout_s: float | None = None) -> None:
        await self._thread.run(self._consumer.commit, timeout_s)

    async def close(self) -> None:
        await self._thread.run(self._consumer.close)
        self._thread.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
