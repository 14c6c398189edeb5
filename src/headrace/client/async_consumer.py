"""Consumers for asyncio: the plain consumers, with every wait in a thread of their own.

`async for` applies back pressure: the next records are requested when the previous ones are
processed, and librdkafka prefetches at most `queued.max.messages.kbytes`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from operator import methodcaller
from typing import Generic, Protocol, Self, TypeVar

from confluent_kafka import KafkaException, Message

from headrace.client.addresses import BrokerUnreachable
from headrace.client.async_thread import SLICE_S, Awaited, ClientThread
from headrace.client.consumer import Consumer
from headrace.client.librdkafka import raised
from headrace.client.properties import Properties
from headrace.client.serializers import AnyDeserializer
from headrace.client.share_consumer import ShareConsumer

T = TypeVar("T")

_ITERATION_S = 1.0


class _Plain(Protocol):
    def fetch(self, timeout_s: float) -> bool: ...
    def hand_out(self) -> list[Message]: ...
    def hand_out_singly(self) -> Iterator[Message]: ...
    def close(self) -> None: ...


Plain = TypeVar("Plain", bound=_Plain)


class _AsyncConsumer(Generic[Plain]):
    """The calls that all asyncio consumers share."""

    def __init__(self, plain: Plain, thread_name: str, call_timeout_s: float | None = None) -> None:
        self.plain = plain
        """The wrapped consumer, for use in this consumer's thread only."""
        self._thread = ClientThread(thread_name)
        self._call_timeout_s = call_timeout_s

    async def call(self, function: Callable[[Plain], T]) -> T:
        """Call a function of the plain consumer in its thread, within the time limit if any."""
        try:
            async with asyncio.timeout(self._call_timeout_s):
                return await self._thread.run(function, self.plain)
        except KafkaException as error:
            raise raised(error) from None
        except TimeoutError as error:
            if self._call_timeout_s is None:
                raise
            reason = f"no answer within {self._call_timeout_s:g} seconds: {error}"
            raise BrokerUnreachable(reason) from error

    async def fetch(self, timeout_s: float) -> bool:
        """Wait in time slices; fetched records stay in the client, so a cancellation loses none."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        while True:
            slice_s = min(max(0.0, deadline - loop.time()), SLICE_S)
            if await self.call(methodcaller("fetch", slice_s)):
                return True
            if loop.time() >= deadline:
                return False

    async def poll(self, timeout_s: float = 1.0) -> list[Message]:
        await self.fetch(timeout_s)
        return self.plain.hand_out()

    async def __aiter__(self) -> AsyncIterator[Message]:
        """Yield records one by one without end; requesting the next marks one as processed."""
        while True:
            await self.fetch(_ITERATION_S)
            for message in self.plain.hand_out_singly():
                yield message

    async def close(self) -> None:
        try:
            await self.call(methodcaller("close"))
        finally:
            self._thread.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        await self.close()


class AsyncConsumer(_AsyncConsumer[Consumer]):
    """`Consumer` for asyncio; methods of a rebalance listener run in the consumer's thread.

    These methods are plain functions and receive the plain consumer.
    """

    def __init__(
        self,
        properties: Properties,
        *,
        key_deserializer: AnyDeserializer | None = None,
        value_deserializer: AnyDeserializer | None = None,
        call_timeout_s: float | None = None,
    ) -> None:
        plain = Consumer(
            properties, key_deserializer=key_deserializer, value_deserializer=value_deserializer
        )
        super().__init__(plain, "headrace-consumer", call_timeout_s)

    subscribe = Awaited(Consumer.subscribe)
    assign = Awaited(Consumer.assign)
    unsubscribe = Awaited(Consumer.unsubscribe)
    commit = Awaited(Consumer.commit)
    commit_async = Awaited(Consumer.commit_async)
    seek = Awaited(Consumer.seek)
    seek_to_beginning = Awaited(Consumer.seek_to_beginning)
    seek_to_end = Awaited(Consumer.seek_to_end)
    seek_to_time = Awaited(Consumer.seek_to_time)
    rewind = Awaited(Consumer.rewind)
    position = Awaited(Consumer.position)
    committed = Awaited(Consumer.committed)
    assignment = Awaited(Consumer.assignment)
    pause = Awaited(Consumer.pause)
    resume = Awaited(Consumer.resume)
    bounds = Awaited(Consumer.bounds)
    offsets_for_time = Awaited(Consumer.offsets_for_time)
    partitions_of = Awaited(Consumer.partitions_of)

    async def close_after_error(self) -> None:
        """Leave the group without committing the records in progress, which are read again."""
        try:
            await self.call(Consumer.close_after_error)
        finally:
            self._thread.close()

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        await (self.close() if error is None else self.close_after_error())


class AsyncShareConsumer(_AsyncConsumer[ShareConsumer]):
    """`ShareConsumer` for asyncio."""

    def __init__(self, properties: Properties) -> None:
        super().__init__(ShareConsumer(properties), "headrace-share-consumer")

    subscribe = Awaited(ShareConsumer.subscribe)
    unsubscribe = Awaited(ShareConsumer.unsubscribe)
    accept = Awaited(ShareConsumer.accept)
    release = Awaited(ShareConsumer.release)
    reject = Awaited(ShareConsumer.reject)
    commit = Awaited(ShareConsumer.commit)
