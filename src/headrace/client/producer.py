"""Records into any topics of any Kafka: confluent-kafka's producer, and what it lacks.

That is a partitioner as a Python function, a future per record that brings the record back with
its error, a bounded wait for room in the buffer, and transactions as `with` blocks.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from types import TracebackType
from typing import Any, Self

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException

from headrace.client.consumer import Consumer
from headrace.client.deliveries import Delivery
from headrace.client.librdkafka import TimedOut, created, exception_for, raised
from headrace.client.librdkafka_log import FoldedLog
from headrace.client.partitioners import Partitioner, checked, chosen
from headrace.client.producer_transactions import Transactions
from headrace.client.properties import InvalidProperty, Properties, split
from headrace.client.serializers import AnySerializer, serialization
from headrace.errors import HeadraceError, UnknownTopicOrPartition

_POLL_S = 0.001
_WAIT_S = 0.05
_ANSWER_S = 1.0
_UNSEEN_MAX = 1_000
_METADATA_S = 300.0
_DEFAULTS: dict[str, Any] = {
    "client.id": "headrace",
    "queue.buffering.max.kbytes": 32 << 10,  # As Java's buffer.memory; librdkafka has a gigabyte.
}
_PRODUCER_IS_OVER = frozenset(
    {KafkaError._STATE, KafkaError._FATAL, KafkaError._FENCED, KafkaError._PURGE_QUEUE}
)


class NotBytes(HeadraceError, TypeError):
    """A key or a value that no serializer makes bytes of."""


class Producer:
    """Sends records; close it, or use it in a `with`, so that the last ones are not lost.

    Outcomes become known, and callbacks are called, while `send`, `poll`, `flush` or the `result`
    of a delivery runs, in the thread that called it.
    """

    def __init__(
        self,
        properties: Properties,
        *,
        partitioner: Partitioner | str | None = None,
        key_serializer: AnySerializer | None = None,
        value_serializer: AnySerializer | None = None,
    ) -> None:
        given, own = split(properties)
        self.max_block_s = own.max_block_s
        self.is_transactional = bool(given.get("transactional.id"))
        if given.get("delivery.report.only.error"):
            raise InvalidProperty("delivery.report.only.error would leave deliveries without word")
        name, self._partitioner = chosen(partitioner or given.pop("partitioner", None))
        settings = {**_DEFAULTS, "logger": FoldedLog(), **given, "partitioner": name}
        producer = created(confluent_kafka.Producer, settings)
        self._bootstrap = given.get("bootstrap.servers", "")
        self._serialize = serialization(key_serializer, value_serializer)
        self._is_plain = self._partitioner is None and self._serialize is None
        self._producer = producer
        self._produce = producer.produce
        self._poll = producer.poll
        self.partition_counts = PartitionCounts(producer, self.max_block_s)
        self.transactions = Transactions(producer, self.max_block_s)
        self._unseen: deque[Delivery] = deque(maxlen=_UNSEEN_MAX)
        self._poll_at = 0.0
        self._is_closed = False

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        headers: Any = None,
        timestamp_ms: int = 0,
        on_delivery: Callable[[Delivery], None] | None = None,
    ) -> Delivery:
        """Hand a record over, and return its future at once.

        Keys and values are bytes, text or None unless there is a serializer. Waits up to
        `max.block.ms` for room in the buffer, then raises a `TimeoutError`.
        """
        delivery = Delivery(self, on_delivery, topic, value, key, headers, timestamp_ms, partition)
        target = -1
        if partition is not None or not self._is_plain:
            target, key, value, headers = self.prepared(topic, key, value, partition, headers)
        try:
            # By position, as names cost a third more here: topic, value, key, partition,
            # callback, its other name, timestamp, headers.
            self._produce(topic, value, key, target, delivery, None, timestamp_ms, headers)
        except BufferError:
            self._send_later((topic, value, key, target, delivery, None, timestamp_ms, headers))
        except KafkaException as error:
            self._refuse(delivery, error.args[0])
        except TypeError as error:
            raise _not_bytes(key, value, error) from None
        # Asking for outcomes costs as much as sending, so it is not done for every record.
        if (now := monotonic()) > self._poll_at:
            self._poll_at = now + _POLL_S
            self._poll(0)
        return delivery

    def poll(self, timeout_s: float = 0.0) -> int:
        """Let outcomes become known while nothing is sent; how many did."""
        return self._poll(timeout_s)

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until the outcome of every record is known.

        Raises the failure of a record that nobody asked about: no callback, no `result`.
        """
        if left := self.finish(-1 if timeout_s is None else timeout_s):
            raise TimedOut(f"{records_are(left)} not acknowledged after {timeout_s} s")
        self.raise_unseen()

    def finish(self, timeout_s: float) -> int:
        """Send what waits without lingering; how many records are still without word."""
        return self._producer.flush(timeout_s)

    def forget_failures(self) -> None:
        """Records of an aborted transaction are not delivered on purpose."""
        self._unseen.clear()

    def raise_unseen(self) -> None:
        """Raise the failure of a record that nobody asked about."""
        failed = [delivery for delivery in self._unseen if not delivery.is_seen]
        self._unseen.clear()
        if failed:
            failure = failed[0].failure
            assert failure is not None
            if len(failed) > 1:
                failure.add_note(f"and {records_are(len(failed) - 1)} not delivered either")
            raise failure

    def init_transactions(self) -> None:
        """Take over the transactional id, and end what its last owner left open.

        A `with` on the producer does it, and so does the first transaction at the latest. Before
        that a consumer of the chain may wait for offsets that the open transaction holds.
        """
        self.transactions.initialize()

    @contextmanager
    def transaction(self, consumer: Consumer | None = None) -> Iterator[Self]:
        """What is sent inside appears as a whole when the block ends, or never if it raises.

        With a consumer, the offsets of what it has handed out are part of the transaction; if
        the transaction fails the consumer reads the same records again.
        """
        self.transactions.begin()
        try:
            yield self
            if consumer is not None:
                self.transactions.send_offsets(consumer)
            self.transactions.commit()
        except BaseException:
            self.transactions.abort()
            self.forget_failures()
            if consumer is not None:
                consumer.rewind()
            raise
        if consumer is not None:
            consumer.note_commit()

    def partitions_of(self, topic: str) -> int:
        """How many partitions a topic has."""
        return self.partition_counts.of(topic)

    def __len__(self) -> int:
        """How many records are handed over and not yet acknowledged."""
        return len(self._producer)

    def close(self, timeout_s: float | None = None) -> None:
        """Flush and disconnect; records still without word after the timeout are given up.

        Without a timeout they are when `delivery.timeout.ms` is over, or when no broker has
        answered for `max.block.ms`: a wrong address is told in a minute.
        """
        if self._is_closed:
            return
        try:
            if timeout_s is None:
                self.await_broker()
            self.flush(timeout_s)
        finally:
            self.disconnect()

    def await_broker(self) -> None:
        """Wait until nothing is on its way or a broker answers; in vain for `max.block.ms` only."""
        deadline = monotonic() + self.max_block_s
        while left := self.finish(min(_ANSWER_S, self.max_block_s)):
            try:
                self._producer.list_topics(timeout=_ANSWER_S)
                return
            except KafkaException as error:
                if monotonic() >= deadline:
                    raise TimedOut(
                        f"no broker of {self._bootstrap} answers within max.block.ms"
                        f" ({self.max_block_s * 1000:.0f}): {records_are(left)} not delivered"
                        f" ({error.args[0].str()})"
                    ) from None

    def disconnect(self) -> None:
        """Give up what is still without word, and end librdkafka's threads."""
        self._is_closed = True
        self._producer.purge()
        self._poll(0)
        if hasattr(self._producer, "close"):  # New in confluent-kafka 2.13.
            self._producer.close()

    def __enter__(self) -> Self:
        if self.is_transactional:
            self.init_transactions()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            with suppress(HeadraceError):  # The first error is the one to be seen.
                self.close()

    def needs_metadata(self, topic: str, partition: int | None) -> bool:
        """Whether a send has to ask a broker for the topic's partitions first."""
        chooses = partition is not None or self._partitioner is not None
        return chooses and not self.partition_counts.is_known(topic)

    def prepared(
        self, topic: str, key: Any, value: Any, partition: int | None, headers: Any
    ) -> tuple[int, Any, Any, Any]:
        """The partition, key, value and headers that librdkafka is given."""
        if partition is not None:
            partition = self.partition_counts.checked(topic, partition)
        elif self._partitioner is not None:
            count = self.partition_counts.of(topic)
            wish = self._partitioner(topic, key, value, count)
            partition = checked(wish, topic, count, "the partitioner returned")
        if self._serialize is not None:
            key, value, headers = self._serialize(topic, key, value, headers)
        return -1 if partition is None else partition, key, value, headers

    def note_failure(self, delivery: Delivery) -> None:
        """Remember a failure until somebody has seen it."""
        self._unseen.append(delivery)

    def _refuse(self, delivery: Delivery, error: KafkaError) -> None:
        """A record that librdkafka does not take fails like one that a broker does not take.

        Unless it is no fault of the record's: then no record can be sent, and that is raised.
        """
        if error.fatal() or error.code() in _PRODUCER_IS_OVER:
            raise exception_for(error, "the producer can send nothing")
        delivery(error, None)

    def produce(self, arguments: tuple[Any, ...]) -> bool:
        """Hand one record to librdkafka; whether it had room. The delivery is the fifth."""
        try:
            self._produce(*arguments)
        except BufferError:
            return False
        except KafkaException as error:
            self._refuse(arguments[4], error.args[0])
        except TypeError as error:
            raise _not_bytes(arguments[2], arguments[1], error) from None
        return True

    def _send_later(self, arguments: tuple[Any, ...]) -> None:
        """Wait for room; the record's place is behind those that were sent before it."""
        deadline = monotonic() + self.max_block_s
        while (left_s := deadline - monotonic()) > 0:
            self._poll(min(left_s, _WAIT_S))
            if self.produce(arguments):
                return
        raise self.no_room()

    def no_room(self) -> TimedOut:
        return TimedOut(
            f"no room for another record within max.block.ms ({self.max_block_s * 1000:.0f}):"
            f" {len(self)} wait to be acknowledged"
        )


def _not_bytes(key: Any, value: Any, error: TypeError) -> NotBytes | TypeError:
    """Why librdkafka does not take a record, and what would make bytes of it."""
    for name, part in (("value", value), ("key", key)):
        if not isinstance(part, bytes | bytearray | memoryview | str | None):
            return NotBytes(
                f"a {name} must be bytes, text or None, not {type(part).__name__};"
                f" give the Producer {name}_serializer=function"
            )
    return error


def records_are(count: int) -> str:
    return "1 record is" if count == 1 else f"{count} records are"


class PartitionCounts:
    """How many partitions topics have: asked once, and again from time to time, as they grow."""

    def __init__(self, producer: confluent_kafka.Producer, timeout_s: float) -> None:
        self._producer = producer
        self._timeout_s = timeout_s
        self._known: dict[str, tuple[int, float]] = {}

    def is_known(self, topic: str) -> bool:
        return topic in self._known and monotonic() < self._known[topic][1]

    def of(self, topic: str) -> int:
        count, until = self._known.get(topic, (0, 0.0))
        return count if monotonic() < until else self._asked(topic)

    def checked(self, topic: str, partition: int) -> int:
        """A partition that the topic has; new ones are known as soon as they are used."""
        count = self.of(topic)
        if partition >= count:
            count = self._asked(topic)
        return checked(partition, topic, count, "there is no partition")

    def _asked(self, topic: str) -> int:
        deadline = monotonic() + self._timeout_s
        while True:
            left_s = max(0.001, deadline - monotonic())
            try:
                found = self._producer.list_topics(topic, timeout=left_s).topics[topic]
            except KafkaException as error:
                raise self._unanswered(topic, raised(error)) from None
            if found.partitions and found.error is None:
                self._known[topic] = (len(found.partitions), monotonic() + _METADATA_S)
                return len(found.partitions)
            # A topic may come into being by being named; that takes a moment.
            if monotonic() + 0.1 > deadline:
                raise UnknownTopicOrPartition(f"topic {topic!r} does not exist")
            time.sleep(0.1)

    def _unanswered(self, topic: str, error: HeadraceError) -> TimedOut:
        return TimedOut(f"no broker tells the partitions of {topic!r} within max.block.ms: {error}")
