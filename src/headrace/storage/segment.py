"""A run of record batches in one file, with a sparse index."""

import logging
import sys
from bisect import bisect_left
from collections.abc import Iterable
from struct import Struct
from typing import Protocol

from headrace.errors import CorruptMessage
from headrace.protocol.batches import LOG_OVERHEAD, BatchHeader
from headrace.runtime import files
from headrace.runtime.files import OpenFile
from headrace.storage.indexes import (
    NO_TIMESTAMP,
    OFFSET_ENTRY_SIZE,
    TIME_ENTRY_SIZE,
    AbortedTransaction,
    CorruptIndex,
    OffsetIndex,
    TimeIndex,
    TransactionIndex,
    last_time_entry,
)
from headrace.storage.resources import Resources
from headrace.storage.scanning import find_boundary, find_offset, headers_in

_log = logging.getLogger(__name__)

LOG = ".log"
INDEX = ".index"
TIME_INDEX = ".timeindex"
TRANSACTION_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
DELETED = ".deleted"
CLEANED = ".cleaned"
SWAP = ".swap"

RELATIVE_OFFSET_MAX = (1 << 31) - 1
INDEX_INTERVAL_BYTES = 4096
INDEX_BYTES_MAX = 10 << 20
RESERVED_BYTES = 16 << 20
_RESERVE_FROM_BYTES = 1 << 20
_CURSORS_MAX = 16
_UNKNOWN = -2
_BASE_OFFSET = Struct(">q")


ReplicatedBatch = tuple[int, int, int, int, int, int, int, int, int]
"""Fields of a leader's batch that an append needs: base offset, length after the length field,
leader epoch, magic, CRC, attributes, last offset delta, max timestamp, producer id."""


class PlainBatch(Protocol):
    """A valid plain batch, with its assigned offset."""

    records: memoryview
    count: int
    max_timestamp: int
    base_offset: int


class Segment:
    """One `.log` file with its indexes; the last of a log is active, the others are sealed.

    An unused segment costs little: the file is opened and the indexes are loaded on first use, and
    released if too many are open.
    """

    __slots__ = (
        "_cursors",
        "_file",
        "_index",
        "_indexes_changed",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_reserved_to",
        "_time_index",
        "_transactions",
        "base_offset",
        "bytes_since_entry",
        "directory",
        "index_bytes_max",
        "index_interval_bytes",
        "indexes_are_full",
        "resources",
        "size",
        "suffix",
    )

    def __init__(
        self,
        directory: str,
        base_offset: int,
        size: int,
        resources: Resources,
        *,
        index_interval_bytes: int = INDEX_INTERVAL_BYTES,
        index_bytes_max: int = INDEX_BYTES_MAX,
        suffix: str = "",
    ) -> None:
        self.directory = directory
        self.base_offset = base_offset
        self.size = size
        self.resources = resources
        self.suffix = suffix
        self.index_interval_bytes = index_interval_bytes
        self.index_bytes_max = index_bytes_max
        self.indexes_are_full = False
        self.bytes_since_entry = 0
        self._file: OpenFile | None = None
        self._index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._transactions: TransactionIndex | None = None
        self._indexes_changed = False
        self._max_timestamp = _UNKNOWN
        self._max_timestamp_offset = base_offset
        self._reserved_to = _RESERVE_FROM_BYTES
        # The next position of tail readers by offset, which saves reading the file.
        self._cursors: dict[int, int] | None = None

    @classmethod
    def create(
        cls,
        directory: str,
        base_offset: int,
        resources: Resources,
        *,
        index_interval_bytes: int = INDEX_INTERVAL_BYTES,
        index_bytes_max: int = INDEX_BYTES_MAX,
        reserved_bytes: int = 0,
        suffix: str = "",
    ) -> "Segment":
        """Create the empty files of a new segment. The log file comes last and completes it.

        `reserved_bytes` allocates the segment's final size (`preallocate`).
        """
        segment = cls(
            directory,
            base_offset,
            0,
            resources,
            index_interval_bytes=index_interval_bytes,
            index_bytes_max=index_bytes_max,
            suffix=suffix,
        )
        files.create_empty(segment.path(INDEX))
        files.create_empty(segment.path(TIME_INDEX))
        segment._file = files.create(segment.path(LOG))
        segment._index = OffsetIndex()
        segment._time_index = TimeIndex()
        segment._transactions = TransactionIndex()
        segment._max_timestamp = NO_TIMESTAMP
        if reserved_bytes and files.reserve(segment._file.fd, 0, reserved_bytes):
            segment._reserved_to = max(reserved_bytes, _RESERVE_FROM_BYTES + 1)
        resources.open_files.add(segment)
        return segment

    def __repr__(self) -> str:
        return f"Segment({self.base_offset}, {self.size} bytes)"

    def path(self, extension: str) -> str:
        return f"{self.directory}/{self.base_offset:020d}{extension}{self.suffix}"

    def index_paths(self) -> tuple[str, str]:
        return self.path(INDEX), self.path(TIME_INDEX)

    # Appending

    def write(self, records: bytes | bytearray | memoryview) -> int:
        """Append bytes, all of them or none, and return their start position.

        The caller indexes each batch afterwards. Bytes first, index second: after a crash an
        index that lags costs a scan, an index that leads points at bytes never written.
        """
        position = self.size
        file = self._file or self.open()
        size = len(records)
        if position + size > self._reserved_to:
            self._reserve(file, position)
        try:
            written = files.pwrite(file.fd, records, position)
            if written != size:
                files.pwrite_all(file.fd, memoryview(records)[written:], position + written)
        except OSError:
            files.ftruncate(file.fd, position)
            raise
        self.size = position + size
        return position

    def _reserve(self, file: OpenFile, position: int) -> None:
        """Allocate space ahead of the tail of a growing segment."""
        if files.reserve(file.fd, position, RESERVED_BYTES):
            self._reserved_to = position + RESERVED_BYTES
        else:
            self._reserved_to = sys.maxsize

    def note_batch(self, position: int, size: int, last_offset: int, max_timestamp: int) -> None:
        """Keep the indexes up to date with a batch that was written."""
        if max_timestamp > self._max_timestamp:
            self._max_timestamp = max_timestamp
            self._max_timestamp_offset = last_offset
            self._indexes_changed = True
        if self.bytes_since_entry > self.index_interval_bytes:
            self._add_index_entries(last_offset, position)
        self.bytes_since_entry += size

    def note_run(self, position: int, run: Iterable[PlainBatch]) -> None:
        """`note_batch` for each of several batches that were written together."""
        latest = self._max_timestamp
        interval = self.index_interval_bytes
        bytes_since_entry = self.bytes_since_entry
        for batch in run:
            size = len(batch.records)
            if batch.max_timestamp > latest:
                self._max_timestamp = latest = batch.max_timestamp
                self._max_timestamp_offset = batch.base_offset + batch.count - 1
                self._indexes_changed = True
            if bytes_since_entry > interval:
                self._add_index_entries(batch.base_offset + batch.count - 1, position)
                bytes_since_entry = 0
            position += size
            bytes_since_entry += size
        self.bytes_since_entry = bytes_since_entry

    def note_replicated(self, position: int, batches: Iterable[ReplicatedBatch]) -> None:
        """`note_batch` for each of several batches of a leader that were written together.

        The caller has checked that the indexes have room for an entry of each.
        """
        base_offset, interval = self.base_offset, self.index_interval_bytes
        index, time_index = self.index, self.time_index
        latest, latest_offset = self._max_timestamp, self._max_timestamp_offset
        indexed = time_index.timestamps[-1] if time_index.timestamps else NO_TIMESTAMP
        entries_before = len(index)
        bytes_since_entry = self.bytes_since_entry
        for first_offset, length, _, _, _, _, last_offset_delta, max_timestamp, _ in batches:
            if max_timestamp > latest:
                latest, latest_offset = max_timestamp, first_offset + last_offset_delta
            if bytes_since_entry > interval:
                index.offsets.append(first_offset + last_offset_delta - base_offset)
                index.positions.append(position)
                if latest > indexed:
                    indexed = latest
                    time_index.timestamps.append(latest)
                    time_index.offsets.append(latest_offset - base_offset)
                bytes_since_entry = 0
            size = length + LOG_OVERHEAD
            position += size
            bytes_since_entry += size
        if latest > self._max_timestamp:
            self._max_timestamp, self._max_timestamp_offset = latest, latest_offset
            self._indexes_changed = True
        self.bytes_since_entry = bytes_since_entry
        if len(index) > entries_before:
            self._indexes_changed = True
            self.indexes_are_full = self.index_room < 1

    @property
    def index_room(self) -> int:
        """The number of entries that the indexes have room for, beside the final one."""
        room = self.index_bytes_max - max(self.index.size_bytes, self.time_index.size_bytes)
        return (room - 1) // TIME_ENTRY_SIZE - 1

    def has_index_room_for(self, entries: int) -> bool:
        """Return whether the index has room for more entries and the final one."""
        return self.index_room >= entries

    def _add_index_entries(self, last_offset: int, position: int) -> None:
        self.index.append(last_offset - self.base_offset, position)
        self.time_index.append_if_later(
            self._max_timestamp, self._max_timestamp_offset - self.base_offset
        )
        self._indexes_changed = True
        self.bytes_since_entry = 0
        # Kafka keeps one free place in the time index for the final entry.
        self.indexes_are_full = (
            self.index.size_bytes + OFFSET_ENTRY_SIZE > self.index_bytes_max
            or self.time_index.size_bytes + 2 * TIME_ENTRY_SIZE > self.index_bytes_max
        )

    def note_aborted(self, transaction: AbortedTransaction) -> None:
        """Add an abort whose marker is in this segment, and write the index file immediately."""
        transactions = self.transactions
        known_bytes = transactions.size_bytes
        transactions.append(transaction)
        files.write_end(self.path(TRANSACTION_INDEX), transactions.entry(-1), known_bytes)

    def warm(self) -> None:
        """Load what an append needs, before the first one after a start."""
        self.open()
        _ = self.index, self.time_index, self.max_timestamp

    def sync(self) -> None:
        """Seal and sync the segment; for segments that compaction has written."""
        self.seal()
        files.fsync(self.open().fd)
        for path in self.index_paths():
            files.fsync_path(path)

    def seal(self) -> None:
        """Write the final index files, at a roll and when the log is closed."""
        if self._indexes_changed:
            self.time_index.append_if_later(
                self._max_timestamp, self._max_timestamp_offset - self.base_offset
            )
            files.write(self.path(INDEX), self.index.to_bytes())
            files.write(self.path(TIME_INDEX), self.time_index.to_bytes())
            self._indexes_changed = False
        if self._reserved_to != _RESERVE_FROM_BYTES:
            files.ftruncate(self.open().fd, self.size)  # Releases the unused allocation.
            self._reserved_to = _RESERVE_FROM_BYTES
        if self._index is not None:
            self._count_indexes()

    # Finding

    def locate(self, offset: int) -> int:
        """The start of the first batch that ends at or after an offset, or the size.

        The batch of the next index entry is checked first: a sequential consumer requests just
        that one, since slices end at indexed batches.
        """
        if offset <= self.base_offset:
            return 0
        cursors = self._cursors
        if cursors is not None and offset in cursors:
            return cursors[offset]
        index = self._index
        if index is None:
            index = self.index
        at = bisect_left(index.offsets, offset - self.base_offset)
        end_position = self.size
        if at < len(index.offsets):
            end_position = index.positions[at]
            if self.base_offset_at(end_position) <= offset:
                return end_position
        start_position = index.positions[at - 1] if at else 0
        return find_offset(self.open().fd, start_position, end_position, offset)

    def base_offset_at(self, position: int) -> int:
        """The first offset of the batch that starts at a position."""
        read = files.pread(self.open().fd, _BASE_OFFSET.size, position)
        if len(read) < _BASE_OFFSET.size:
            raise CorruptMessage(f"{self.path(LOG)} ends before position {position}")
        base_offset: int = _BASE_OFFSET.unpack(read)[0]
        return base_offset

    def boundary(
        self, position: int, end_position: int, size_max: int, *, at_least_one: bool
    ) -> int:
        """The end of a slice of whole batches from a batch start.

        With `at_least_one` a batch larger than the requested size is returned whole; otherwise a
        consumer would never get past it.
        """
        if end_position - position <= size_max:
            return end_position
        known = self.index.last_boundary_before(position + size_max)
        if known > position:
            return known
        first_end, last_end = find_boundary(self.open().fd, position, end_position, size_max)
        return max(first_end, last_end) if at_least_one else last_end

    def remember(self, offset: int, position: int) -> None:
        """Remember the position of an offset, for a reader that continues there."""
        cursors = self._cursors
        if cursors is None:
            cursors = self._cursors = {}
        elif len(cursors) >= _CURSORS_MAX:
            del cursors[next(iter(cursors))]
        cursors[offset] = position

    def next_offset(self) -> int:
        """Return the offset after the last record, by a scan from the last index entry."""
        index = self.index
        position = index.positions[-1] if index.positions else 0
        next_offset = self.base_offset
        for _, header in headers_in(self.open().fd, position, self.size):
            next_offset = header.base_offset + header.last_offset_delta + 1
        return next_offset

    # Time

    @property
    def max_timestamp(self) -> int:
        """The latest timestamp of a record here, -1 if none has one."""
        if self._max_timestamp == _UNKNOWN:
            self._load_max_timestamp()
        return self._max_timestamp

    @property
    def max_timestamp_offset(self) -> int:
        """The last offset of the batch that holds the latest timestamp."""
        if self._max_timestamp == _UNKNOWN:
            self._load_max_timestamp()
        return self._max_timestamp_offset

    def _load_max_timestamp(self) -> None:
        """Return the last entry of a sealed segment's time index; the file need not be loaded."""
        entry = self._last_time_entry_on_disk() if self._time_index is None else None
        if entry is None and self.size > 0:
            index = self.time_index
            entry = (index.timestamps[-1], index.offsets[-1]) if index.timestamps else None
        self._max_timestamp, relative_offset = entry or (NO_TIMESTAMP, 0)
        self._max_timestamp_offset = self.base_offset + relative_offset

    def _last_time_entry_on_disk(self) -> tuple[int, int] | None:
        try:
            return last_time_entry(files.read_tail(self.path(TIME_INDEX), TIME_ENTRY_SIZE))
        except FileNotFoundError:
            return None

    def largest_timestamp(self) -> int:
        """The age of the segment for retention: its latest record, or when its file was written."""
        return self.max_timestamp if self.max_timestamp >= 0 else files.modified_ms(self.path(LOG))

    def first_timestamp(self) -> int:
        """The latest timestamp of the first batch, from which `segment.ms` counts; -1 if empty."""
        for _, header in headers_in(self.open().fd, 0, self.size):
            return header.max_timestamp
        return NO_TIMESTAMP

    # Files and indexes, cached up to a limit

    def open(self) -> OpenFile:
        file = self._file
        if file is None:
            file = self._file = files.open_existing(self.path(LOG))
            self.resources.open_files.add(self)
        return file

    @property
    def index(self) -> OffsetIndex:
        if self._index is None:
            self._load_indexes()
        assert self._index is not None
        return self._index

    @property
    def time_index(self) -> TimeIndex:
        if self._time_index is None:
            self._load_indexes()
        assert self._time_index is not None
        return self._time_index

    @property
    def transactions(self) -> TransactionIndex:
        if self._transactions is None:
            try:
                content = files.read(self.path(TRANSACTION_INDEX))
            except FileNotFoundError:
                content = b""
            self._transactions = TransactionIndex.from_bytes(content)
        return self._transactions

    def _load_indexes(self) -> None:
        try:
            self._index = OffsetIndex.from_bytes(files.read(self.path(INDEX)), self.size)
            self._time_index = TimeIndex.from_bytes(files.read(self.path(TIME_INDEX)))
        except (FileNotFoundError, CorruptIndex) as error:
            _log.warning("rebuilding indexes", extra={"path": self.path(LOG), "error": str(error)})
            self.rebuild_indexes(headers_in(self.open().fd, 0, self.size))
            self.seal()
        self._count_indexes()

    def _count_indexes(self) -> None:
        size_bytes = self.index.size_bytes + self.time_index.size_bytes
        self.resources.indexes.add(self, size_bytes)

    def rebuild_indexes(self, batches: Iterable[tuple[int, BatchHeader]]) -> None:
        """Rebuild the indexes from the batches of the file."""
        self._start_indexes()
        for position, header in batches:
            self.note_batch(position, header.size, header.last_offset, header.max_timestamp)

    def forget_indexes(self) -> None:
        """Clear all indexes, before recovery adds each verified batch."""
        self._start_indexes()
        self._transactions = TransactionIndex()
        files.unlink_if_there(self.path(TRANSACTION_INDEX))

    def _start_indexes(self) -> None:
        self._index = OffsetIndex()
        self._time_index = TimeIndex()
        self._max_timestamp = NO_TIMESTAMP
        self._max_timestamp_offset = self.base_offset
        self._cursors = None
        self.bytes_since_entry = 0
        self._indexes_changed = True

    def release_file(self) -> None:
        self._file = None

    def release_indexes(self) -> None:
        """Release the indexes, unless the files do not have them yet."""
        if not self._indexes_changed:
            self._index = self._time_index = self._transactions = None

    # Shortening, renaming, removing

    def truncate(self, offset: int) -> None:
        """Cut off the batches that hold an offset or later ones."""
        position = self.locate(offset)
        relative_offset = offset - self.base_offset
        self.index.truncate(relative_offset)
        self.time_index.truncate(relative_offset)
        if self.transactions.aborted:
            self.transactions.truncate(offset)
            files.write(self.path(TRANSACTION_INDEX), self.transactions.to_bytes())
        self.truncate_file(position)
        self._indexes_changed = True
        self._max_timestamp = _UNKNOWN
        start = self.index.floor_position(self.max_timestamp_offset - self.base_offset)
        for _, header in headers_in(self.open().fd, start, self.size):
            if header.max_timestamp > self._max_timestamp:
                self._max_timestamp = header.max_timestamp
                self._max_timestamp_offset = header.last_offset

    def truncate_file(self, position: int) -> None:
        files.ftruncate(self.open().fd, position)
        self.size = position
        self.bytes_since_entry = 0
        self._cursors = None

    def change_suffix(self, suffix: str) -> None:
        """Rename all files, the log first.

        A crash may leave indexes without a log, which the next start removes, but never a log
        without its transaction index.
        """
        for extension in (LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX):
            path = f"{self.directory}/{self.base_offset:020d}{extension}"
            files.rename_if_there(path + self.suffix, path + suffix)
        self.suffix = suffix

    def delete_later(self, delay_ms: int) -> None:
        """Rename the files for their readers; a later sweep unlinks them."""
        self.change_suffix(DELETED)
        self.close()
        for extension in (LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX):
            self.resources.deletions.add(self.path(extension), delay_ms)

    def close(self) -> None:
        self.resources.open_files.remove(self)
        self.resources.indexes.remove(self)
        self._indexes_changed = False
        self.release_file()
        self.release_indexes()
