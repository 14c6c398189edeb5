"""Finding records by time: the time index, then batch headers, then the records of one batch."""

from collections.abc import Sequence

import msgspec

from headrace.protocol.batches import BatchHeader, Record, records_of
from headrace.runtime import files
from headrace.storage.scanning import headers_in
from headrace.storage.segment import Segment


class TimestampOffset(msgspec.Struct, frozen=True):
    """A record found by time, in ListOffsets' words."""

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
        for at, header in headers_in(segment.open().fd, position, segment.size):
            if header.max_timestamp < timestamp or header.last_offset < start_offset:
                continue
            for record in _records_at(segment, at, header):
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
    for at, header in headers_in(segment.open().fd, position, segment.size):
        if header.max_timestamp == latest:
            for record in _records_at(segment, at, header):
                if record.timestamp == latest:
                    return TimestampOffset(latest, record.offset, header.leader_epoch)
    return None


def _records_at(segment: Segment, position: int, header: BatchHeader) -> list[Record]:
    return records_of(files.pread(segment.open().fd, header.size, position))
