"""The result of a read: a part of one segment file with whole batches."""

from collections.abc import Sequence

import msgspec

from headrace.runtime import files
from headrace.runtime.files import OpenFile
from headrace.storage.segment import Segment
from headrace.storage.segments import segment_index


class LogSlice(msgspec.Struct, gc=False):
    """Whole batches in one segment file, from the batch with the requested offset.

    The slice keeps the file open while it is sent, even if the segment is deleted meanwhile.
    """

    file: OpenFile | None
    position: int
    size: int

    def fileno(self) -> int:
        assert self.file is not None, "an empty slice has no file"
        return self.file.fd

    def read(self) -> bytes:
        return files.pread(self.file.fd, self.size, self.position) if self.file else b""


def read_sealed(
    segments: Sequence[Segment],
    log_end_offset: int,
    offset: int,
    size_max: int,
    end_offset: int,
    *,
    at_least_one: bool,
) -> LogSlice:
    """The slice at an offset before the active segment, as specified by `Log.read`."""
    at = segment_index(segments, offset)
    segment = segments[at]
    position = segment.locate(offset)
    while position >= segment.size and at + 1 < len(segments):
        # Compaction removed all later records of this segment.
        at += 1
        segment = segments[at]
        position = 0
    end_position = segment.size
    is_last = at + 1 == len(segments)
    if end_offset < (log_end_offset if is_last else segments[at + 1].base_offset):
        end_position = max(position, segment.locate(end_offset))
    end_position = segment.boundary(position, end_position, size_max, at_least_one=at_least_one)
    return LogSlice(segment.open(), position, end_position - position)


def end_of_slice(
    segments: Sequence[Segment], log_end_offset: int, slice_: LogSlice, offset: int
) -> int:
    """The offset after the last batch of a slice that was read from an offset."""
    end_position = slice_.position + slice_.size
    for at in range(max(0, segment_index(segments, offset)), len(segments)):
        segment = segments[at]
        if segment.open() is slice_.file:
            if end_position < segment.size:
                return segment.base_offset_at(end_position)
            if at + 1 < len(segments):
                return segments[at + 1].base_offset
            break
    return log_end_offset
