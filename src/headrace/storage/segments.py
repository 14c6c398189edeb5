"""The segments of a log, as a list in the order of their base offsets."""

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter

from headrace.storage.segment import CLEANED, SWAP, Segment

_base_offset = attrgetter("base_offset")


def segment_index(segments: Sequence[Segment], offset: int) -> int:
    """The index of the segment for an offset; -1 if all segments are after it."""
    return bisect_right(segments, offset, key=_base_offset) - 1


def discard(segments: Sequence[Segment], delay_ms: int) -> None:
    """Rename the files of segments; readers have a delay to finish."""
    for segment in segments:
        segment.delete_later(delay_ms)


def swap(
    segments: list[Segment], old: Sequence[Segment], new: Sequence[Segment], delay_ms: int
) -> None:
    """Replace old segments by compacted ones, which are written and synced as `.cleaned`.

    Once all are named `.swap` the new segments are complete: a later crash leaves the new segments,
    an earlier crash the old. They are renamed from the last to the first, and start-up removes the
    `.swap` files behind the smallest `.cleaned` one (Kafka's protocol).
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
