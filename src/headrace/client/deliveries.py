"""What becomes of a record that was sent: a future that costs little, one per record.

librdkafka tells an outcome only to a thread that polls it. So a delivery needs no lock and no
thread of its own: whoever waits for it polls. It is itself the callback that librdkafka calls.
"""

import time
from collections.abc import Callable
from typing import Any, Protocol

from confluent_kafka import KafkaError, Message

from headrace.client.librdkafka import TimedOut, exception_for
from headrace.client.records import ProducerRecord, RecordMetadata
from headrace.errors import HeadraceError

WAIT_S = 0.05
"""Another thread may take the outcome that this one waits for, so it looks this often."""


class DeliveryFailed(HeadraceError):
    """A record was not delivered; `record` is the record as it was given to `send`."""

    def __init__(self, message: str, record: ProducerRecord) -> None:
        super().__init__(message)
        self.record = record


class Owner(Protocol):
    """What a delivery needs of its producer."""

    def poll(self, timeout_s: float = 0.0) -> int: ...

    def note_failure(self, delivery: "Delivery") -> None: ...


class Delivery:
    """The outcome of one record, now or later.

    The record is kept in parts: with a second object for each, the garbage collector would come
    twice as often.
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
        owner: Owner,
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
        """librdkafka's word on the record."""
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
        """The record as it was given to `send`."""
        return ProducerRecord(
            topic=self._topic,
            value=self._value,
            key=self._key,
            headers=self._headers,
            timestamp_ms=self._timestamp_ms,
            partition=self._partition,
        )

    def done(self) -> bool:
        """Whether the outcome is known."""
        if self._outcome is None:
            self._owner.poll(0)
        return self._outcome is not None

    def result(self, timeout_s: float | None = None) -> RecordMetadata:
        """Where the record lies, as soon as that is known; raises `DeliveryFailed` if nowhere."""
        if self._outcome is None:
            self._wait(timeout_s)
        if failure := self.failure:
            raise failure
        return self.metadata

    def exception(self, timeout_s: float | None = None) -> DeliveryFailed | None:
        """Why the record was not delivered, or nothing if it was."""
        if self._outcome is None:
            self._wait(timeout_s)
        return self.failure

    @property
    def metadata(self) -> RecordMetadata:
        """Where the record lies, when it is known to be delivered."""
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
        """Why the record is not delivered, when that is known; asking means to have seen it."""
        if not isinstance(self._outcome, KafkaError):
            return None
        self.is_seen = True
        cause = exception_for(self._outcome)
        text = f"a record for {self._topic!r} is not delivered: {cause}"
        failure = DeliveryFailed(text, self.record)
        failure.__cause__ = cause
        return failure

    def _wait(self, timeout_s: float | None) -> None:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while self._outcome is None:
            left_s = WAIT_S if deadline is None else deadline - time.monotonic()
            if left_s <= 0:
                raise TimedOut(f"no word on a record for {self._topic!r} after {timeout_s} s")
            self._owner.poll(min(left_s, WAIT_S))
