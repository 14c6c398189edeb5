"""A producer for asyncio: one thread polls outcomes and passes them to the event loop.

Outcomes are passed in batches, with one wake-up of the loop per batch.
"""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager, closing, suppress
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
    """Awaitable outcome of one record.

    A subclass of `Delivery`, because a second object per record would cost more than the rest.
    """

    __slots__ = ("_outcomes", "_report", "_waiter")

    def __init__(self, outcomes: "deque[AsyncDelivery]", *parts: Any) -> None:
        super().__init__(*parts)
        self._outcomes = outcomes
        self._waiter: asyncio.Future[None] | None = None

    def __call__(self, error: KafkaError | None, message: Message | None) -> None:
        """Receive librdkafka's delivery report, in the thread that polls."""
        self._report = error, message
        self._outcomes.append(self)

    def publish(self) -> None:
        """Publish the delivery report on the event loop."""
        super().__call__(*self._report)
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
        """Send a record and return its awaitable outcome; wait while the buffer is full."""
        parts = (topic, value, key, headers, timestamp_ms, partition)
        delivery = AsyncDelivery(self._outcomes, self._producer, on_delivery, *parts)
        if self._producer.needs_metadata(topic, partition):
            await self._thread.run(self._producer.partitions_of, topic)
        target, key, value, headers = self._producer.prepared(topic, key, value, partition, headers)
        if self._producer.is_chunked(value):
            rest = (target, delivery, timestamp_ms, headers)
            # Closed after an error, so that the next record of the session has another number.
            with closing(self._producer.chunks(topic, value, key, *rest)) as chunks:
                for chunk in chunks:
                    if not self._producer.produce(chunk):
                        await self._send_later(chunk)
            return delivery
        arguments = (topic, value, key, target, delivery, None, timestamp_ms, headers)
        if not self._producer.produce(arguments):
            await self._send_later(arguments)
        return delivery

    async def flush(self, timeout_s: float | None = None) -> None:
        """Wait until the outcome of every record is known; raise the first unretrieved error."""
        deadline = None if timeout_s is None else self._loop.time() + timeout_s
        while left := await self._thread.run(self._producer.finish, SLICE_S):
            if deadline is not None and self._loop.time() >= deadline:
                raise TimedOut(f"{records_are(left)} not acknowledged after {timeout_s} s")
        self._publish()
        self._producer.raise_unseen()

    async def init_transactions(self) -> None:
        """Take over the transactional id, and abort the previous owner's open transaction."""
        await self._thread.run(self._producer.init_transactions)

    @asynccontextmanager
    async def transaction(self, consumer: AsyncConsumer | None = None) -> AsyncIterator[Self]:
        """Commit the block's records as a whole at its end, or abort them if it raises."""
        steps = self._producer.transactions
        await self._thread.run(steps.begin)
        try:
            yield self
            if consumer is not None:
                await self._thread.run(steps.send_offsets, consumer.plain)
            await self._thread.run(steps.commit)
        except BaseException:
            await asyncio.shield(self._thread.start(steps.abort))
            self._publish()
            self._producer.forget_failures()
            if consumer is not None:
                await consumer.rewind()
            raise
        if consumer is not None:
            consumer.plain.note_commit()

    def __len__(self) -> int:
        """Return the number of records sent and not yet acknowledged."""
        return len(self._producer)

    async def close(self, timeout_s: float | None = None) -> None:
        """Flush and disconnect; records still unacknowledged after the timeout fail."""
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
            self._publish()
            self._thread.close()

    async def __aenter__(self) -> Self:
        if self._producer.is_transactional:
            await self.init_transactions()
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            await self.close()
        else:
            with suppress(HeadraceError):  # Raise the first error only.
                await self.close()

    async def _send_later(self, arguments: tuple[Any, ...]) -> None:
        """Wait for space in the buffer; each outcome frees some."""
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
                    self._loop.call_soon_threadsafe(self._publish)
                except RuntimeError:  # The loop is closed, so no task waits for the outcomes.
                    return

    def _publish(self) -> None:
        while self._outcomes:
            self._outcomes.popleft().publish()
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not one.done():
                one.set_result(None)
