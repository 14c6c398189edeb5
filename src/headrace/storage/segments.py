"""The row of segments that makes a log, as a plain list that ascends by base offset."""

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter

from headrace.storage.segment import CLEANED, SWAP, Segment

_base_offset = attrgetter("base_offset")


def segment_index(segments: Sequence[Segment], offset: int) -> int:
    """Where the segment stands that holds an offset or would; -1 if they all come after it."""
    return bisect_right(segments, offset, key=_base_offset) - 1


def discard(segments: Sequence[Segment], delay_ms: int) -> None:
    """Set the files of segments aside; those who still read them have a while to finish."""
    for segment in segments:
        segment.delete_later(delay_ms)


def swap(
    segments: list[Segment], old: Sequence[Segment], new: Sequence[Segment], delay_ms: int
) -> None:
    """Put compacted segments, written and synced as `.cleaned`, in the place of old ones.

    Once all are named `.swap` the new ones are complete: a crash from there on ends with the new
    segments, before with the old. They are renamed from the last to the first, and start-up
    gives up the `.swap` files behind the smallest `.cleaned` one (Kafka's protocol).
    """
    at = segments.index(old[0])
    assert list(old) == segments[at : at + len(old)], "old segments must be neighbours"
    assert all(segment.suffix == CLEANED for segment in new)
    for segment in reversed(new):
        segment.change_suffix(SWAP)
    segments[at : at + len(old)] = new
    discard(old, delay_ms)
    for segment in new:
        segment.change_suffix("")
