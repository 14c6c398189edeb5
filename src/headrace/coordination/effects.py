"""What a coordinator's decision leads to: records to write, answers to give, timers to set.

A decision is made on a shard's state and changes nothing that must survive a crash: that is
done by replaying its records, once they are written. The shell (`broker/coordinators.py`) then
carries the effects out in this order: records, replay, notes, timers, answers. So nobody is told
what is not written, and nobody is told anything if it could not be.
"""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from headrace.errors import KafkaError
from headrace.protocol.coordinator_records import CoordinatorRecord

R = TypeVar("R")

Ticket = Any
"""A request that waits for its answer; opaque to decisions, which keep it and hand it back."""

TimerKey = tuple[str, ...]
"""A timer's name within its shard: what it is for, and whom, such as ("session", group, member)."""


class Producer(NamedTuple):
    """The producer in whose transaction a batch of records is written."""

    id: int
    epoch: int


class Effects(msgspec.Struct, Generic[R]):
    """What is to be done; `reply` is None for a request that waits, or that nobody made."""

    reply: R | None = None
    records: list[CoordinatorRecord] = []
    answers: list[tuple[Ticket, Any]] = []  # For those that waited: a reply or a KafkaError.
    timers: dict[TimerKey, int | None] = {}  # Milliseconds from now; None stops a timer.
    producer: Producer | None = None  # Whose transaction the records belong to.
    take_in: "Callable[[RecordFacts], None] | None" = None
    """Does what replaying the records would, by the values that they were encoded from; gets the
    facts of the first of them."""
    on_refused: Callable[[KafkaError], "Effects[Any]"] | None = None
    """What to do instead if the records cannot be written; the reply is then the error."""

    on_written: Callable[[], None] | None = None
    """What to note without a record, once the records are written; at once if there are none."""

    def merge(self, other: "Effects[Any]") -> None:
        """Add another decision's effects, save its reply, to be carried out together with these."""
        assert self.take_in is None, "these effects know only their own records"
        assert other.take_in is None, "its records would be replayed as well"
        self.records.extend(other.records)
        self.answers.extend(other.answers)
        self.timers.update(other.timers)


class RecordFacts(NamedTuple):
    """Where a replayed record stands in the log, and in whose transaction it was written."""

    offset: int
    timestamp_ms: int
    producer_id: int = -1
    producer_epoch: int = -1


class ShardState(Protocol):
    """The state that one partition of an internal topic describes."""

    def replay(self, record: CoordinatorRecord, facts: RecordFacts) -> None:
        """Take a record in: at load, and live right after it was written."""

    def end_transaction(self, producer_id: int, producer_epoch: int, *, committed: bool) -> None:
        """A transaction that wrote to this partition has ended."""

    def on_loaded(self, now_ms: int) -> Effects[None]:
        """All records are in: timers start."""

    def on_timer(self, key: TimerKey, now_ms: int) -> Effects[None]:
        """A timer that a decision had set has run out."""

    def tickets(self) -> list[Ticket]:
        """Everyone who waits; they are sent elsewhere when the shard is given up."""
