"""The sparse indexes of a segment: positions, timestamps and aborted transactions.

In memory an index is an array, so that a lookup is one bisect; its file is Kafka's bit for bit. The
files are written when a segment is sealed or its log closed: after a crash the segments beyond the
recovery point are scanned and their indexes rebuilt, as in Kafka, so earlier writes would gain
nothing. An index may lag behind its segment, which costs a scan, but must never lead it.

Offsets are kept relative to the segment's base offset, in 32 bits.
"""

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from operator import attrgetter
from struct import Struct

import msgspec

OFFSET_ENTRY_SIZE = 8
TIME_ENTRY_SIZE = 12
NO_TIMESTAMP = -1
_SWAPPED = sys.byteorder == "little"
_ABORTED = Struct(">hqqqq")
_TIME_ENTRY = Struct(">qi")


class CorruptIndex(Exception):
    """The bytes of an index file break its rules."""


class OffsetIndex:
    """Entry = last offset of a batch, and the position where that batch starts.

    The first batch of a segment has no entry: the scan of the first records starts at position 0.
    """

    __slots__ = ("offsets", "positions")

    def __init__(self) -> None:
        self.offsets: array[int] = array("i")
        self.positions: array[int] = array("i")

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def size_bytes(self) -> int:
        return len(self.offsets) * OFFSET_ENTRY_SIZE

    def append(self, offset: int, position: int) -> None:
        self.offsets.append(offset)
        self.positions.append(position)

    def floor_position(self, offset: int) -> int:
        """The position of the last indexed batch that ends at or before an offset, or 0."""
        at = bisect_right(self.offsets, offset)
        return self.positions[at - 1] if at else 0

    def last_boundary_before(self, position: int) -> int:
        """The largest known batch boundary at or below a position."""
        at = bisect_right(self.positions, position)
        return self.positions[at - 1] if at else 0

    def next_boundary_after(self, position: int) -> int | None:
        """The next known batch boundary beyond a position, if there is one."""
        at = bisect_right(self.positions, position)
        return self.positions[at] if at < len(self.positions) else None

    def truncate(self, offset: int) -> None:
        """Forget the batches that end at or after an offset."""
        at = bisect_left(self.offsets, offset)
        del self.offsets[at:]
        del self.positions[at:]

    def to_bytes(self) -> bytes:
        entries = array("i", bytes(self.size_bytes))
        entries[0::2] = self.offsets
        entries[1::2] = self.positions
        if _SWAPPED:
            entries.byteswap()
        return entries.tobytes()

    @classmethod
    def from_bytes(cls, content: bytes, segment_size: int) -> "OffsetIndex":
        """Read an index file; entries beyond a segment of this size are `CorruptIndex`."""
        if len(content) % OFFSET_ENTRY_SIZE:
            raise CorruptIndex(f"{len(content)} bytes are not a multiple of {OFFSET_ENTRY_SIZE}")
        entries = array("i")
        entries.frombytes(content)
        if _SWAPPED:
            entries.byteswap()
        index = cls()
        index.offsets = entries[0::2]
        index.positions = entries[1::2]
        index._check(segment_size)
        return index

    def _check(self, segment_size: int) -> None:
        if not self.offsets:
            return
        if self.offsets[0] < 0 or self.offsets[-1] <= 0:
            raise CorruptIndex("it ends in empty entries")
        if self.positions[0] < 0 or self.positions[-1] >= segment_size:
            raise CorruptIndex(f"it points past the segment's {segment_size} bytes")
        if len(self) > 1 and not self._ascends():
            raise CorruptIndex("its entries do not ascend")

    def _ascends(self) -> bool:
        # A comparison with a sorted copy is much faster than a loop over pairs.
        return sorted(self.offsets) == self.offsets.tolist() and (
            sorted(self.positions) == self.positions.tolist()
        )


class TimeIndex:
    """Entry = the largest timestamp so far, and the last offset of the batch that holds it."""

    __slots__ = ("offsets", "timestamps")

    def __init__(self) -> None:
        self.timestamps: array[int] = array("q")
        self.offsets: array[int] = array("i")

    def __len__(self) -> int:
        return len(self.timestamps)

    @property
    def size_bytes(self) -> int:
        return len(self.timestamps) * TIME_ENTRY_SIZE

    def append_if_later(self, timestamp: int, offset: int) -> None:
        """Add an entry; both columns ascend, so a timestamp that is not later is left out."""
        if timestamp > (self.timestamps[-1] if self.timestamps else NO_TIMESTAMP):
            self.timestamps.append(timestamp)
            self.offsets.append(offset)

    def floor_offset(self, timestamp: int) -> int:
        """Return the relative offset up to which no record is later than a timestamp."""
        at = bisect_right(self.timestamps, timestamp)
        return self.offsets[at - 1] if at else 0

    def truncate(self, offset: int) -> None:
        at = bisect_left(self.offsets, offset)
        del self.timestamps[at:]
        del self.offsets[at:]

    def to_bytes(self) -> bytes:
        """Interleave the columns in units of four bytes, at the speed of array slices."""
        timestamps = array("q", self.timestamps)
        offsets = array("i", self.offsets)
        if _SWAPPED:
            timestamps.byteswap()
            offsets.byteswap()
        halves = array("i", timestamps.tobytes())
        entries = array("i", bytes(self.size_bytes))
        entries[0::3] = halves[0::2]
        entries[1::3] = halves[1::2]
        entries[2::3] = offsets
        return entries.tobytes()

    @classmethod
    def from_bytes(cls, content: bytes) -> "TimeIndex":
        if len(content) % TIME_ENTRY_SIZE:
            raise CorruptIndex(f"{len(content)} bytes are not a multiple of {TIME_ENTRY_SIZE}")
        entries = array("i")
        entries.frombytes(content)
        halves = array("i", bytes(len(content) // TIME_ENTRY_SIZE * 8))
        halves[0::2] = entries[0::3]
        halves[1::2] = entries[1::3]
        index = cls()
        index.timestamps = array("q", halves.tobytes())
        index.offsets = entries[2::3]
        if _SWAPPED:
            index.timestamps.byteswap()
            index.offsets.byteswap()
        index._check()
        return index

    def _check(self) -> None:
        """Reject zeros at the end, which a power cut may leave: records would look decades old."""
        timestamps = self.timestamps.tolist()
        if sorted(set(timestamps)) != timestamps:
            raise CorruptIndex("its timestamps do not ascend")
        if timestamps and timestamps[-1] == self.offsets[-1] == 0:
            raise CorruptIndex("it ends in empty entries")


def last_time_entry(tail: bytes) -> tuple[int, int] | None:
    """Timestamp and relative offset of a time index file's last entry, given its last bytes.

    None if there is no entry, or if the last bytes do not suffice.
    """
    if not any(tail) or len(tail) < TIME_ENTRY_SIZE:
        return None
    timestamp, offset = _TIME_ENTRY.unpack(tail[-TIME_ENTRY_SIZE:])
    return timestamp, offset


class AbortedTransaction(msgspec.Struct, frozen=True):
    """A transaction whose records a read_committed consumer must skip."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """The transactions whose abort markers are in a segment, in the order of the markers."""

    __slots__ = ("aborted",)

    def __init__(self) -> None:
        self.aborted: list[AbortedTransaction] = []

    def __len__(self) -> int:
        return len(self.aborted)

    def append(self, transaction: AbortedTransaction) -> None:
        self.aborted.append(transaction)

    def overlapping(self, offset: int, end_offset: int) -> Iterator[AbortedTransaction]:
        """The aborted transactions between two offsets."""
        aborted = self.aborted
        first = bisect_left(aborted, offset, key=attrgetter("last_offset"))
        for index in range(first, len(aborted)):
            transaction = aborted[index]
            if transaction.first_offset < end_offset:
                yield transaction
            if transaction.last_stable_offset >= end_offset:
                return

    def covers(self, end_offset: int) -> bool:
        """Return whether later segments cannot affect the records before an offset."""
        return any(transaction.last_stable_offset >= end_offset for transaction in self.aborted)

    def truncate(self, offset: int) -> None:
        self.aborted = [aborted for aborted in self.aborted if aborted.last_offset < offset]

    @property
    def size_bytes(self) -> int:
        return len(self.aborted) * _ABORTED.size

    def entry(self, index: int) -> bytes:
        aborted = self.aborted[index]
        return _ABORTED.pack(
            0,
            aborted.producer_id,
            aborted.first_offset,
            aborted.last_offset,
            aborted.last_stable_offset,
        )

    def to_bytes(self) -> bytes:
        return b"".join(self.entry(index) for index in range(len(self.aborted)))

    @classmethod
    def from_bytes(cls, content: bytes) -> "TransactionIndex":
        if len(content) % _ABORTED.size:
            raise CorruptIndex(f"{len(content)} bytes are not a multiple of {_ABORTED.size}")
        index = cls()
        for version, producer_id, first, last, stable in _ABORTED.iter_unpack(content):
            if version:
                raise CorruptIndex(f"entry version {version}")
            index.append(AbortedTransaction(producer_id, first, last, stable))
        return index
