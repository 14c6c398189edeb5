"""Batches of a log as a share partition reads them: their offsets, and which ones to skip.

Records stay in the file, as with a plain fetch. Only batch headers are read, and only until the
member has the records that it may acquire; the slice that is sent then ends there.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from operator import itemgetter

from headrace.errors import CorruptMessage
from headrace.protocol.batches import (
    CONTROL,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL,
)
from headrace.runtime import files
from headrace.shares.selection import Span
from headrace.storage.indexes import AbortedTransaction
from headrace.storage.log import Log
from headrace.storage.reading import LogSlice

_WINDOW_BYTES = 4096
_first, _last = itemgetter(0), itemgetter(1)


class Batches:
    """The batches of a slice, read lazily."""

    def __init__(self, slice_: LogSlice, aborted: Sequence[AbortedTransaction]) -> None:
        self._slice = slice_
        self._aborted: dict[int, list[AbortedTransaction]] = {}
        for one in aborted:
            self._aborted.setdefault(one.producer_id, []).append(one)
        self._seen: list[tuple[int, int, int, int]] = []  # First, last, position, end.

    def __iter__(self) -> Iterator[Span]:
        slice_ = self._slice
        position, end = slice_.position, slice_.position + slice_.size
        window, window_at = b"", position
        before = -1
        while end - position >= HEADER_SIZE:
            if position + HEADER_SIZE > window_at + len(window):
                size = min(_WINDOW_BYTES, end - position)
                window, window_at = files.pread(slice_.fileno(), size, position), position
                if len(window) < HEADER_SIZE:
                    raise CorruptMessage(f"the file ends in a batch header at position {position}")
            header = HEADER.unpack_from(window, position - window_at)
            first, attributes, producer_id = header[0], header[5], header[9]
            last = first + header[6]
            batch_end = position + header[1] + LOG_OVERHEAD
            if (
                header[3] != MAGIC
                or not before < first <= last
                or not position + HEADER_SIZE <= batch_end <= end
            ):
                raise CorruptMessage(f"the batch header at position {position} is damaged")
            self._seen.append((first, last, position, batch_end))
            is_skipped = bool(attributes & CONTROL) or (
                bool(attributes & TRANSACTIONAL)
                and bool(self._aborted)
                and self._is_aborted(producer_id, first)
            )
            yield Span(first, last, is_skipped)
            position, before = batch_end, last

    def part(self, first: int, last: int) -> LogSlice:
        """Return the part of the slice with some offsets, from the batches that were read."""
        seen = self._seen
        begin = bisect_left(seen, first, key=_last)
        end = bisect_right(seen, last, key=_first) - 1
        position = seen[begin][2]
        return LogSlice(self._slice.file, position, seen[end][3] - position)

    def _is_aborted(self, producer_id: int, offset: int) -> bool:
        return any(
            one.first_offset <= offset <= one.last_offset
            for one in self._aborted.get(producer_id, ())
        )


def read_batches(
    log: Log, offset: int, size_max: int, *, at_least_one: bool, is_read_committed: bool
) -> Batches | None:
    """Return the batches for a share group from an offset on; None if there are none yet."""
    bound = log.last_stable_offset if is_read_committed else log.high_watermark
    if not log.log_start_offset <= offset < bound:
        return None
    slice_ = log.read(offset, size_max, bound, at_least_one=at_least_one)
    if not slice_.size:
        return None
    if not is_read_committed:
        return Batches(slice_, ())
    return Batches(slice_, log.aborted_transactions(offset, log.end_of(slice_, offset)))
