"""Finding records by time: the time index, then batch headers, then the records of one batch.

One damaged batch must not block searches for ever (docs/internals/decisions/0010). If the records
of a batch are unreadable but its header is not, the header answers with the batch's start. An
invalid header hides the batches up to the next index entry, where the search continues.
"""

from collections.abc import Iterator, Sequence

import msgspec

from headrace.errors import CorruptMessage
from headrace.protocol.batches import BatchHeader, Record, records_of
from headrace.runtime import files
from headrace.storage.scanning import headers_in
from headrace.storage.segment import Segment


class TimestampOffset(msgspec.Struct, frozen=True):
    """A record found by time, as ListOffsets returns it."""

    timestamp: int
    offset: int
    leader_epoch: int


def find_timestamp(
    segments: Sequence[Segment], start_offset: int, timestamp: int
) -> TimestampOffset | None:
    """The first record from an offset on that is at least as late as a timestamp."""
    for segment in segments:
        if segment.largest_timestamp() < timestamp:
            continue
        floor_offset = segment.time_index.floor_offset(timestamp - 1)
        position = segment.index.floor_position(
            max(floor_offset, start_offset - segment.base_offset)
        )
        for at, header in _known_headers(segment, position):
            if header.max_timestamp < timestamp or header.last_offset < start_offset:
                continue
            records = _records_at(segment, at, header)
            if records is None:
                offset = max(header.base_offset, start_offset)
                return TimestampOffset(header.max_timestamp, offset, header.leader_epoch)
            for record in records:
                if record.timestamp >= timestamp and record.offset >= start_offset:
                    return TimestampOffset(record.timestamp, record.offset, header.leader_epoch)
    return None


def find_latest(segments: Sequence[Segment]) -> TimestampOffset | None:
    """The record with the latest timestamp, the first of them if there are several."""
    segment = max(segments, key=lambda segment: segment.max_timestamp)
    latest = segment.max_timestamp
    if latest < 0:
        return None
    position = segment.index.floor_position(segment.max_timestamp_offset - segment.base_offset)
    for at, header in _known_headers(segment, position):
        if header.max_timestamp == latest:
            records = _records_at(segment, at, header)
            if records is None:
                return TimestampOffset(latest, header.last_offset, header.leader_epoch)
            for record in records:
                if record.timestamp == latest:
                    return TimestampOffset(latest, record.offset, header.leader_epoch)
    return None


def _known_headers(segment: Segment, position: int) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each batch from a position on, without damaged ones."""
    start: int | None = position
    while start is not None:
        end = start
        try:
            for at, header in headers_in(segment.open().fd, start, segment.size):
                yield at, header
                end = at + header.size
            return
        except CorruptMessage:
            start = segment.index.next_boundary_after(end)


def _records_at(segment: Segment, position: int, header: BatchHeader) -> list[Record] | None:
    """Return the records of a batch; None if they are unreadable or too large."""
    try:
        return records_of(files.pread(segment.open().fd, header.size, position))
    except CorruptMessage:
        return None
