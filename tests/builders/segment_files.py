"""Segment files as they lie on the disk, read without any code of ours."""

import struct
from pathlib import Path
from typing import NamedTuple

# The fixed part of a v2 batch: offset, length, leader epoch, magic, CRC, attributes, last offset
# delta, two timestamps, producer id and epoch, sequence, count.
HEADER = struct.Struct(">qiibIhiqqqhii")


class BatchHeader(NamedTuple):
    position: int
    size: int
    base_offset: int
    leader_epoch: int
    attributes: int
    producer_id: int
    record_count: int


def batch_headers(directory: Path) -> list[BatchHeader]:
    """Every batch of a partition, over all its segments; the tail of a preallocated file is not."""
    found = []
    for path in sorted(directory.glob("*.log")):
        found += headers_in(path.read_bytes())
    return found


def headers_in(data: bytes) -> list[BatchHeader]:
    found = []
    position = 0
    while position + HEADER.size <= len(data):
        fields = HEADER.unpack_from(data, position)
        base_offset, length, leader_epoch, magic = fields[:4]
        if magic != 2:
            break
        size = length + 12
        found.append(
            BatchHeader(position, size, base_offset, leader_epoch, fields[5], fields[9], fields[12])
        )
        position += size
    return found
