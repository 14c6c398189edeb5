"""The Fetch response by hand: record sets are not encoded but sent from the file.

The answer is a list of parts: encoded bytes, and between them the slices of segment files, which
go to the socket without passing through this process. Small slices are cheaper
to read and send with their header, so the caller may give bytes instead of a file.
`tests/unit/protocol/test_hot_fetch.py` holds this against the generated codec.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Generic, NamedTuple, Protocol, TypeVar

from headrace.protocol.primitives import append_uvarint

FLEXIBLE_FROM = 12
TOPIC_IDS_FROM = 13

_I16 = Struct(">h")
_I32 = Struct(">i")
_FRAME = Struct(">ii")
_TOP_V4 = Struct(">ii")  # Throttle time, topic count.
_TOP_V7 = Struct(">ihii")  # Throttle time, error, session, topic count.
_TOP_V12 = Struct(">Bihi")  # Header's tagged fields, throttle time, error, session.
_PARTITION_V4 = Struct(">ihqq")  # Partition, error, high watermark, last stable offset.
_PARTITION_V5 = Struct(">ihqqq")  # And the log's start.
_ABORTED = Struct(">qq")  # Producer id, first offset.
# No records, one tagged field: tag 0 of 13 bytes, with an epoch, its end, and no tags of its own.
_DIVERGING = Struct(">BBBBiqB")


# No records, one tagged field: tag 1 of 9 bytes, with a leader, its epoch, and no tags of its own.
_CURRENT_LEADER = Struct(">BBBBiiB")
_NODE_ENDPOINTS_FROM = 16


class Sized(Protocol):
    """A slice of a file with its size."""

    size: int


Slice = TypeVar("Slice", bound=Sized)


class FetchedPartition(NamedTuple, Generic[Slice]):
    """The answer for one partition."""

    partition: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    records: "bytes | Slice | None"
    aborted: Sequence[tuple[int, int]] | None = None
    diverging: tuple[int, int] | None = None
    """The (epoch, end offset) at which the reader's log diverges; it gets no records."""
    current_leader: tuple[int, int] | None = None
    """Id and epoch of the leader, with an error that another leader resolves (KIP-951)."""


class NodeAddress(NamedTuple):
    """Address of a broker that answers name as a leader."""

    node_id: int
    host: str
    port: int
    rack: str | None


def write_fetch(
    version: int,
    correlation_id: int,
    session_id: int,
    topics: "Sequence[tuple[bytes, Sequence[FetchedPartition[Slice]]]]",
    *,
    error_code: int = 0,
    nodes: Sequence[NodeAddress] = (),
    throttle_ms: int = 0,
) -> "list[bytearray | Slice]":
    """The framed answer as parts; a topic's key is its name in UTF-8, or its id from v13 on."""
    writer: _Writer[Slice] = _Writer(version)
    out = writer.out
    out += _FRAME.pack(0, correlation_id)
    if version >= FLEXIBLE_FROM:
        out += _TOP_V12.pack(0, throttle_ms, error_code, session_id)
        append_uvarint(out, len(topics) + 1)
    elif version >= 7:
        out += _TOP_V7.pack(throttle_ms, error_code, session_id, len(topics))
    else:
        out += _TOP_V4.pack(throttle_ms, len(topics))
    for key, partitions in topics:
        writer.topic(key, partitions)
    if nodes and version >= _NODE_ENDPOINTS_FROM:
        _append_nodes(writer.out, nodes)
    elif version >= FLEXIBLE_FROM:
        writer.out += b"\0"
    return writer.finish()


def _append_nodes(out: bytearray, nodes: Sequence[NodeAddress]) -> None:
    """Append the tagged fields of the answer: one, tag 0, an array of addresses."""
    array = bytearray()
    append_uvarint(array, len(nodes) + 1)
    for node_id, host, port, rack in nodes:
        array += _I32.pack(node_id)
        _append_string(array, host)
        array += _I32.pack(port)
        _append_string(array, rack)
        array += b"\0"
    out += b"\1\0"
    append_uvarint(out, len(array))
    out += array


def _append_string(out: bytearray, text: str | None) -> None:
    data = b"" if text is None else text.encode()
    append_uvarint(out, 0 if text is None else len(data) + 1)
    out += data


class AnswerParts(Generic[Slice]):
    """An answer's parts so far, and the buffer that the next bytes go to."""

    def __init__(self) -> None:
        self.out = bytearray()
        self.parts: list[bytearray | Slice] = [self.out]
        self.slice_bytes = 0

    def add_records(self, records: "bytes | Slice") -> None:
        """Records with their length in front, as flexible versions write it."""
        if isinstance(records, bytes):
            append_uvarint(self.out, len(records) + 1)
            self.out += records
        else:
            append_uvarint(self.out, records.size + 1)
            self.add_slice(records)

    def add_slice(self, records: Slice) -> None:
        self.slice_bytes += records.size
        self.parts.append(records)
        self.out = bytearray()
        self.parts.append(self.out)

    def finish(self) -> "list[bytearray | Slice]":
        """All parts, with the size of the whole in the first four bytes."""
        if not self.out:
            self.parts.pop()
        first = self.parts[0]
        assert isinstance(first, bytearray)
        own_bytes = sum(len(part) for part in self.parts if isinstance(part, bytearray))
        _I32.pack_into(first, 0, own_bytes + self.slice_bytes - 4)
        return [part for part in self.parts if not isinstance(part, bytearray) or part]


class _Writer(AnswerParts[Slice]):
    """The parts of a Fetch answer."""

    def __init__(self, version: int) -> None:
        super().__init__()
        self.version = version

    def topic(self, key: bytes, partitions: "Sequence[FetchedPartition[Slice]]") -> None:
        out = self.out
        if self.version >= FLEXIBLE_FROM:
            if self.version < TOPIC_IDS_FROM:
                append_uvarint(out, len(key) + 1)
            out += key
            append_uvarint(out, len(partitions) + 1)
            for partition in partitions:
                self._partition_flexible(partition)
            self.out += b"\0"
        else:
            out += _I16.pack(len(key))
            out += key
            out += _I32.pack(len(partitions))
            for partition in partitions:
                self._partition_classic(partition)

    def _partition_classic(self, partition: "FetchedPartition[Slice]") -> None:
        out = self.out
        index, error, high_watermark, last_stable, log_start, records, aborted, _, _ = partition
        if self.version >= 5:
            out += _PARTITION_V5.pack(index, error, high_watermark, last_stable, log_start)
        else:
            out += _PARTITION_V4.pack(index, error, high_watermark, last_stable)
        out += _I32.pack(-1 if aborted is None else len(aborted))
        for producer_id, first_offset in aborted or ():
            out += _ABORTED.pack(producer_id, first_offset)
        if self.version >= 11:
            out += b"\xff\xff\xff\xff"  # No preferred read replica.
        if records is None:
            out += b"\0\0\0\0"
        elif isinstance(records, bytes):
            out += _I32.pack(len(records))
            out += records
        else:
            out += _I32.pack(records.size)
            self.add_slice(records)

    def _partition_flexible(self, partition: "FetchedPartition[Slice]") -> None:
        out = self.out
        (
            index,
            error,
            high_watermark,
            last_stable,
            log_start,
            records,
            aborted,
            diverging,
            leader,
        ) = partition
        out += _PARTITION_V5.pack(index, error, high_watermark, last_stable, log_start)
        append_uvarint(out, 0 if aborted is None else len(aborted) + 1)
        for producer_id, first_offset in aborted or ():
            out += _ABORTED.pack(producer_id, first_offset)
            out += b"\0"
        out += b"\xff\xff\xff\xff"
        if records is None and leader is not None:
            out += _CURRENT_LEADER.pack(1, 1, 1, 9, *leader, 0)
        elif records is None:
            out += b"\1\0" if diverging is None else _DIVERGING.pack(1, 1, 0, 13, *diverging, 0)
        else:
            self.add_records(records)
            self.out += b"\0"
