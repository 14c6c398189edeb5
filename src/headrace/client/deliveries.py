"""Outcomes of sent records: one inexpensive future per record.

librdkafka reports outcomes only to a thread that polls. So a delivery needs no lock and no thread:
waiting for it polls. The delivery itself is the callback of librdkafka.
"""

import time
from collections.abc import Callable
from typing import Any, Protocol

from confluent_kafka import KafkaError, Message

from headrace.client.librdkafka import TimedOut, exception_for
from headrace.client.records import ProducerRecord, RecordMetadata
from headrace.errors import HeadraceError

WAIT_S = 0.05
"""Polling interval; another thread may receive the outcome that this one waits for."""


class DeliveryFailed(HeadraceError):
    """A record was not delivered; `record` is the record as it was passed to `send`."""

    def __init__(self, message: str, record: ProducerRecord) -> None:
        super().__init__(message)
        self.record = record


class DeliveryOwner(Protocol):
    """The part of a producer that a delivery uses."""

    def poll(self, timeout_s: float = 0.0) -> int: ...

    def note_failure(self, delivery: "Delivery") -> None: ...


class Delivery:
    """The outcome of one record, now or later.

    The record is kept in parts, because a second object per record would double the runs of the
    garbage collector.
    """

    __slots__ = (
        "_callback",
        "_headers",
        "_key",
        "_outcome",
        "_owner",
        "_partition",
        "_timestamp_ms",
        "_topic",
        "_value",
        "is_seen",
    )

    def __init__(
        self,
        owner: DeliveryOwner,
        callback: "Callable[[Delivery], None] | None",
        topic: str,
        value: Any,
        key: Any,
        headers: Any,
        timestamp_ms: int,
        partition: int | None,
    ) -> None:
        self._owner = owner
        self._callback = callback
        self._topic = topic
        self._value = value
        self._key = key
        self._headers = headers
        self._timestamp_ms = timestamp_ms
        self._partition = partition
        self._outcome: Message | KafkaError | None = None

    def __call__(self, error: KafkaError | None, message: Message | None) -> None:
        """Receive the delivery report of librdkafka."""
        if error is None:
            self._outcome = message
        else:
            self._outcome = error
            self.is_seen = self._callback is not None
            self._owner.note_failure(self)
        if self._callback is not None:
            self._callback(self)

    @property
    def record(self) -> ProducerRecord:
        """The record as it was passed to `send`."""
        return ProducerRecord(
            topic=self._topic,
            value=self._value,
            key=self._key,
            headers=self._headers,
            timestamp_ms=self._timestamp_ms,
            partition=self._partition,
        )

    def done(self) -> bool:
        """Return whether the outcome is known."""
        if self._outcome is None:
            self._owner.poll(0)
        return self._outcome is not None

    def result(self, timeout_s: float | None = None) -> RecordMetadata:
        """Wait for the place of the record; raise `DeliveryFailed` if it was not delivered."""
        if self._outcome is None:
            self._wait(timeout_s)
        if failure := self.failure:
            raise failure
        return self.metadata

    def exception(self, timeout_s: float | None = None) -> DeliveryFailed | None:
        """Wait for the outcome; return its error, or None for a delivered record."""
        if self._outcome is None:
            self._wait(timeout_s)
        return self.failure

    @property
    def metadata(self) -> RecordMetadata:
        """The place of a delivered record."""
        message = self._outcome
        assert isinstance(message, Message), "the record is delivered"
        offset, partition = message.offset(), message.partition()
        return RecordMetadata(
            topic=self._topic,
            partition=-1 if partition is None else partition,
            offset=-1 if offset is None else offset,
            timestamp_ms=message.timestamp()[1],
        )

    @property
    def failure(self) -> DeliveryFailed | None:
        """The error of a record that was not delivered; reading it marks it as seen."""
        if not isinstance(self._outcome, KafkaError):
            return None
        self.is_seen = True
        cause = exception_for(self._outcome)
        text = f"a record for {self._topic!r} was not delivered: {cause}"
        failure = DeliveryFailed(text, self.record)
        failure.__cause__ = cause
        return failure

    def _wait(self, timeout_s: float | None) -> None:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while self._outcome is None:
            left_s = WAIT_S if deadline is None else deadline - time.monotonic()
            if left_s <= 0:
                raise TimedOut(f"no outcome of a record for {self._topic!r} after {timeout_s} s")
            self._owner.poll(min(left_s, WAIT_S))
