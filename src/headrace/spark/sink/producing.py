"""A producer for the records of Arrow batches, with bounded memory; the first failure ends it."""

import time
from collections.abc import Mapping
from typing import Any, Self

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message

from headrace.client.cluster import NoSuchTopic
from headrace.client.librdkafka import TimedOut, created, exception_for, raised
from headrace.client.librdkafka_log import FoldedLog
from headrace.client.producer_transactions import ProducerTransactions
from headrace.client.properties import split
from headrace.errors import HeadraceError, InvalidTransactionTimeout, ProducerFenced
from headrace.spark.sink.columns import ANY_PARTITION, NOW, Rows
from headrace.spark.sink.errors import Fenced, SinkError
from headrace.spark.sink.options import Guarantee, SinkOptions

IN_FLIGHT_BYTES_MAX = 32 << 20
IN_FLIGHT_RECORDS_MAX = 500_000

_POLL_S = 0.02
_REASON_S_MAX = 1.0
"""The wait for the failure that causes the first ones."""
_TOPIC_ATTEMPTS = 30
_TOPIC_LOOKS = 3
"""Lookups of a topic that brokers do not create."""
_TOPIC_PAUSE_S = 0.1
_MAKES_TOPICS = "allow.auto.create.topics"
_FENCED = frozenset(
    {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH}
)
_NO_TOPIC = frozenset({KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART})
_CONSEQUENCES = frozenset(
    {KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT, KafkaError._STATE, KafkaError._FATAL}
)
"""Errors that follow from another failure."""
_DEFAULTS: dict[str, Any] = {
    "client.id": "headrace-sink",
    "acks": "all",
    "linger.ms": 5,
    "partitioner": "murmur2_random",  # The same partition for a key as Java's default.
    "batch.num.messages": 100_000,
    "message.max.bytes": 1_000_000_000,  # The topic's limit applies instead.
    "queue.buffering.max.messages": 2 * IN_FLIGHT_RECORDS_MAX,
    "queue.buffering.max.kbytes": 2_097_151,  # `_make_room` bounds the queue.
    "topic.metadata.propagation.max.ms": 5_000,
    "enable.metrics.push": False,
    # A task's producer is short-lived, so it connects to all brokers at once.
    "enable.sparse.connections": False,
}


class SinkProducer:
    """Sends one task's records; with a transactional id, in one transaction.

    As a context manager it aborts the transaction on an exception, and leaves it open otherwise.
    """

    def __init__(self, options: SinkOptions, transactional_id: str | None = None) -> None:
        given, own = split(options.properties)
        # With singleTransaction a second task is an error, and a failed write must not leave a
        # topic, so brokers do not create it.
        makes_topics = {_MAKES_TOPICS: not options.is_single_transaction}
        chosen = {**_DEFAULTS, **makes_topics, **given}
        settings = {**chosen, "logger": FoldedLog(), **_guaranteed(options)}
        if transactional_id is not None:
            settings["transactional.id"] = transactional_id
        self._options = options
        self._timeout_s = own.max_block_s
        self._makes_topics = str(chosen[_MAKES_TOPICS]).lower() == "true"
        self._is_transactional = transactional_id is not None
        self._producer = created(confluent_kafka.Producer, settings)
        self._transactions = ProducerTransactions(self._producer, own.max_block_s)
        self._failure: KafkaError | None = None
        self._failed_at = ""
        self._token_offset = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._producer.purge()
            if self._is_transactional:
                self._transactions.abort()

    def begin(self) -> None:
        """Claim the transactional id, which aborts its open transaction, and begin."""
        try:
            self._transactions.begin()
        except InvalidTransactionTimeout:
            raise SinkError(
                "the brokers do not allow a transaction.timeout.ms of"
                f" {self._options.transaction_timeout_ms}: set kafka.transaction.timeout.ms to"
                " their transaction.max.timeout.ms or less"
            ) from None
        except ProducerFenced as error:
            raise Fenced(f"another attempt of this task has taken over: {error}") from None

    def require_topic(self, topic: str) -> None:
        """Raise an error if a topic is missing; brokers may create it at the lookup."""
        for _ in range(_TOPIC_ATTEMPTS if self._makes_topics else _TOPIC_LOOKS):
            try:
                found = self._producer.list_topics(topic, timeout=self._timeout_s).topics[topic]
            except KafkaException as error:
                raise raised(error, f"topic {topic!r}") from None
            if found.error is None or found.error.code() == KafkaError.LEADER_NOT_AVAILABLE:
                return
            if found.error.code() not in _NO_TOPIC:
                raise exception_for(found.error, f"topic {topic!r}")
            time.sleep(_TOPIC_PAUSE_S)
        missing = NoSuchTopic(topic, self._producer.list_topics(timeout=self._timeout_s).topics)
        if self._makes_topics:
            raise missing
        raise SinkError(
            f"{missing}, and singleTransaction=true does not create topics: create it first, or set"
            f" kafka.{_MAKES_TOPICS}=true"
        )

    def send(self, rows: Rows, size_bytes: int) -> None:
        """Send records, after waiting for room; raise the failure of earlier ones."""
        self._make_room(len(rows.values), size_bytes)
        try:
            if rows.is_plain:
                self._send_together(rows)
            else:
                self._send_apart(rows)
        except KafkaException as error:
            self._fail(error.args[0])
        self._poll(0)

    def send_token(self, topic: str, partition: int, key: bytes, value: bytes | None) -> int:
        """Send the last record, wait for all acknowledgements, and return its offset."""
        try:
            self._producer.produce(topic, value, key, partition, on_delivery=self._on_token)
        except KafkaException as error:
            self._fail(error.args[0])
        self.flush()
        return self._token_offset

    def flush(self) -> None:
        """Wait until all records are acknowledged, at most delivery.timeout.ms.

        confluent-kafka's own flush is not used, because callbacks after a fatal error make it raise
        an exception that cannot be caught.
        """
        while len(self._producer):
            self._poll(_POLL_S)
        self._poll(0)

    def _poll(self, timeout_s: float) -> None:
        """Handle delivery reports, and raise the first failure that is a cause."""
        self._serve(timeout_s)
        if self._failure is not None:
            deadline = time.monotonic() + _REASON_S_MAX
            while self._lacks_reason() and time.monotonic() < deadline:
                self._serve(_POLL_S)
            raise explained(self._failure, self._failed_at)

    def _serve(self, timeout_s: float) -> None:
        try:
            self._producer.poll(timeout_s)
        except KafkaException as error:
            self._fail(error.args[0])

    def _lacks_reason(self) -> bool:
        """Return whether only consequences were reported, and other reports may follow."""
        is_consequence = self._failure is not None and self._failure.code() in _CONSEQUENCES
        return is_consequence and len(self._producer) > 0

    def _send_together(self, rows: Rows) -> None:
        if rows.keys is None:
            messages: list[dict[str, Any]] = [{"value": value} for value in rows.values]
        else:
            messages = [
                {"value": value, "key": key}
                for value, key in zip(rows.values, rows.keys, strict=True)
            ]
        topic = self._topic()
        taken = self._producer.produce_batch(topic, messages, on_delivery=self._on_delivery)
        if taken != len(messages):
            refused = next(message["_error"] for message in messages if "_error" in message)
            self._fail(refused, topic)

    def _send_apart(self, rows: Rows) -> None:
        """Send one by one, because librdkafka's batches support neither headers nor times."""
        count = len(rows.values)
        topics = rows.topics or [self._topic()] * count
        produce = self._producer.produce
        for topic, value, key, partition, headers, timestamp_ms in zip(
            topics,
            rows.values,
            rows.keys or [None] * count,
            rows.partitions or [ANY_PARTITION] * count,
            rows.headers or [[]] * count,
            rows.timestamps_ms or [NOW] * count,
            strict=True,
        ):
            # Positions: topic, value, key, partition, callback, its alias, timestamp, headers.
            produce(topic, value, key, partition, self._on_delivery, None, timestamp_ms, headers)

    def _topic(self) -> str:
        assert self._options.topic is not None, "rows without topics need the option"
        return self._options.topic

    def _make_room(self, count: int, size_bytes: int) -> None:
        """Wait until these records fit into the bound, by their mean size."""
        mean_bytes = size_bytes // max(1, count) + 1
        bound = min(IN_FLIGHT_BYTES_MAX // mean_bytes, IN_FLIGHT_RECORDS_MAX)
        while len(self._producer) > max(1, bound - count):
            self._poll(_POLL_S)

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._fail(error, message.topic() or "")

    def _on_token(self, error: KafkaError | None, message: Message) -> None:
        self._on_delivery(error, message)
        self._token_offset = message.offset() or 0

    def _fail(self, error: KafkaError, topic: str = "") -> None:
        """Keep the first failure that is a cause."""
        if self._failure is None or self._failure.code() in _CONSEQUENCES:
            self._failure, self._failed_at = error, topic


def explained(error: KafkaError, topic: str) -> HeadraceError:
    """Translate a failure to an error with a remedy."""
    code = error.code()
    where = f"topic {topic!r}" if topic else "the sink"
    if code in _FENCED:
        return Fenced(
            f"{where}: the transaction is lost: another attempt of this task has taken over, or it"
            " took longer than kafka.transaction.timeout.ms"
        )
    if code == KafkaError.MSG_SIZE_TOO_LARGE:
        return SinkError(
            f"{where} rejects a batch of this size: raise its max.message.bytes, or, if no single"
            " record is that large, lower kafka.batch.size"
        )
    if code in _NO_TOPIC:
        return SinkError(f"{where} does not exist: create it first")
    if code == KafkaError._UNKNOWN_PARTITION:
        return SinkError(f"{where} does not have the partition that a row names")
    if code in (KafkaError._MSG_TIMED_OUT, KafkaError._TIMED_OUT):
        return TimedOut(
            f"{where}: no broker acknowledged the records within kafka.delivery.timeout.ms"
        )
    return exception_for(error, where)


def _guaranteed(options: SinkOptions) -> Mapping[str, Any]:
    if options.guarantee is Guarantee.EXACTLY_ONCE:
        return {"transaction.timeout.ms": options.transaction_timeout_ms}
    return {"enable.idempotence": options.guarantee is Guarantee.IDEMPOTENT}
