"""The log of a quorum, as the raft core sees it: appends, truncation, epochs and snapshots.

Writes go to the page cache at once. The core learns from `Quorum.flushed` what a sync has made
durable, and sends no peer more than that.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from headrace.protocol.message import Message


class OffsetAndEpoch(NamedTuple):
    """An end offset and the epoch of the record before it; also the id of a snapshot."""

    end_offset: int
    epoch: int


class RaftLog(Protocol):
    """Storage of the metadata log. Offsets are those of records, positions those of bytes."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record or snapshot; 0 for an empty log."""
        ...

    def end_of_epoch(self, epoch: int) -> OffsetAndEpoch:
        """Return the largest epoch of the log up to `epoch`, and the offset at which it ends.

        An epoch before the first ends where the log starts.
        """
        ...

    def append(self, batches: memoryview) -> None:
        """Write batches that have their offsets and epochs, behind each other."""
        ...

    def read(self, offset: int, size_max: int) -> bytes:
        """Return whole batches from an offset on: at least one, else up to `size_max` bytes."""
        ...

    def truncate(self, end_offset: int) -> None:
        """Remove the records from an offset on."""
        ...

    @property
    def oldest_snapshot(self) -> OffsetAndEpoch | None: ...

    @property
    def newest_snapshot(self) -> OffsetAndEpoch | None:
        """The newest snapshot with records; the one that formatting wrote does not count."""
        ...

    def snapshot_size(self, snapshot: OffsetAndEpoch) -> int | None:
        """Return the size in bytes; None for a snapshot that is not here."""
        ...

    def read_snapshot(self, snapshot: OffsetAndEpoch, position: int, size_max: int) -> bytes: ...

    def receive_snapshot(self, snapshot: OffsetAndEpoch, position: int, data: bytes) -> None:
        """Write a piece of a leader's snapshot beside the log; position 0 starts again."""
        ...

    def install_snapshot(self, snapshot: OffsetAndEpoch) -> Sequence[Message]:
        """Make a received snapshot durable, and restart the log at its end.

        Returns the control records of the snapshot, which contain the voters.
        """
        ...
