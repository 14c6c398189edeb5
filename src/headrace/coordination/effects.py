"""Effects of a coordinator's decision: records to write, answers to send, timers to set.

A decision reads a shard's state and changes nothing that must survive a crash: replaying the
written records does. The shell (`broker/coordinators.py`) applies the effects in this order:
records, replay, notes, timers, answers. So no answer is sent for a change that was not written.
"""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from headrace.errors import KafkaError
from headrace.protocol.coordinator_records import CoordinatorRecord

R = TypeVar("R")

Ticket = Any
"""A request that waits for its answer; decisions store it and return it unread."""

TimerKey = tuple[str, ...]
"""Name of a timer within its shard: kind and subject, such as ("session", group, member)."""


class Producer(NamedTuple):
    """The producer of the transaction that a batch of records belongs to."""

    id: int
    epoch: int


class Effects(msgspec.Struct, Generic[R]):
    """Work for the shell; without a `reply` the request waits, if a request caused the work."""

    reply: R | None = None
    records: list[CoordinatorRecord] = []
    answers: list[tuple[Ticket, Any]] = []  # Answers to waiting requests: a reply or a KafkaError.
    timers: dict[TimerKey, int | None] = {}  # Milliseconds from now; None stops a timer.
    producer: Producer | None = None  # Owner of the records' transaction.
    apply_records: "Callable[[RecordFacts], None] | None" = None
    """Applies the records from the values they were encoded from, instead of replaying them;
    receives the facts of the first record."""
    on_refused: Callable[[KafkaError], "Effects[Any]"] | None = None
    """Effects if the records cannot be written; the reply is then the error."""

    on_written: Callable[[], None] | None = None
    """Called when the records are written, or at once if there are none."""

    def merge(self, other: "Effects[Any]") -> None:
        """Add another decision's effects, except its reply, to apply both together."""
        assert self.apply_records is None, "apply_records covers only its own records"
        assert other.apply_records is None, "apply_records and replay would apply the records twice"
        self.records.extend(other.records)
        self.answers.extend(other.answers)
        self.timers.update(other.timers)


class RecordFacts(NamedTuple):
    """The offset of a replayed record, its time, and the producer of its transaction."""

    offset: int
    timestamp_ms: int
    producer_id: int = -1
    producer_epoch: int = -1


class ShardState(Protocol):
    """The state that one partition of an internal topic describes."""

    def replay(self, record: CoordinatorRecord, facts: RecordFacts) -> None:
        """Apply a record: at load, and right after it was written."""

    def end_transaction(self, producer_id: int, producer_epoch: int, *, committed: bool) -> None:
        """End a transaction that wrote to this partition."""

    def on_loaded(self, now_ms: int) -> Effects[None]:
        """Start the timers after all records are loaded."""

    def on_timer(self, key: TimerKey, now_ms: int) -> Effects[None]:
        """Handle a timer that has run out."""

    def tickets(self) -> list[Ticket]:
        """Return the waiting requests; they are redirected when the shard is given up."""
