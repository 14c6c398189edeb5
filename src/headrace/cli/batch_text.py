"""Record batches as readable text: header fields, checksum verdict, and records on demand."""

from collections.abc import Iterator
from typing import Any

import msgspec

from headrace.cli.output import time_text
from headrace.cli.record_text import readable
from headrace.errors import CorruptMessage, HeadraceError
from headrace.protocol.batches import (
    HEADER_SIZE,
    BatchHeader,
    Record,
    computed_crc,
    read_header,
    records_of,
)
from headrace.protocol.compression import Buffer, Codec
from headrace.protocol.control_records import ControlType, control_type


class RecordEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One record of a dump."""

    offset: int
    timestamp: int
    key: Any
    value: Any
    headers: list[tuple[str, Any]]

    def text(self) -> str:
        parts = [f"  offset {self.offset}", time_text(self.timestamp)]
        parts += [f"key {shown(self.key)}", f"value {shown(self.value)}"]
        parts += [f"header {name}={shown(value)}" for name, value in self.headers]
        return "  ".join(parts)


class BatchEntry(msgspec.Struct, kw_only=True, tag_field="entry", tag="batch"):
    """One batch of a dump."""

    position: int
    size_bytes: int
    base_offset: int
    last_offset: int
    count: int
    magic: int
    crc: str
    is_valid: bool
    codec: str
    timestamp_type: str
    base_timestamp: int
    max_timestamp: int
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    last_sequence: int
    is_transactional: bool
    is_control: bool
    delete_horizon_ms: int | None
    problem: str | None = None
    records: list[RecordEntry] | None = None

    def text(self) -> str:
        """The batch on a line, its records on the lines below."""
        parts = [
            f"offsets {self.base_offset}-{self.last_offset}",
            f"count {self.count}",
            f"position {self.position}",
            f"size {self.size_bytes}",
            f"magic {self.magic}",
            f"crc {self.crc} {'valid' if self.is_valid else 'INVALID'}",
            f"codec {self.codec}",
            f"{self.timestamp_type} {_span(self.base_timestamp, self.max_timestamp)}",
            f"leader epoch {self.leader_epoch}",
            *self._producer_text(),
        ]
        if self.delete_horizon_ms is not None:
            parts.append(f"delete horizon {time_text(self.delete_horizon_ms)}")
        if self.problem is not None:
            parts.append(f"PROBLEM: {self.problem}")
        return "\n".join(["  ".join(parts), *(record.text() for record in self.records or ())])

    def _producer_text(self) -> Iterator[str]:
        if self.producer_id >= 0:
            yield f"producer {self.producer_id} epoch {self.producer_epoch}"
            yield f"sequences {self.base_sequence}-{self.last_sequence}"
        if self.is_transactional:
            yield "transactional"
        if self.is_control:
            yield "control"


class ProblemEntry(msgspec.Struct, frozen=True, kw_only=True, tag_field="entry", tag="problem"):
    """An unreadable part of a file, with its position."""

    position: int
    problem: str

    def text(self) -> str:
        return f"position {self.position}  PROBLEM: {self.problem}"


class PaddingEntry(msgspec.Struct, frozen=True, kw_only=True, tag_field="entry", tag="padding"):
    """Zeros that a broker has preallocated at the end of a file."""

    position: int
    size_bytes: int

    def text(self) -> str:
        return f"position {self.position}  {self.size_bytes} bytes reserved and not yet used"


def dump_batches(
    content: Buffer, *, show_records: bool, is_metadata: bool = False
) -> Iterator[BatchEntry | ProblemEntry | PaddingEntry]:
    """Yield every batch of a segment or snapshot; stop at a batch that cannot be framed."""
    position = 0
    end = len(content)
    while position < end:
        if _is_zero(content, position):
            yield PaddingEntry(position=position, size_bytes=end - position)
            return
        try:
            header = read_header(content, position)
        except CorruptMessage as error:
            yield ProblemEntry(position=position, problem=str(error))
            return
        if header.size > end - position:
            cut = header.size - (end - position)
            yield ProblemEntry(position=position, problem=f"the batch lacks its last {cut} bytes")
            return
        yield describe_batch(
            content, position, header, show_records=show_records, is_metadata=is_metadata
        )
        position += header.size


def describe_batch(
    content: Buffer,
    position: int,
    header: BatchHeader,
    *,
    show_records: bool,
    is_metadata: bool = False,
) -> BatchEntry:
    """Describe one batch; unreadable records become its problem, not an error."""
    entry = BatchEntry(
        position=position,
        size_bytes=header.size,
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        count=header.count,
        magic=header.magic,
        crc=f"{header.crc:08x}",
        is_valid=computed_crc(content, position, header.size) == header.crc,
        codec=Codec(header.codec).name.lower() if header.codec <= Codec.ZSTD else "unknown",
        timestamp_type="LogAppendTime" if header.uses_log_append_time else "CreateTime",
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        leader_epoch=header.leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        last_sequence=header.last_sequence,
        is_transactional=header.is_transactional,
        is_control=header.is_control,
        delete_horizon_ms=header.delete_horizon_ms,
    )
    if show_records:
        try:
            records = records_of(content, position)
            entry.records = [_record_entry(one, header, is_metadata) for one in records]
        except HeadraceError as error:
            entry.problem = str(error)
    return entry


def shown(content: Any) -> str:
    """A key or value on one line."""
    if content is None:
        return "null"
    return msgspec.json.encode(content).decode()


def _record_entry(record: Record, header: BatchHeader, is_metadata: bool) -> RecordEntry:
    key: Any = readable(record.key)
    value: Any = readable(record.value)
    if header.is_control:
        key, value = _control(record)
    elif is_metadata and record.value is not None:
        value = _metadata(record.value)
    return RecordEntry(
        offset=record.offset,
        timestamp=record.timestamp,
        key=key,
        value=value,
        headers=[(name, readable(content)) for name, content in record.headers],
    )


def _control(record: Record) -> tuple[str, Any]:
    """Return the type of a control record, and its content if that is a message."""
    kind = control_type(record.key)
    name = ControlType(kind).name if kind in list(ControlType) else f"type {kind}"
    return name, _control_value(kind, record.value or b"")


def _control_value(kind: int, value: bytes) -> Any:
    from headrace.protocol.codec import decode
    from headrace.protocol.message import Message
    from headrace.protocol.schemas.records import control

    classes: dict[int, type[Message]] = {
        ControlType.ABORT: control.EndTxnMarker,
        ControlType.COMMIT: control.EndTxnMarker,
        ControlType.LEADER_CHANGE: control.LeaderChangeMessage,
        ControlType.SNAPSHOT_HEADER: control.SnapshotHeaderRecord,
        ControlType.SNAPSHOT_FOOTER: control.SnapshotFooterRecord,
        ControlType.KRAFT_VERSION: control.KRaftVersionRecord,
        ControlType.KRAFT_VOTERS: control.VotersRecord,
    }
    if kind not in classes or len(value) < 2:
        return readable(value)
    # Every one of these starts with its own version; markers are followed by an epoch.
    version = int.from_bytes(value[:2], "big")
    is_marker = classes[kind] is control.EndTxnMarker
    try:
        return _plain(decode(classes[kind], version, value, 2 if is_marker else 0))
    except HeadraceError as error:
        return {"problem": str(error)}


def _metadata(value: bytes) -> Any:
    from headrace.protocol.metadata_records import decode_metadata_record

    try:
        message, version = decode_metadata_record(value)
    except HeadraceError as error:
        return {"problem": str(error)}
    return {"type": type(message).__name__, "version": version, **_plain(message)}


def _plain(message: Any) -> Any:
    """Convert a message to plain values; 16 bytes become a UUID in Kafka's text form."""
    from headrace.protocol.uuids import to_text

    match message:
        case msgspec.Struct():
            return {name: _plain(getattr(message, name)) for name in message.__struct_fields__}
        case list() | tuple():
            return [_plain(one) for one in message]
        case bytes() | memoryview():
            return to_text(bytes(message)) if len(message) == 16 else readable(bytes(message))
        case _:
            return message


def _is_zero(content: Buffer, position: int) -> bool:
    """Return whether only zeros follow; no batch begins with a header's length of zeros."""
    head = bytes(content[position : position + HEADER_SIZE])
    return not any(head)


def _span(first_ms: int, last_ms: int) -> str:
    if first_ms == last_ms:
        return time_text(last_ms)
    return f"{time_text(first_ms)} to {time_text(last_ms)}"
