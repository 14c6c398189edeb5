"""Bulk producing into one topic, fast and in order, on confluent-kafka's producer.

Records are passed in lists, without Python code per record except its construction. The bytes
queued in librdkafka are bounded here, before the call. A full librdkafka queue rejects single
records but may accept later ones, so a retry would break the order.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from headrace.client.cluster import NoSuchTopic
from headrace.client.librdkafka import PASSING, ClientFailure, client_settings, translated
from headrace.client.records import OutgoingRecord

IN_FLIGHT_BYTES_MAX = 64 << 20
QUEUE_MESSAGES_MAX = 2_000_000

_FLUSH_SLICE_S = 0.2

_DEFAULTS: dict[str, Any] = {
    "acks": "all",
    "linger.ms": 5,
    "partitioner": "murmur2_random",  # Java's partitioner: the same key maps to the same partition.
    "batch.num.messages": 100_000,
    "message.max.bytes": 1_000_000_000,  # The topic's limit applies, not the client's.
    "batch.size": 1_000_000,
    "queue.buffering.max.messages": QUEUE_MESSAGES_MAX,
    "queue.buffering.max.kbytes": 2_097_151,
    "delivery.report.only.error": True,
}


class RecordProducer:
    """Sends lists of records to a topic and counts failed deliveries."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        properties: Mapping[str, Any],
        while_waiting: Callable[[], None] | None = None,
    ) -> None:
        self.topic = topic
        self.sent = 0
        self.failures: Counter[str] = Counter()
        self._bootstrap = bootstrap
        self._while_waiting = while_waiting or _nothing
        self._outage: str | None = None
        self._delivered_before = 0
        settings = client_settings(bootstrap, properties, _DEFAULTS)
        try:
            self._producer = Producer({"error_cb": self._on_trouble, **settings})
        except KafkaException as error:
            raise translated(error, bootstrap) from error

    def require_topic(self, timeout_s: float = 10.0, creation_s: float = 3.0) -> None:
        """Require that the topic exists, or that the broker creates it on the first request."""
        deadline = time.monotonic() + creation_s
        while self._topic_is_missing(timeout_s):
            if time.monotonic() > deadline:
                present = self._producer.list_topics(timeout=timeout_s).topics
                raise NoSuchTopic(self.topic, present)
            time.sleep(0.1)

    def send_values(self, values: Sequence[bytes | None], partition: int = -1) -> None:
        """Send bare values: the fastest way."""
        self._send_batch([{"value": value} for value in values], _size_of(values), partition)

    def send_pairs(
        self,
        pairs: Sequence[tuple[bytes | None, bytes | None]],
        partition: int = -1,
        headers: Sequence[tuple[str, bytes | None]] = (),
        timestamp_ms: int = 0,
    ) -> None:
        """Send keys with values; headers and timestamp, if given, apply to all records."""
        size = _size_of([key for key, _ in pairs]) + _size_of([value for _, value in pairs])
        if not headers and not timestamp_ms:
            messages = [{"key": key, "value": value} for key, value in pairs]
            self._send_batch(messages, size, partition)
            return
        # librdkafka's batch call has no headers and timestamps, so these records go one by one.
        self._make_room(len(pairs), size)
        shared = list(headers)
        for key, value in pairs:
            self._send_one(value, key, partition, timestamp_ms, shared)
        self._sent(len(pairs))

    def send(self, records: Sequence[OutgoingRecord]) -> None:
        """Send records with individual fields."""
        size = _size_of([r.value for r in records]) + _size_of([r.key for r in records])
        self._make_room(len(records), size)
        for value, key, headers, timestamp_ms, partition in records:
            self._send_one(value, key, partition, timestamp_ms, list(headers))
        self._sent(len(records))

    def poll(self) -> None:
        """Serve delivery reports while nothing is sent."""
        self._producer.poll(0)

    @property
    def waiting(self) -> int:
        """Number of records sent and not yet acknowledged."""
        return len(self._producer)

    @property
    def failed(self) -> int:
        """Number of records that were not delivered."""
        return sum(self.failures.values())

    @property
    def delivered(self) -> int:
        """Number of acknowledged records."""
        return self.sent - self.failed - self.waiting

    @property
    def outage(self) -> str | None:
        """Reason why no broker accepts records now; None once one accepts records again."""
        if self._outage is not None and self.delivered > self._delivered_before:
            self._outage = None
        return self._outage

    def partitions(self, timeout_s: float = 10.0) -> list[int]:
        """Return the partitions of the topic."""
        try:
            found = self._producer.list_topics(self.topic, timeout=timeout_s)
        except KafkaException as error:
            raise translated(error, self._bootstrap) from error
        return sorted(found.topics[self.topic].partitions)

    def flush(self, timeout_s: float) -> int:
        """Wait until all records are acknowledged or failed; return the number still pending."""
        deadline = time.monotonic() + timeout_s
        while True:
            left_s = deadline - time.monotonic()
            waiting = int(self._producer.flush(max(0.0, min(left_s, _FLUSH_SLICE_S))))
            if not waiting or left_s <= 0:
                return waiting
            self._while_waiting()

    def _send_batch(self, messages: list[dict[str, Any]], size_bytes: int, partition: int) -> None:
        self._make_room(len(messages), size_bytes)
        produce_batch = getattr(self._producer, "produce_batch", None)
        if produce_batch is None:  # confluent-kafka before 2.13 sends record by record only.
            for message in messages:
                self._send_one(message["value"], message.get("key"), partition, 0, [])
        else:
            taken = produce_batch(
                self.topic, messages, partition=partition, on_delivery=self._on_failure
            )
            if taken != len(messages):
                self.failures.update(
                    self._failure_text(m["_error"], partition) for m in messages if "_error" in m
                )
        self._sent(len(messages))

    def _send_one(
        self,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        timestamp_ms: int,
        headers: Any,
    ) -> None:
        try:
            # Positional arguments, as keywords cost a third more: topic, value, key, partition,
            # callback, on_delivery (used only if callback is absent, so not even None), timestamp,
            # headers.
            self._producer.produce(
                self.topic, value, key, partition, self._on_failure, None, timestamp_ms, headers
            )
        except KafkaException as error:
            self.failures[self._failure_text(error.args[0], partition)] += 1

    def _sent(self, count: int) -> None:
        self.sent += count
        self._producer.poll(0)

    def _make_room(self, count: int, size_bytes: int) -> None:
        """Wait until these records fit into the bound, estimated by their mean size."""
        mean_bytes = size_bytes // max(1, count) + 1
        allowed = max(1, min(IN_FLIGHT_BYTES_MAX // mean_bytes, QUEUE_MESSAGES_MAX) - count)
        while len(self._producer) > allowed:
            self._producer.poll(0.01)
            self._while_waiting()

    def _on_failure(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures[self._failure_text(error, message.partition())] += 1

    def _on_trouble(self, error: KafkaError) -> None:
        """Keep the reason of an outage; librdkafka itself retries."""
        if error.code() in PASSING and self._outage is None:
            self._outage = error.str()
            self._delivered_before = self.delivered

    def _failure_text(self, error: KafkaError, partition: int | None) -> str:
        if error.code() == KafkaError._UNKNOWN_PARTITION:
            return f"{self.topic} has no partition {partition}"
        return error.str()

    def _topic_is_missing(self, timeout_s: float) -> bool:
        try:
            topic = self._producer.list_topics(self.topic, timeout=timeout_s).topics[self.topic]
        except KafkaException as error:
            raise translated(error, self._bootstrap) from error
        if topic.error is None or topic.error.code() == KafkaError.LEADER_NOT_AVAILABLE:
            return False
        if topic.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return True
        raise ClientFailure(f"topic {self.topic!r}: {topic.error.str()}")


def _nothing() -> None:
    """Default callback while waiting: does nothing."""


def _size_of(parts: Sequence[bytes | None]) -> int:
    return sum(len(part) for part in parts if part is not None)
