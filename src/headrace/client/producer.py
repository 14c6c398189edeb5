"""A producer on confluent-kafka's, with futures, partitioners and transactions.

It adds partitioners as Python functions, a future per record that returns the record with its
error, a bounded wait for room in the buffer, and transactions as `with` blocks.
"""

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from time import monotonic
from typing import Any, Self

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException

from headrace.client.chunked_sends import chunked_sends
from headrace.client.consumer import Consumer
from headrace.client.deliveries import Delivery
from headrace.client.librdkafka import TimedOut, created, exception_for, raised
from headrace.client.librdkafka_log import FoldedLog
from headrace.client.partitioners import Partitioner, checked, chosen
from headrace.client.producer_transactions import ProducerTransactions
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
    "queue.buffering.max.kbytes": 32
    << 10,  # Like Java's buffer.memory; librdkafka's default is a gigabyte.
}
_PRODUCER_IS_OVER = frozenset(
    {KafkaError._STATE, KafkaError._FATAL, KafkaError._FENCED, KafkaError._PURGE_QUEUE}
)


class NotBytes(HeadraceError, TypeError):
    """A key or a value that is not bytes and has no serializer."""


class Producer:
    """Sends records; close it, or use it in a `with` statement, or the last records may be lost.

    Callbacks are called while `send`, `poll`, `flush` or the `result` of a delivery runs, in the
    thread of the caller.
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
            raise InvalidProperty(
                "delivery.report.only.error is not supported: every delivery needs a report"
            )
        name, self._partitioner = chosen(partitioner or given.pop("partitioner", None))
        settings = {**_DEFAULTS, "logger": FoldedLog(), **given, "partitioner": name}
        self._chunked = chunked_sends(settings, own.chunk_bytes)
        producer = created(confluent_kafka.Producer, settings)
        self._bootstrap = given.get("bootstrap.servers", "")
        self._serialize = serialization(key_serializer, value_serializer)
        self._is_plain = not (self._partitioner or self._serialize or self._chunked)
        self._producer = producer
        self._produce = producer.produce
        self._poll = producer.poll
        self.partition_counts = PartitionCounts(producer, self.max_block_s)
        self.transactions = ProducerTransactions(producer, self.max_block_s)
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
        """Send a record, and return its future immediately.

        Without serializers, keys and values are bytes, text or None. Waits up to `max.block.ms` for
        room in the buffer, then raises a `TimeoutError`.
        """
        delivery = Delivery(self, on_delivery, topic, value, key, headers, timestamp_ms, partition)
        target = -1
        if partition is not None or not self._is_plain:
            target, key, value, headers = self.prepared(topic, key, value, partition, headers)
            if self.is_chunked(value):
                self._send_chunks(topic, value, key, target, delivery, timestamp_ms, headers)
                return delivery
        try:
            # Positional arguments, because keywords cost a third more: topic, value, key,
            # partition, callback, the callback's second name, timestamp, headers.
            self._produce(topic, value, key, target, delivery, None, timestamp_ms, headers)
        except BufferError:
            self._send_later((topic, value, key, target, delivery, None, timestamp_ms, headers))
        except KafkaException as error:
            self._refuse(delivery, error.args[0])
        except TypeError as error:
            raise _not_bytes(key, value, error) from None
        # Polling costs as much as sending, so it is not done for every record.
        if (now := monotonic()) > self._poll_at:
            self._poll_at = now + _POLL_S
            self._poll(0)
        return delivery

    def poll(self, timeout_s: float = 0.0) -> int:
        """Serve delivery reports; return their number."""
        return self._poll(timeout_s)

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until the outcome of every record is known.

        Raises the first failure without a callback or a call of `result`.
        """
        if left := self.finish(-1 if timeout_s is None else timeout_s):
            raise TimedOut(f"{records_are(left)} not acknowledged after {timeout_s} s")
        self.raise_unseen()

    def finish(self, timeout_s: float) -> int:
        """Send waiting records without lingering; return the number still in flight."""
        return self._producer.flush(timeout_s)

    def forget_failures(self) -> None:
        """Drop the failures of an aborted transaction, which are intended."""
        self._unseen.clear()

    def raise_unseen(self) -> None:
        """Raise the first failure that no caller has seen."""
        failed = [delivery for delivery in self._unseen if not delivery.is_seen]
        self._unseen.clear()
        if failed:
            failure = failed[0].failure
            assert failure is not None
            if len(failed) > 1:
                failure.add_note(f"and {records_are(len(failed) - 1)} not delivered")
            raise failure

    def init_transactions(self) -> None:
        """Take over the transactional id, and abort the previous owner's open transaction.

        A `with` on the producer calls this, and otherwise the first transaction. Until then, a
        consumer of the chain may wait for offsets of the open transaction.
        """
        self.transactions.initialize()

    @contextmanager
    def transaction(self, consumer: Consumer | None = None) -> Iterator[Self]:
        """Commit the block's records as a whole at its end, or abort them if it raises.

        With a consumer, the offsets of its returned records are part of the transaction. If the
        transaction fails, the consumer reads the same records again.
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
        """Return the number of partitions of a topic."""
        return self.partition_counts.of(topic)

    def __len__(self) -> int:
        """Return the number of records sent and not yet acknowledged."""
        return len(self._producer)

    def close(self, timeout_s: float | None = None) -> None:
        """Flush and disconnect; records still in flight after the timeout fail.

        Without a timeout they fail after `delivery.timeout.ms`, or if no broker answers within
        `max.block.ms`, which reports a wrong address within a minute.
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
        """Wait until all records are sent or a broker answers, for at most `max.block.ms`."""
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
        """Fail records still in flight, and end librdkafka's threads."""
        self._is_closed = True
        self._producer.purge()
        self._poll(0)
        if hasattr(self._producer, "close"):  # New in confluent-kafka 2.13.
            self._producer.close()

    def __enter__(self) -> Self:
        if self.is_transactional:
            self.init_transactions()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.close()
        else:
            with suppress(HeadraceError):  # Raise the first error only.
                self.close()

    def needs_metadata(self, topic: str, partition: int | None) -> bool:
        """Return whether a send must first request the topic's partitions from a broker."""
        chooses = partition is not None or self._partitioner or self._chunked
        return bool(chooses) and not self.partition_counts.is_known(topic)

    def prepared(
        self, topic: str, key: Any, value: Any, partition: int | None, headers: Any
    ) -> tuple[int, Any, Any, Any]:
        """Return the partition, key, value and headers to pass to librdkafka."""
        if partition is not None:
            partition = self.partition_counts.checked(topic, partition)
        elif self._partitioner is not None:
            count = self.partition_counts.of(topic)
            wish = self._partitioner(topic, key, value, count)
            partition = checked(wish, topic, count, "the partitioner returned")
        if self._serialize is not None:
            key, value, headers = self._serialize(topic, key, value, headers)
        return -1 if partition is None else partition, key, value, headers

    def is_chunked(self, value: Any) -> bool:
        """Return whether a record with this value is sent in chunks."""
        return self._chunked is not None and self._chunked.applies_to(value)

    def chunks(
        self, topic: str, value: Any, key: Any, partition: int, *rest: Any
    ) -> Generator[tuple[Any, ...]]:
        """Yield the arguments of `produce` for each chunk of a large record."""
        assert self._chunked is not None, "the producer sends chunks"
        if partition < 0:
            partition = self._chunked.partition_of(key, self.partition_counts.of(topic))
        yield from self._chunked.chunks(topic, value, key, partition, *rest)

    def _send_chunks(self, *parts: Any) -> None:
        # Closed after an error, so that the next record of the session has another number.
        with closing(self.chunks(*parts)) as chunks:
            for arguments in chunks:
                if not self.produce(arguments):
                    self._send_later(arguments)
        self._poll(0)

    def note_failure(self, delivery: Delivery) -> None:
        """Keep a failure until a caller has seen it."""
        self._unseen.append(delivery)

    def _refuse(self, delivery: Delivery, error: KafkaError) -> None:
        """Fail a record that librdkafka rejects, like one that a broker rejects.

        Raise an error that prevents all further records.
        """
        if error.fatal() or error.code() in _PRODUCER_IS_OVER:
            raise exception_for(error, "the producer cannot send any more")
        delivery(error, None)

    def produce(self, arguments: tuple[Any, ...]) -> bool:
        """Pass a record to librdkafka; return whether it had room. Argument 5 is the delivery."""
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
        """Wait for room in the buffer; the record keeps its place in the order."""
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
    """Return the error for a key or value of another type, with advice."""
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
    """A cache of the number of partitions of topics, refreshed from time to time."""

    def __init__(self, producer: confluent_kafka.Producer, timeout_s: float) -> None:
        self._producer = producer
        self._timeout_s = timeout_s
        self._known: dict[str, tuple[int, float]] = {}

    def is_known(self, topic: str) -> bool:
        return topic in self._known and monotonic() < self._known[topic][1]

    def of(self, topic: str) -> int:
        count, until = self._known.get(topic, (0, 0.0))
        return count if monotonic() < until else self._read(topic)

    def checked(self, topic: str, partition: int) -> int:
        """Return an existing partition; refresh the cache for a higher number."""
        count = self.of(topic)
        if partition >= count:
            count = self._read(topic)
        return checked(partition, topic, count, "there is no partition")

    def _read(self, topic: str) -> int:
        deadline = monotonic() + self._timeout_s
        while True:
            left_s = max(0.001, deadline - monotonic())
            try:
                found = self._producer.list_topics(topic, timeout=left_s).topics[topic]
            except KafkaException as error:
                raise self._timed_out(topic, raised(error)) from None
            if found.partitions and found.error is None:
                self._known[topic] = (len(found.partitions), monotonic() + _METADATA_S)
                return len(found.partitions)
            # The request may create the topic, which takes a moment.
            if monotonic() + 0.1 > deadline:
                raise UnknownTopicOrPartition(f"topic {topic!r} does not exist")
            time.sleep(0.1)

    def _timed_out(self, topic: str, error: HeadraceError) -> TimedOut:
        return TimedOut(
            f"no broker reports the partitions of {topic!r} within max.block.ms: {error}"
        )
