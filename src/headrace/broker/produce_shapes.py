"""Producers send the same request over and over with other records in it.

Most Produce requests carry one batch for one partition, and all but the records is, byte for
byte, what the same connection sent before. A shape remembers what such a prefix meant: which
partition, which acks, and how the answer begins and ends. Finding it again is one look into a
dict instead of a decoding and an encoding.

Only the usual, successful case is served here. Whatever differs in the slightest goes through
`api/records/produce.py`, which alone defines what is right: so does the first batch of a
transaction in a partition, which the log refuses unless its coordinator was asked. Shapes are
forgotten whenever partitions or configs change.
"""

from struct import Struct
from typing import TYPE_CHECKING

from headrace.protocol.hot_produce import (
    FLEXIBLE_FROM,
    TOPIC_IDS_FROM,
    ZSTD_FROM,
    ProduceView,
    TopicKey,
)

if TYPE_CHECKING:
    from headrace.broker.partitions import Partition

PREFIX_START = 8
"""A frame begins with API key, version and correlation id; only what follows them repeats."""

_SHAPES_MAX = 4096
_NEVER = (1 << 63) - 1

_SIZE = Struct(">i")
# Partition, error, base offset, append time, log start, record errors, message, throttle time.
_TAIL_V7 = Struct(">ihqqqi")
_TAIL_V8 = Struct(">ihqqqihi")
# The same in compact form, with the tagged fields of partition, topic and response.
_TAIL_V9 = Struct(">ihqqqBBBBiB")
_OFFSETS = Struct(">qqq")
_OFFSETS_IN_TAIL = 6
_CORRELATION_ID_POSITION = 4
_NO_TAGS = b"\0\0\0"

_pack_correlation_id = _SIZE.pack_into
_pack_offsets = _OFFSETS.pack_into


class ProduceShape:
    """What a request prefix means, and the answer with gaps for what varies."""

    __slots__ = (
        "_answer",
        "_offsets_position",
        "acks",
        "is_flexible",
        "is_transactional",
        "key",
        "partition",
    )

    def __init__(
        self,
        partition: "Partition",
        key: TopicKey,
        acks: int,
        version: int,
        *,
        is_transactional: bool = False,
    ) -> None:
        self.partition = partition
        self.key = key
        self.acks = acks
        self.is_transactional = is_transactional
        self.is_flexible = version >= FLEXIBLE_FROM
        if self.is_flexible:
            name = key if version >= TOPIC_IDS_FROM else bytes((len(key) + 1,)) + key
            head = b"\0\2" + name + b"\2"
            tail = _TAIL_V9.pack(partition.index, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0)
        else:
            head = _SIZE.pack(1) + len(key).to_bytes(2) + key + _SIZE.pack(1)
            if version >= 8:
                tail = _TAIL_V8.pack(partition.index, 0, 0, 0, 0, 0, -1, 0)
            else:
                tail = _TAIL_V7.pack(partition.index, 0, 0, 0, 0, 0)
        body = bytes(4) + head + tail
        self._answer = bytearray(_SIZE.pack(len(body)) + body)
        self._offsets_position = len(self._answer) - len(tail) + _OFFSETS_IN_TAIL

    def records(self, frame: memoryview, position: int) -> memoryview | None:
        """The records after the prefix if nothing but them follows, else None."""
        end = len(frame)
        if not self.is_flexible:
            size = _SIZE.unpack_from(frame, position)[0]
            return frame[position + 4 :] if position + 4 + size == end else None
        size = shift = 0
        while True:
            byte = frame[position]
            position += 1
            size |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
        if position + size - 1 + len(_NO_TAGS) != end or frame[end - 3 : end] != _NO_TAGS:
            return None
        return frame[position : end - 3]

    def answer(
        self, correlation_id: int, base_offset: int, append_time: int, log_start: int
    ) -> bytes:
        answer = self._answer
        _pack_correlation_id(answer, _CORRELATION_ID_POSITION, correlation_id)
        _pack_offsets(answer, self._offsets_position, base_offset, append_time, log_start)
        return bytes(answer)


class ProduceShapes:
    """The shapes in use, by request prefix; bounded, and forgotten as a whole."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, bytes], ProduceShape] = {}

    def forget(self) -> None:
        self.known.clear()

    def learn(
        self,
        frame: memoryview,
        version: int,
        request: ProduceView,
        partition: "Partition",
    ) -> int:
        """Remember a request that went well; returns where its records begin, 0 if unusual."""
        if not _is_usual(request, version, partition):
            return 0
        key, ((_, records),) = request.topics[0]
        assert records is not None
        is_transactional = request.transactional_id is not None
        shape = ProduceShape(
            partition, key, request.acks, version, is_transactional=is_transactional
        )
        tail = _size_of_length(len(records)) if shape.is_flexible else 4
        prefix_end = len(frame) - len(records) - tail - (3 if shape.is_flexible else 0)
        if shape.records(frame, prefix_end) is None:
            return 0
        if len(self.known) >= _SHAPES_MAX:
            self.known.clear()
        self.known[version, bytes(frame[PREFIX_START:prefix_end])] = shape
        return prefix_end


def _is_usual(request: ProduceView, version: int, partition: "Partition") -> bool:
    log = partition.log
    return (
        version >= ZSTD_FROM  # Before, each batch's codec must be looked at.
        and len(request.topics) == 1
        and len(request.topics[0][1]) == 1
        and len(request.topics[0][0]) < 0x7F
        and log is not None
        and log.config.flush_messages == _NEVER
    )


def _size_of_length(size: int) -> int:
    """How many bytes the compact length of so many bytes takes."""
    return max(1, ((size + 1).bit_length() + 6) // 7)
