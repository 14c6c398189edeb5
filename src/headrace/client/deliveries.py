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
    """The outcome of one record, now or later."""

    __slots__ = ("_callback", "_error", "_message", "_owner", "_sent", "is_done", "is_seen")

    def __init__(
        self,
        owner: Owner,
        sent: tuple[str, Any, Any, Any, int, int | None],
        callback: "Callable[[Delivery], None] | None",
    ) -> None:
        self._owner = owner
        self._sent = sent
        self._callback = callback
        self._error: KafkaError | None = None
        self.is_done = False

    def __call__(self, error: KafkaError | None, message: Message | None) -> None:
        """librdkafka's word on the record."""
        self._message = message
        self.is_done = True
        if error is not None:
            self._error = error
            self.is_seen = self._callback is not None
            self._owner.note_failure(self)
        if self._callback is not None:
            self._callback(self)

    @property
    def record(self) -> ProducerRecord:
        """The record as it was given to `send`."""
        return ProducerRecord(*self._sent)

    def done(self) -> bool:
        """Whether the outcome is known."""
        if not self.is_done:
            self._owner.poll(0)
        return self.is_done

    def result(self, timeout_s: float | None = None) -> RecordMetadata:
        """Where the record lies, as soon as that is known; raises `DeliveryFailed` if nowhere."""
        if not self.is_done:
            self._wait(timeout_s)
        if failure := self.failure:
            raise failure
        return self.metadata

    def exception(self, timeout_s: float | None = None) -> DeliveryFailed | None:
        """Why the record was not delivered, or nothing if it was."""
        if not self.is_done:
            self._wait(timeout_s)
        return self.failure

    @property
    def metadata(self) -> RecordMetadata:
        """Where the record lies, when it is known to be delivered."""
        message = self._message
        assert message is not None
        offset, partition = message.offset(), message.partition()
        return RecordMetadata(
            topic=self._sent[0],
            partition=-1 if partition is None else partition,
            offset=-1 if offset is None else offset,
            timestamp_ms=message.timestamp()[1],
        )

    @property
    def failure(self) -> DeliveryFailed | None:
        """Why the record is not delivered, when that is known; asking means to have seen it."""
        if self._error is None:
            return None
        self.is_seen = True
        cause = exception_for(self._error)
        text = f"a record for {self._sent[0]!r} is not delivered: {cause}"
        failure = DeliveryFailed(text, self.record)
        failure.__cause__ = cause
        return failure

    def _wait(self, timeout_s: float | None) -> None:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not self.is_done:
            left_s = WAIT_S if deadline is None else deadline - time.monotonic()
            if left_s <= 0:
                raise TimedOut(f"no word on a record for {self._sent[0]!r} after {timeout_s} s")
            self._owner.poll(min(left_s, WAIT_S))
