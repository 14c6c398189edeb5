"""Many records into one topic, quickly and in order: confluent-kafka's producer wrapped once.

Records are handed over in lists; no Python code runs per record but what builds it. The number
of bytes that wait in librdkafka is bounded here, before the hand-over: librdkafka refuses single
records when its queue is full while it takes later ones, and so a retry would break the order.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from headrace.client.cluster import NoSuchTopic
from headrace.client.librdkafka import ClientFailure, client_settings, translated
from headrace.client.records import OutgoingRecord

IN_FLIGHT_BYTES_MAX = 64 << 20
QUEUE_MESSAGES_MAX = 2_000_000

_DEFAULTS: dict[str, Any] = {
    "acks": "all",
    "linger.ms": 5,
    "partitioner": "murmur2_random",  # Java's choice: the same key meets the same partition.
    "batch.num.messages": 100_000,
    "message.max.bytes": 1_000_000_000,  # The topic's own limit decides, not the client's.
    "batch.size": 1_000_000,
    "queue.buffering.max.messages": QUEUE_MESSAGES_MAX,
    "queue.buffering.max.kbytes": 2_097_151,
    "delivery.report.only.error": True,
}


class RecordProducer:
    """Sends lists of records to a topic and counts what was not delivered."""

    def __init__(self, bootstrap: str, topic: str, properties: Mapping[str, Any]) -> None:
        self.topic = topic
        self.sent = 0
        self.failures: Counter[str] = Counter()
        self._bootstrap = bootstrap
        try:
            self._producer = Producer(client_settings(bootstrap, properties, _DEFAULTS))
        except KafkaException as error:
            raise translated(error, bootstrap) from error

    def require_topic(self, timeout_s: float = 10.0, creation_s: float = 3.0) -> None:
        """Make sure that the topic is there, or is made by the broker as it is first named."""
        deadline = time.monotonic() + creation_s
        while self._topic_is_missing(timeout_s):
            if time.monotonic() > deadline:
                present = self._producer.list_topics(timeout=timeout_s).topics
                raise NoSuchTopic(self.topic, present)
            time.sleep(0.1)

    def send_values(self, values: Sequence[bytes | None], partition: int = -1) -> None:
        """Send bare values: the quickest way."""
        self._send_batch([{"value": value} for value in values], _size_of(values), partition)

    def send_pairs(
        self,
        pairs: Sequence[tuple[bytes | None, bytes | None]],
        partition: int = -1,
        headers: Sequence[tuple[str, bytes | None]] = (),
        timestamp_ms: int = 0,
    ) -> None:
        """Send keys with values; all have the same headers and time, where any are given."""
        size = _size_of([key for key, _ in pairs]) + _size_of([value for _, value in pairs])
        if not headers and not timestamp_ms:
            messages = [{"key": key, "value": value} for key, value in pairs]
            self._send_batch(messages, size, partition)
            return
        # librdkafka's batches carry no headers and no times, so these go one by one.
        self._make_room(len(pairs), size)
        shared = list(headers)
        for key, value in pairs:
            self._send_one(value, key, partition, timestamp_ms, shared)
        self._sent(len(pairs))

    def send(self, records: Sequence[OutgoingRecord]) -> None:
        """Send records that differ in everything."""
        size = _size_of([r.value for r in records]) + _size_of([r.key for r in records])
        self._make_room(len(records), size)
        for value, key, headers, timestamp_ms, partition in records:
            self._send_one(value, key, partition, timestamp_ms, list(headers))
        self._sent(len(records))

    def poll(self) -> None:
        """Let delivery failures be noticed while nothing is sent."""
        self._producer.poll(0)

    @property
    def waiting(self) -> int:
        """How many records are handed over and not yet acknowledged."""
        return len(self._producer)

    @property
    def failed(self) -> int:
        """How many records were not delivered."""
        return sum(self.failures.values())

    def flush(self, timeout_s: float) -> int:
        """Wait until everything is acknowledged or failed; the result is what still waits."""
        return int(self._producer.flush(timeout_s))

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
                self.failures.update(m["_error"].str() for m in messages if "_error" in m)
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
            # By position, as names cost a third more here: topic, value, key, partition,
            # callback, on_delivery (which counts only where no callback is given at all, not even
            # None), timestamp, headers.
            self._producer.produce(
                self.topic, value, key, partition, self._on_failure, None, timestamp_ms, headers
            )
        except KafkaException as error:
            self.failures[error.args[0].str()] += 1

    def _sent(self, count: int) -> None:
        self.sent += count
        self._producer.poll(0)

    def _make_room(self, count: int, size_bytes: int) -> None:
        """Wait until these records fit into the bound, judged by their own mean size."""
        mean_bytes = size_bytes // max(1, count) + 1
        allowed = max(1, min(IN_FLIGHT_BYTES_MAX // mean_bytes, QUEUE_MESSAGES_MAX) - count)
        while len(self._producer) > allowed:
            self._producer.poll(0.01)

    def _on_failure(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self.failures[error.str()] += 1

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


def _size_of(parts: Sequence[bytes | None]) -> int:
    return sum(len(part) for part in parts if part is not None)
