"""The last offset of each key in the dirty part of a log, for compaction.

Up to some ten thousand keys a dictionary is quickest. Beyond that it would cost 150 bytes and more
per key, so the keys move into an open-addressing table: 24 bytes per slot, a digest of 128 bits and
the offset. Two keys never have the same digest in practice (Kafka's table relies on that, too).

The digest is Python's own keyed hash of the key, and of the key with a byte before it, which is the
fastest hash available. It differs from process to process and is never persisted.
"""

from array import array
from collections.abc import Callable

FEW_KEYS_MAX = 50_000
BYTES_PER_PLACE = 24
_FILLED_AT_MOST = 0.7
_NOT_THERE = -1
_EMPTY = 0


class OffsetMap:
    """Key to last offset; the caller stops adding keys when `size_bytes` is large enough."""

    __slots__ = ("_few", "_few_max", "_firsts", "_offsets", "_places", "_seconds", "_used")

    def __init__(self, few_keys_max: int = FEW_KEYS_MAX) -> None:
        self._few: dict[bytes, int] | None = {}
        self._few_max = few_keys_max
        self._used = 0
        self._allocate(0)

    def __len__(self) -> int:
        return self._used if self._few is None else len(self._few)

    @property
    def size_bytes(self) -> int:
        """The memory of the keys, or their memory in the table."""
        return int(len(self) * BYTES_PER_PLACE / _FILLED_AT_MOST)

    def put(self, key: bytes, offset: int) -> None:
        """Note the offset of a key, which is later than any noted before."""
        few = self._few
        if few is None:
            self._put(hash(key) or 1, hash(b"\x01" + key), offset)
            return
        few[key] = offset
        if len(few) > self._few_max:
            self._move_to_table(few)

    def get(self, key: bytes) -> int:
        """The last offset of a key, -1 if it has none."""
        few = self._few
        if few is not None:
            return few.get(key, _NOT_THERE)
        firsts, seconds = self._firsts, self._seconds
        first, second = hash(key) or 1, hash(b"\x01" + key)
        place = first % self._places
        while (found := firsts[place]) != _EMPTY:
            if found == first and seconds[place] == second:
                return self._offsets[place]
            place += 1
            if place == self._places:
                place = 0
        return _NOT_THERE

    def lookup(self) -> Callable[[bytes], int | None]:
        """A fast lookup function for a complete map; None means no offset."""
        return self.get if self._few is None else self._few.get

    def _put(self, first: int, second: int, offset: int) -> None:
        firsts, seconds = self._firsts, self._seconds
        place = first % self._places
        while (found := firsts[place]) != _EMPTY:
            if found == first and seconds[place] == second:
                self._offsets[place] = offset
                return
            place += 1
            if place == self._places:
                place = 0
        firsts[place] = first
        seconds[place] = second
        self._offsets[place] = offset
        self._used += 1
        if self._used > self._places * _FILLED_AT_MOST:
            self._grow()

    def _allocate(self, places: int) -> None:
        self._places = places
        self._firsts = array("q", bytes(8 * places))
        self._seconds = array("q", bytes(8 * places))
        self._offsets = array("q", bytes(8 * places))

    def _move_to_table(self, few: dict[bytes, int]) -> None:
        self._few = None
        self._allocate(4 * len(few))
        for key, offset in few.items():
            self.put(key, offset)

    def _grow(self) -> None:
        entries = zip(self._firsts, self._seconds, self._offsets, strict=True)
        self._allocate(2 * self._places)
        self._used = 0
        for first, second, offset in entries:
            if first != _EMPTY:
                self._put(first, second, offset)
