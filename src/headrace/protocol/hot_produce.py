"""Produce by hand: a faster twin of the generated codec for the most frequent request.

The reader skips the record sets and returns them as views of the frame; only the topic's name is
copied. The writer encodes only success: a response with an error in it is
rare enough for the generated codec. `tests/unit/protocol/test_hot_produce.py` compares both
with the generated codec in every version.
"""

import struct
from struct import Struct
from typing import NamedTuple

from headrace.protocol.codec import DecodeError
from headrace.protocol.primitives import append_uvarint, reading_failure, refuse_count
from headrace.protocol.request_limits import ELEMENTS_MAX, TAGS_MAX

_I16 = Struct(">h")
_I32 = Struct(">i")
_ACKS_TIMEOUT_COUNT = Struct(">hii")
_ACKS_TIMEOUT = Struct(">hi")
_INDEX_SIZE = Struct(">ii")
_DONE_V3 = Struct(">ihqq")  # Partition, error, base offset, log append time.
_DONE_V5 = Struct(">ihqqq")  # And the log's start.
_DONE_V8 = Struct(">ihqqqih")  # And no record errors, no message.
_DONE_V9 = Struct(">ihqqqBBB")  # The same in compact form, without tagged fields.
_FRAME = Struct(">ii")

ZSTD_FROM = 7
FLEXIBLE_FROM = 9
TOPIC_IDS_FROM = 13

TopicKey = bytes  # The topic's name in UTF-8, or its id from v13 on.
PartitionRecords = tuple[int, memoryview | None]


class ProduceView(NamedTuple):
    """A Produce request whose record sets are views of the frame."""

    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: list[tuple[TopicKey, list[PartitionRecords]]]


class Appended(NamedTuple):
    """The offsets of one record set in its log."""

    partition: int
    base_offset: int
    log_append_time_ms: int
    log_start_offset: int


def read_produce(frame: memoryview, position: int, version: int) -> ProduceView:
    """Decode the body of a Produce request within a frame."""
    try:
        if version >= FLEXIBLE_FROM:
            return _read_flexible(frame, position, version)
        return _read_classic(frame, position)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise DecodeError(f"not a ProduceRequest v{version}: {reading_failure(error)}") from error


def _read_classic(frame: memoryview, position: int) -> ProduceView:
    end = len(frame)
    transactional_id = None
    size = _I16.unpack_from(frame, position)[0]
    position += 2
    if size >= 0:
        transactional_id = str(_take(frame, position, size), "utf-8")
        position += size
    acks, timeout_ms, topic_count = _ACKS_TIMEOUT_COUNT.unpack_from(frame, position)
    position += 10
    elements_left = ELEMENTS_MAX - topic_count
    topics = []
    for _ in range(topic_count):
        size = _I16.unpack_from(frame, position)[0]
        if size < 0:
            raise DecodeError("a topic has no name")
        name_end = position + 2 + size
        name = bytes(frame[position + 2 : name_end])
        partition_count = _I32.unpack_from(frame, name_end)[0]
        position = name_end + 4
        elements_left -= max(partition_count, 0)
        if elements_left < 0:
            refuse_count("partitions")
        partitions: list[PartitionRecords] = []
        for _ in range(partition_count):
            index, size = _INDEX_SIZE.unpack_from(frame, position)
            position += 8
            if size < 0:
                partitions.append((index, None))
                continue
            if position + size > end:
                raise DecodeError(f"a record set of {size} bytes exceeds its request")
            partitions.append((index, frame[position : position + size]))
            position += size
        topics.append((name, partitions))
    return ProduceView(transactional_id, acks, timeout_ms, topics)


def _read_flexible(frame: memoryview, position: int, version: int) -> ProduceView:
    transactional_id = None
    size, position = _uvarint(frame, position)
    if size:
        transactional_id = str(_take(frame, position, size - 1), "utf-8")
        position += size - 1
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(frame, position)
    topic_count, position = _uvarint(frame, position + 6)
    elements_left = ELEMENTS_MAX - topic_count
    topics = []
    for _ in range(topic_count - 1):
        if version >= TOPIC_IDS_FROM:
            size = 16
        else:
            size, position = _uvarint(frame, position)
            size -= 1
            if size < 0:
                raise DecodeError("a topic has no name")
        name = bytes(_take(frame, position, size))
        partition_count, position = _uvarint(frame, position + size)
        elements_left -= partition_count
        if elements_left < 0:
            refuse_count("partitions")
        partitions: list[PartitionRecords] = []
        for _ in range(partition_count - 1):
            index = _I32.unpack_from(frame, position)[0]
            size, position = _uvarint(frame, position + 4)
            records = None
            if size:
                records = _take(frame, position, size - 1)
                position += size - 1
            partitions.append((index, records))
            position = skip_tags(frame, position)
        topics.append((name, partitions))
        position = skip_tags(frame, position)
    skip_tags(frame, position)
    return ProduceView(transactional_id, acks, timeout_ms, topics)


def write_success(
    version: int,
    correlation_id: int,
    topics: list[tuple[TopicKey, list[Appended]]],
    throttle_ms: int = 0,
) -> bytearray:
    """The framed answer to a request of which every record set was appended."""
    out = bytearray(_FRAME.pack(0, correlation_id))
    if version >= FLEXIBLE_FROM:
        _write_flexible(out, version, topics)
        out += _I32.pack(throttle_ms) + b"\0"
    else:
        _write_classic(out, version, topics)
        out += _I32.pack(throttle_ms)
    _I32.pack_into(out, 0, len(out) - 4)
    return out


def _write_classic(
    out: bytearray, version: int, topics: list[tuple[TopicKey, list[Appended]]]
) -> None:
    out += _I32.pack(len(topics))
    for name, done in topics:
        out += _I16.pack(len(name))
        out += name
        out += _I32.pack(len(done))
        for index, base_offset, append_time, log_start in done:
            if version >= 8:
                out += _DONE_V8.pack(index, 0, base_offset, append_time, log_start, 0, -1)
            elif version >= 5:
                out += _DONE_V5.pack(index, 0, base_offset, append_time, log_start)
            else:
                out += _DONE_V3.pack(index, 0, base_offset, append_time)


def _write_flexible(
    out: bytearray, version: int, topics: list[tuple[TopicKey, list[Appended]]]
) -> None:
    out += b"\0"
    append_uvarint(out, len(topics) + 1)
    for key, done in topics:
        if version < TOPIC_IDS_FROM:
            append_uvarint(out, len(key) + 1)
        out += key
        append_uvarint(out, len(done) + 1)
        for index, base_offset, append_time, log_start in done:
            out += _DONE_V9.pack(index, 0, base_offset, append_time, log_start, 1, 0, 0)
        out += b"\0"


def _take(frame: memoryview, position: int, size: int) -> memoryview:
    if position + size > len(frame):
        raise DecodeError(f"a field of {size} bytes exceeds its request")
    return frame[position : position + size]


def _uvarint(frame: memoryview, position: int) -> tuple[int, int]:
    byte = frame[position]
    if byte < 0x80:
        return byte, position + 1
    value = byte & 0x7F
    for shift in (7, 14, 21, 28):
        position += 1
        byte = frame[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position + 1
    raise DecodeError("a length is longer than five bytes")


def skip_tags(frame: memoryview, position: int) -> int:
    if not frame[position]:
        return position + 1
    count, position = _uvarint(frame, position)
    if count > TAGS_MAX:
        refuse_count("tagged fields")
    for _ in range(count):
        _, position = _uvarint(frame, position)
        size, position = _uvarint(frame, position)
        position += size
    return position
