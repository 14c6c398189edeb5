"""A producer for asyncio: one thread listens for outcomes and tells them to the event loop.

It tells them in bunches, one wake-up of the loop for all that came together.
"""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Any, Self

from confluent_kafka import KafkaError, Message

from headrace.client.async_consumer import AsyncConsumer
from headrace.client.async_thread import SLICE_S, ClientThread
from headrace.client.deliveries import Delivery
from headrace.client.librdkafka import TimedOut
from headrace.client.partitioners import Partitioner
from headrace.client.producer import Producer, records_are
from headrace.client.properties import Properties
from headrace.client.records import RecordMetadata
from headrace.client.serializers import AnySerializer
from headrace.errors import HeadraceError

_LISTEN_S = 0.1


class AsyncDelivery(Delivery):
    """The outcome of one record; await it.

    A subclass, as a second object per record would cost more than all the rest of it.
    """

    __slots__ = ("_heard", "_outcomes", "_waiter")

    def __init__(self, outcomes: "deque[AsyncDelivery]", *parts: Any) -> None:
        super().__init__(*parts)
        self._outcomes = outcomes
        self._waiter: asyncio.Future[None] | None = None

    def __call__(self, error: KafkaError | None, message: Message | None) -> None:
        """librdkafka's word on the record, in whichever thread hears it."""
        self._heard = error, message
        self._outcomes.append(self)

    def tell(self) -> None:
        """The same word, on the event loop."""
        super().__call__(*self._heard)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def done(self) -> bool:
        return self._outcome is not None

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        if self._outcome is None:
            if self._waiter is None or self._waiter.cancelled():
                self._waiter = asyncio.get_running_loop().create_future()
            yield from asyncio.shield(self._waiter).__await__()
        return self.result(0)


class AsyncProducer:
    """`Producer` for asyncio; callbacks run on the event loop."""

    def __init__(
        self,
        properties: Properties,
        *,
        partitioner: Partitioner | str | None = None,
        key_serializer: AnySerializer | None = None,
        value_serializer: AnySerializer | None = None,
    ) -> None:
        self._producer = Producer(
            properties,
            partitioner=partitioner,
            key_serializer=key_serializer,
            value_serializer=value_serializer,
        )
        self._loop = asyncio.get_running_loop()
        self._thread = ClientThread("headrace-producer")
        self._outcomes: deque[AsyncDelivery] = deque()
        self._waiting: list[asyncio.Future[None]] = []
        self._is_closed = False
        self._listener = threading.Thread(
            target=self._listen, name="headrace-outcomes", daemon=True
        )
        self._listener.start()

    async def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        headers: Any = None,
        timestamp_ms: int = 0,
        on_delivery: Callable[[Delivery], None] | None = None,
    ) -> AsyncDelivery:
        """Hand a record over; the outcome can be awaited. Waits while the buffer is full."""
        parts = (topic, value, key, headers, timestamp_ms, partition)
        delivery = AsyncDelivery(self._outcomes, self._producer, on_delivery, *parts)
        if self._producer.needs_metadata(topic, partition):
            await self._thread.run(self._producer.partitions_of, topic)
        target, key, value, headers = self._producer.prepared(topic, key, value, partition, headers)
        arguments = (topic, value, key, target, delivery, None, timestamp_ms, headers)
        if not self._producer.produce(arguments):
            await self._send_later(arguments)
        return delivery

    async def flush(self, timeout_s: float | None = None) -> None:
        """Wait until the outcome of every record is known; raises one that nobody asked about."""
        deadline = None if timeout_s is None else self._loop.time() + timeout_s
        while left := await self._thread.run(self._producer.finish, SLICE_S):
            if deadline is not None and self._loop.time() >= deadline:
                raise TimedOut(f"{records_are(left)} not acknowledged after {timeout_s} s")
        self._tell()
        self._producer.raise_unseen()

    async def init_transactions(self) -> None:
        """Take over the transactional id, and end what its last owner left open."""
        await self._thread.run(self._producer.init_transactions)

    @asynccontextmanager
    async def transaction(self, consumer: AsyncConsumer | None = None) -> AsyncIterator[Self]:
        """What is sent inside appears as a whole when the block ends, or never if it raises."""
        steps = self._producer.transactions
        await self._thread.run(steps.begin)
        try:
            yield self
            if consumer is not None:
                await self._thread.run(steps.send_offsets, consumer.plain)
            await self._thread.run(steps.commit)
        except BaseException:
            await asyncio.shield(self._thread.start(steps.abort))
            self._tell()
            self._producer.forget_failures()
            if consumer is not None:
                await consumer.rewind()
            raise
        if consumer is not None:
            consumer.plain.note_commit()

    def __len__(self) -> int:
        """How many records are handed over and not yet acknowledged."""
        return len(self._producer)

    async def close(self, timeout_s: float | None = None) -> None:
        """Flush and disconnect; records still without word after the timeout are given up."""
        if self._is_closed:
            return
        try:
            if timeout_s is None:
                await self._thread.run(self._producer.await_broker)
            await self.flush(timeout_s)
        finally:
            self._is_closed = True
            await self._thread.run(self._listener.join)
            await self._thread.run(self._producer.disconnect)
            self._tell()
            self._thread.close()

    async def __aenter__(self) -> Self:
        if self._producer.is_transactional:
            await self.init_transactions()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            await self.close()
        else:
            with suppress(HeadraceError):  # The first error is the one to be seen.
                await self.close()

    async def _send_later(self, arguments: tuple[Any, ...]) -> None:
        """Wait for room; each outcome makes some."""
        deadline = self._loop.time() + self._producer.max_block_s
        while (left_s := deadline - self._loop.time()) > 0:
            outcome: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append(outcome)
            await asyncio.wait([outcome], timeout=min(left_s, _LISTEN_S))
            if self._producer.produce(arguments):
                return
        raise self._producer.no_room()

    def _listen(self) -> None:
        while not self._is_closed:
            self._producer.poll(_LISTEN_S)
            if self._outcomes:
                try:
                    self._loop.call_soon_threadsafe(self._tell)
                except RuntimeError:  # The loop is closed, and nobody is left to be told.
                    return

    def _tell(self) -> None:
        while self._outcomes:
            self._outcomes.popleft().tell()
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not one.done():
                one.set_result(None)
