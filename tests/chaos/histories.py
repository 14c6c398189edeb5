"""Histories of clients under faults: what they sent, read, committed and accepted.

Each client appends to its own lists, in the order of its calls. Times are monotonic seconds.
"""

from enum import Enum

import msgspec

Place = tuple[str, int]
"""Topic and partition."""


class Outcome(Enum):
    """The answer that a client got; without one the effect is unknown."""

    DONE = "done"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class Value(msgspec.Struct, frozen=True, order=True):
    """The content of a record: each writer numbers its records, per partition without gaps."""

    writer: str
    number: int
    transaction: int = -1

    def encode(self) -> bytes:
        return f"{self.writer}:{self.number}:{self.transaction}".encode()

    @classmethod
    def decode(cls, data: bytes | None) -> "Value":
        writer, number, transaction = (data or b"").decode().split(":")
        return cls(writer, int(number), int(transaction))


class Write(msgspec.Struct):
    """One record that a producer sent, with the offset of its acknowledgement."""

    place: Place
    value: Value
    outcome: Outcome = Outcome.UNKNOWN
    offset: int | None = None
    acknowledged: float = 0.0


class End(Enum):
    """The end that a producer wanted for its transaction."""

    COMMIT = "commit"
    ABORT = "abort"


class Transaction(msgspec.Struct):
    """One transaction of a writer; an unknown outcome must be whole or nothing, too."""

    writer: str
    number: int
    end: End
    outcome: Outcome = Outcome.UNKNOWN


class Seen(msgspec.Struct, frozen=True):
    """One record that a consumer received."""

    offset: int
    value: Value


class Session(msgspec.Struct):
    """The polls of one consumer from one partition without a seek or a rebalance."""

    reader: str
    place: Place
    is_committed: bool
    """Whether the reader has the isolation level read_committed."""
    start: int
    """The offset from which it reads; -1 if unknown."""
    seen: list[Seen] = msgspec.field(default_factory=list)
    group: str | None = None


class Commit(msgspec.Struct, frozen=True):
    """One commit of an offset by a group's member."""

    group: str
    place: Place
    offset: int
    began: float
    ended: float
    outcome: Outcome


class Fetched(msgspec.Struct, frozen=True):
    """One read of a group's committed offset; -1 if there was none."""

    group: str
    place: Place
    offset: int
    began: float


class Delivery(msgspec.Struct):
    """One record that a share group delivered, and its acceptance."""

    group: str
    member: str
    place: Place
    offset: int
    value: Value
    polled: float
    """When the poll began that returned the record."""
    outcome: Outcome = Outcome.UNKNOWN
    accepted: float = 0.0
    """When the broker had confirmed the acceptance."""


class Histories(msgspec.Struct):
    """Everything that the clients of one run have recorded."""

    writes: list[Write] = msgspec.field(default_factory=list)
    transactions: list[Transaction] = msgspec.field(default_factory=list)
    sessions: list[Session] = msgspec.field(default_factory=list)
    commits: list[Commit] = msgspec.field(default_factory=list)
    fetched: list[Fetched] = msgspec.field(default_factory=list)
    deliveries: list[Delivery] = msgspec.field(default_factory=list)
    complete_groups: dict[str, list[str]] = msgspec.field(default_factory=dict)
    """Groups that have read to the end after the storm, with their topics."""
    logs: dict[Place, list[Seen]] = msgspec.field(default_factory=dict)
    """Each partition after the storm, as read_uncommitted reads it."""
    committed_logs: dict[Place, list[Seen]] = msgspec.field(default_factory=dict)
    """Each partition after the storm, as read_committed reads it."""
    replicas: dict[Place, dict[int, str]] = msgspec.field(default_factory=dict)
    """A digest of the stored bytes of each replica, by node."""
