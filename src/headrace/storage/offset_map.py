"""The last offset of each key: what compaction has to know of the dirty part of a log.

Up to some ten thousand keys a dictionary is quickest. Beyond that it would cost 150 bytes and more
per key, so the keys move into a table of their own: 24 bytes per place, a digest of 128 bits
and the offset, placed by the digest and then one after another. Two keys never have the same
digest in practice (Kafka's table counts on that, too).
"""

from array import array
from collections.abc import Callable
from hashlib import blake2b
from struct import Struct

FEW_KEYS_MAX = 20_000
BYTES_PER_PLACE = 24
_FILLED_AT_MOST = 0.75
_DIGEST_SIZE = 16
_NOT_THERE = -1

_halves = Struct("=QQ").unpack


class OffsetMap:
    """Key to last offset. It grows as keys come; the caller stops when `size_bytes` is enough."""

    __slots__ = ("_few", "_few_max", "_high", "_low", "_offsets", "_places", "_used")

    def __init__(self, few_keys_max: int = FEW_KEYS_MAX) -> None:
        self._few: dict[bytes, int] | None = {}
        self._few_max = few_keys_max
        self._used = 0
        self._allocate(0)

    def __len__(self) -> int:
        return self._used if self._few is None else len(self._few)

    @property
    def size_bytes(self) -> int:
        """What the keys cost, or would cost in the table."""
        return int(len(self) * BYTES_PER_PLACE / _FILLED_AT_MOST)

    def put(self, key: bytes, offset: int) -> None:
        """Note the offset of a key, which is later than any noted before."""
        few = self._few
        if few is not None:
            few[key] = offset
            if len(few) > self._few_max:
                self._move_to_table(few)
            return
        high, low = _halves(blake2b(key, digest_size=_DIGEST_SIZE).digest())
        self._insert(high or 1, low, offset)

    def get(self, key: bytes) -> int:
        """The last offset of a key, -1 if it has none."""
        few = self._few
        if few is not None:
            return few.get(key, _NOT_THERE)
        high, low = _halves(blake2b(key, digest_size=_DIGEST_SIZE).digest())
        place = self._find(high or 1, low)
        return self._offsets[place] if self._high[place] else _NOT_THERE

    def lookup(self) -> Callable[[bytes], int | None]:
        """The quickest way to ask many times, once all keys are there; None is no offset."""
        return self.get if self._few is None else self._few.get

    def _find(self, high: int, low: int) -> int:
        """The place of a digest, or the empty one where it belongs; 0 marks empty places."""
        highs, lows, places = self._high, self._low, self._places
        place = high % places
        while highs[place] and (highs[place] != high or lows[place] != low):
            place += 1
            if place == places:
                place = 0
        return place

    def _insert(self, high: int, low: int, offset: int) -> None:
        place = self._find(high, low)
        self._offsets[place] = offset
        if not self._high[place]:
            self._high[place] = high
            self._low[place] = low
            self._used += 1
            if self._used > self._places * _FILLED_AT_MOST:
                self._grow()

    def _allocate(self, places: int) -> None:
        self._places = places
        self._high = array("Q", bytes(8 * places))
        self._low = array("Q", bytes(8 * places))
        self._offsets = array("q", bytes(8 * places))

    def _move_to_table(self, few: dict[bytes, int]) -> None:
        self._few = None
        self._allocate(4 * len(few))
        for key, offset in few.items():
            self.put(key, offset)

    def _grow(self) -> None:
        highs, lows, offsets = self._high, self._low, self._offsets
        self._allocate(2 * self._places)
        self._used = 0
        for high, low, offset in zip(highs, lows, offsets, strict=True):
            if high:
                self._insert(high, low, offset)
