"""Shapes of Produce requests, by which repeated requests are recognised without decoding.

Most Produce requests carry one batch for one partition, and everything but the records is, byte
for byte, as in an earlier request of the same connection. A shape remembers the meaning of such a
prefix: the partition, the acks, and the beginning and end of the answer. Finding a shape is one
lookup in a dict instead of a decoding and an encoding.

Shapes serve only the usual, successful requests (`rounds.py`). Every other request is decoded by
`api/records/produce.py`, which defines the behaviour: for example the first batch of a transaction
in a partition, because the coordinator must admit it. Shapes are forgotten whenever their
partition or its configs change.

With a login or an authorizer a shape serves only clients with the principal and the host that it
was learned from. All shapes are forgotten when rules change: what has been allowed stays allowed
until then.
"""

from functools import lru_cache
from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING

from headrace.protocol.api_keys import ApiKey
from headrace.protocol.batches import HEADER_SIZE
from headrace.protocol.hot_produce import (
    FLEXIBLE_FROM,
    TOPIC_IDS_FROM,
    ZSTD_FROM,
    ProduceView,
    TopicKey,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from headrace.replication.partition import HostedTopic, Partition
    from headrace.security.principals import Caller

PREFIX_START = 8
"""The size of API key, version and correlation id, which precede the repeated prefix."""

ALL = -1
"""The acks of a producer that waits for all in-sync replicas."""

EVERYBODY = 0
"""The caller of a shape that serves all anonymous clients, because there is no authorizer."""

_SHAPES_MAX = 16_384
_CALLERS_MAX = 16_384
_NEVER = (1 << 63) - 1

_SIZE = Struct(">i")
_OPENING = Struct(">hh")
# Partition, error, base offset, append time, log start, record errors, message, throttle time.
_TAIL_V7 = Struct(">ihqqqi")
_TAIL_V8 = Struct(">ihqqqihi")
# The same in compact form, with the tagged fields of partition, topic and response.
_TAIL_V9 = Struct(">ihqqqBBBBiB")
_OFFSETS_IN_TAIL = 6
_OFFSETS_SIZE = 24
_NO_TAGS = b"\0\0\0"
_LENGTH_BITS_MAX = 28  # A length has five bytes at most, of seven bits each.

_ACKS_TIMEOUT_SIZE = 6
_TOPIC_ID_SIZE = 16

_unpack_size = _SIZE.unpack_from
_unpack_length = Struct(">h").unpack_from


class ProduceShape:
    """The meaning of a request prefix, and its answer with gaps for the offsets."""

    __slots__ = (
        "_after_offsets",
        "_before_offsets",
        "_pack",
        "_size",
        "acks",
        "caller",
        "frame_size_min",
        "index",
        "is_flexible",
        "is_transactional",
        "key",
        "opening",
        "partition",
        "prefix",
        "prefix_size",
        "tail_size",
        "timeout_ms",
        "version",
        "waits",
    )

    def __init__(
        self,
        partition: "Partition",
        key: TopicKey,
        acks: int,
        version: int,
        *,
        prefix: bytes = b"",
        is_transactional: bool = False,
        timeout_ms: int = 0,
        caller: int = EVERYBODY,
    ) -> None:
        self.caller = caller
        """The number of the clients that the shape serves."""
        self.partition: Partition | None = partition  # None once the shape is forgotten.
        self.index = partition.index
        self.key = key
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.waits = acks == ALL and partition.in_sync is not None
        """True if the answer waits for followers; the shape is forgotten when they change."""
        self.version = version
        self.opening = int.from_bytes(_OPENING.pack(ApiKey.PRODUCE, version))
        self.prefix = prefix
        self.prefix_size = PREFIX_START + len(prefix)
        self.is_transactional = is_transactional
        self.is_flexible = version >= FLEXIBLE_FROM
        self.tail_size = len(_NO_TAGS) if self.is_flexible else 0
        # A length and three tags in one byte each take as much as a length of four bytes.
        self.frame_size_min = _SIZE.size + self.prefix_size + _SIZE.size + HEADER_SIZE
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
        self._size = 4 + len(head) + len(tail)
        self._before_offsets = head + tail[:_OFFSETS_IN_TAIL]
        self._after_offsets = tail[_OFFSETS_IN_TAIL + _OFFSETS_SIZE :]
        self._pack = _pack_around(len(self._before_offsets), len(self._after_offsets))

    def find_records(self, data: bytearray | memoryview, position: int, end: int) -> int:
        """Return where the records begin after a prefix; 0 if the frame contains anything else.

        Records end `tail_size` before the frame does, and are at least as long as a batch's header.
        """
        if not self.is_flexible:
            size = _unpack_size(data, position)[0]
            return position + 4 if HEADER_SIZE <= size == end - position - 4 else 0
        size = shift = 0
        while position < end:
            byte = data[position]
            position += 1
            size |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > _LENGTH_BITS_MAX:
                return 0
        if (
            HEADER_SIZE < size == end - position - len(_NO_TAGS) + 1
            and bytes(data[end - 3 : end]) == _NO_TAGS
        ):
            return position
        return 0

    def answer(
        self, correlation_id: int, base_offset: int, append_time: int, log_start: int
    ) -> bytes:
        return self._pack(
            self._size,
            correlation_id,
            self._before_offsets,
            base_offset,
            append_time,
            log_start,
            self._after_offsets,
        )


class ProduceShapes:
    """The shapes in use, by request prefix; bounded, and forgotten when their topic changes."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, bytes, int], ProduceShape] = {}
        self._numbers: dict[Caller, int] = {}
        self._last_number = EVERYBODY

    def forget(self, topics: "Collection[HostedTopic] | None" = None) -> None:
        """Forget the shapes of some topics, or all shapes.

        Connections keep their last shape, so a forgotten shape also loses its partition.
        """
        kept = {}
        for key, shape in self.known.items():
            partition = shape.partition
            if topics is None or (partition is not None and partition.topic in topics):
                shape.partition = None
            else:
                kept[key] = shape
        self.known = kept

    def learn(
        self,
        frame: memoryview,
        version: int,
        request: ProduceView,
        partition: "Partition",
        caller: "Caller | None" = None,
    ) -> ProduceShape | None:
        """Remember the shape of a successful request; None if the request is unusual.

        `caller` is None for an anonymous client if there is no authorizer.
        """
        if not _is_usual(request, version, partition):
            return None
        key, ((_, records),) = request.topics[0]
        assert records is not None
        is_flexible = version >= FLEXIBLE_FROM
        tail = _size_of_length(len(records)) + len(_NO_TAGS) if is_flexible else _SIZE.size
        prefix_end = len(frame) - len(records) - tail
        prefix = bytes(frame[PREFIX_START:prefix_end])
        shape = ProduceShape(
            partition,
            key,
            request.acks,
            version,
            prefix=prefix,
            is_transactional=request.transactional_id is not None,
            timeout_ms=request.timeout_ms,
            caller=EVERYBODY if caller is None else self._number_of(caller),
        )
        if not shape.find_records(frame, prefix_end, len(frame)):
            return None
        if len(self.known) >= _SHAPES_MAX:
            self._thin_out()
        self.known[version, prefix, shape.caller] = shape
        return shape

    def _number_of(self, caller: "Caller") -> int:
        """Return a number that no other caller has had, to look up shapes by."""
        number = self._numbers.get(caller)
        if number is None:
            if len(self._numbers) >= _CALLERS_MAX:
                self._numbers.clear()
            number = self._last_number = self._last_number + 1
            self._numbers[caller] = number
        return number

    def _thin_out(self) -> None:
        """Forget every second shape, regardless of age.

        Clients cycle through their partitions, so the oldest shapes are often needed next.
        """
        for key in list(self.known)[::2]:
            self.known.pop(key).partition = None

    def find(
        self, version: int, frame: memoryview, prefix_size: int, caller: int = EVERYBODY
    ) -> ProduceShape | None:
        """Return the shape of a frame, or None. The last frame's prefix size is tried first.

        A client that writes to topics with names of different lengths alternates between sizes.
        """
        shape = self.known.get((version, bytes(frame[PREFIX_START:prefix_size]), caller))
        if shape is not None:
            return shape
        other_size = prefix_size_of(frame, version)
        if other_size in (0, prefix_size):
            return None
        return self.known.get((version, bytes(frame[PREFIX_START:other_size]), caller))


def prefix_size_of(frame: memoryview, version: int) -> int:
    """Return the position of the records' length in a usual request; 0 for other requests.

    Only lengths are read; the caller then looks up the prefix.
    """
    is_flexible = version >= FLEXIBLE_FROM
    after_name = _after_compact_name if is_flexible else _after_name
    count_size = 1 if is_flexible else _SIZE.size
    try:
        position = _after_name(frame, PREFIX_START)  # The client's id.
        if is_flexible:
            position += 1  # No tags of the header.
        position = after_name(frame, position)  # The transactional id.
        position += _ACKS_TIMEOUT_SIZE + count_size
        if version >= TOPIC_IDS_FROM:
            position += _TOPIC_ID_SIZE
        else:
            position = after_name(frame, position)
    except (IndexError, struct_error):
        return 0
    position += count_size + _SIZE.size  # One partition, and its index.
    return position if len(frame) >= position + _SIZE.size + HEADER_SIZE else 0


def _after_name(frame: memoryview, position: int) -> int:
    length: int = _unpack_length(frame, position)[0]
    return position + 2 + max(length, 0)


def _after_compact_name(frame: memoryview, position: int) -> int:
    """Skip a name with a length of one byte, as in usual requests; 0 and 1 mean no name."""
    return position + max(frame[position], 1)


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


@lru_cache(maxsize=1024)
def _pack_around(before: int, after: int) -> "Callable[..., bytes]":
    """Return the packer of answers whose parts around the offsets have these sizes."""
    return Struct(f">ii{before}sqqq{after}s").pack


def _size_of_length(size: int) -> int:
    """Return the size of the compact length field before `size` bytes."""
    return max(1, ((size + 1).bit_length() + 6) // 7)
