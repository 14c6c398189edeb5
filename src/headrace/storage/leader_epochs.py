"""The start offset of each leader epoch, by which replicas find where their logs diverge (KIP-101).

Entries of (epoch, start offset) ascend strictly in both. An entry is made at the start of each
leadership, even before the first write.
"""

from bisect import bisect_right

import msgspec

from headrace.runtime import files
from headrace.storage.checkpoints import CorruptCheckpoint, decode_lines, encode_lines

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class EpochEntry(msgspec.Struct, frozen=True, gc=False):
    epoch: int
    start_offset: int


class LeaderEpochs:
    """The epochs of one log, with the file that keeps them. Changed rarely, so written at once."""

    __slots__ = ("_path", "entries")

    def __init__(self, path: str) -> None:
        self._path = path
        self.entries: list[EpochEntry] = []

    @classmethod
    def load(cls, path: str) -> "LeaderEpochs":
        """Read the file; a missing or unreadable file counts as empty.

        Batches contain their epochs as well, and recovery adds missing entries.
        """
        epochs = cls(path)
        try:
            lines = decode_lines(files.read(path))
            epochs.entries = [EpochEntry(*map(int, line.split(" "))) for line in lines]
        except (FileNotFoundError, CorruptCheckpoint, ValueError, TypeError):
            epochs.entries = []
        return epochs

    def moved(self, path: str) -> None:
        self._path = path

    @property
    def latest_epoch(self) -> int:
        return self.entries[-1].epoch if self.entries else UNDEFINED_EPOCH

    @property
    def earliest(self) -> EpochEntry | None:
        return self.entries[0] if self.entries else None

    def assign(self, epoch: int, start_offset: int) -> None:
        """An epoch begins; entries that contradict it are dropped.

        An epoch that is known already, with the same or an earlier start, is left as it is.
        """
        entries = self.entries
        if entries and epoch == entries[-1].epoch and start_offset >= entries[-1].start_offset:
            return
        kept = [
            entry for entry in entries if entry.epoch < epoch and entry.start_offset < start_offset
        ]
        self._write([*kept, EpochEntry(epoch, start_offset)])

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest known epoch up to the requested one, and its end offset.

        This answers OffsetForLeaderEpoch and finds where a follower must truncate. Both are
        undefined if the log lacks the epoch.
        """
        if epoch == UNDEFINED_EPOCH or not self.entries:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self.latest_epoch:
            return epoch, log_end_offset
        higher = bisect_right(self.entries, epoch, key=lambda entry: entry.epoch)
        if higher == len(self.entries):
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        end_offset = self.entries[higher].start_offset
        if higher == 0:
            return epoch, end_offset
        return self.entries[higher - 1].epoch, end_offset

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget epochs that began at or after the end of a log that was cut."""
        if self.entries and self.entries[-1].start_offset >= end_offset:
            self._write([entry for entry in self.entries if entry.start_offset < end_offset])

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget epochs that ended before the log's start; the one that spans it begins there."""
        at = bisect_right(self.entries, start_offset, key=lambda entry: entry.start_offset)
        if at and self.entries[0].start_offset < start_offset:
            first = EpochEntry(self.entries[at - 1].epoch, start_offset)
            self._write([first, *self.entries[at:]])

    def clear(self) -> None:
        if self.entries:
            self._write([])

    def _write(self, entries: list[EpochEntry]) -> None:
        """File first, memory second, so that a full disk leaves both as they were.

        The next flush of the log syncs it: a leadership that starts must not wait for a disk.
        """
        lines = [f"{entry.epoch} {entry.start_offset}" for entry in entries]
        files.replace_file(self._path, encode_lines(lines), sync=False)
        self.entries = entries
