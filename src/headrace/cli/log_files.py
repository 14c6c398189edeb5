"""The files of a log directory as readable entries; the file's name gives its type.

Works on files alone, without a broker. Damaged parts are reported with their position, and the
rest is shown.
"""

import mmap
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import Struct
from typing import Protocol

import msgspec

from headrace.cli.batch_text import PaddingEntry, ProblemEntry, dump_batches
from headrace.cli.output import time_text
from headrace.errors import CorruptMessage, HeadraceError
from headrace.protocol.batches import HEADER_SIZE, read_header
from headrace.protocol.compression import Buffer
from headrace.protocol.metadata_topic import METADATA_TOPIC
from headrace.storage import checkpoints, producer_snapshots
from headrace.storage.indexes import CorruptIndex, TransactionIndex

_SEGMENT_NAME = re.compile(r"(\d{20})(?:-\d{10})?\.\w+")
_TEMPORARY = (".deleted", ".cleaned", ".swap", ".part", ".tmp")
_OFFSET_ENTRY = Struct(">ii")
_TIME_ENTRY = Struct(">qi")


class DumpEntry(Protocol):
    """An entry of a dump: a line for people, a JSON object for programs."""

    def text(self) -> str: ...


class OffsetIndexEntry(msgspec.Struct, frozen=True, kw_only=True, tag_field="entry", tag="offset"):
    """An offset and the position of its batch; invalid if the segment disagrees."""

    offset: int
    position: int
    is_valid: bool | None

    def text(self) -> str:
        return f"offset {self.offset}  position {self.position}{_verdict(self.is_valid)}"


class TimeIndexEntry(msgspec.Struct, frozen=True, kw_only=True, tag_field="entry", tag="time"):
    """The largest timestamp up to an offset."""

    timestamp: int
    offset: int

    def text(self) -> str:
        return f"time {time_text(self.timestamp)} ({self.timestamp})  offset {self.offset}"


class AbortedEntry(msgspec.Struct, frozen=True, kw_only=True, tag_field="entry", tag="aborted"):
    """An aborted transaction."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int

    def text(self) -> str:
        return (
            f"producer {self.producer_id}  offsets {self.first_offset}-{self.last_offset}"
            f"  last stable offset {self.last_stable_offset}"
        )


class ProducerEntry(msgspec.Struct, frozen=True, kw_only=True, tag_field="entry", tag="producer"):
    """A producer as of a snapshot."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_first_offset: int

    def text(self) -> str:
        return (
            f"producer {self.producer_id} epoch {self.producer_epoch}"
            f"  last sequence {self.last_sequence}  last offset {self.last_offset}"
            f"  {time_text(self.last_timestamp)}  coordinator epoch {self.coordinator_epoch}"
            f"  open transaction from {self.transaction_first_offset}"
        )


class TextEntry(msgspec.Struct, frozen=True, kw_only=True, tag_field="entry", tag="line"):
    """A line of a text file, split into named fields where these are known."""

    fields: dict[str, str]

    def text(self) -> str:
        return "  ".join(f"{name} {value}" for name, value in self.fields.items())


Reader = Callable[[Path, Buffer], Iterator[DumpEntry]]


def dump_file(path: Path, *, show_records: bool) -> Iterator[DumpEntry]:
    """Yield the entries of any file that a broker writes; raise `HeadraceError` for others."""
    name = path.name
    for suffix in _TEMPORARY:
        name = name.removesuffix(suffix)
    content = _map(path)
    match name.rpartition(".")[2]:
        case "log" | "checkpoint":
            is_metadata = name.endswith(".checkpoint") or f"{METADATA_TOPIC}-0" in path.parts
            return dump_batches(content, show_records=show_records, is_metadata=is_metadata)
        case "index":
            return _offset_index(path, content)
        case "timeindex":
            return _time_index(path, content)
        case "txnindex":
            return _transaction_index(content)
        case "snapshot":
            return _producer_snapshot(content)
    if name.endswith("-checkpoint"):
        return _text_checkpoint(name, bytes(content))
    if name in ("partition.metadata", "meta.properties", "quorum-state", ".kafka_cleanshutdown"):
        return _small_text(bytes(content))
    raise HeadraceError(
        f"{path} is not a file of a log; dump .log, .index, .timeindex, .txnindex, .snapshot,"
        " .checkpoint and checkpoint files"
    )


def base_offset_of(path: Path) -> int:
    """Parse the base offset in the name of a segment's file."""
    found = _SEGMENT_NAME.match(path.name)
    if found is None:
        raise HeadraceError(f"{path.name} does not start with the 20 digits of a base offset")
    return int(found[1])


def _map(path: Path) -> Buffer:
    """Map the content of a file into memory."""
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return b""
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise HeadraceError(f"cannot read {path}: {error.strerror}") from error


def _offset_index(path: Path, content: Buffer) -> Iterator[DumpEntry]:
    base = base_offset_of(path)
    segment = path.with_name(path.name.replace(".index", ".log"))
    batches = _map(segment) if segment.exists() else None
    for number, (relative, position) in enumerate(_entries(_OFFSET_ENTRY, content)):
        if relative == 0 and position == 0:
            yield _reserved(number * _OFFSET_ENTRY.size, content)
            return
        valid = None if batches is None else _ends_at(batches, position, base + relative)
        yield OffsetIndexEntry(offset=base + relative, position=position, is_valid=valid)
    yield from _remainder(_OFFSET_ENTRY, content)


def _time_index(path: Path, content: Buffer) -> Iterator[DumpEntry]:
    base = base_offset_of(path)
    for number, (timestamp, relative) in enumerate(_entries(_TIME_ENTRY, content)):
        if timestamp == 0 and relative == 0:
            yield _reserved(number * _TIME_ENTRY.size, content)
            return
        yield TimeIndexEntry(timestamp=timestamp, offset=base + relative)
    yield from _remainder(_TIME_ENTRY, content)


def _transaction_index(content: Buffer) -> Iterator[DumpEntry]:
    try:
        index = TransactionIndex.from_bytes(bytes(content))
    except CorruptIndex as error:
        yield ProblemEntry(position=0, problem=str(error))
        return
    for aborted in index.aborted:
        yield AbortedEntry(
            producer_id=aborted.producer_id,
            first_offset=aborted.first_offset,
            last_offset=aborted.last_offset,
            last_stable_offset=aborted.last_stable_offset,
        )


def _producer_snapshot(content: Buffer) -> Iterator[DumpEntry]:
    try:
        producers = producer_snapshots.decode(bytes(content))
    except producer_snapshots.CorruptSnapshot as error:
        yield ProblemEntry(position=0, problem=str(error))
        return
    for producer in producers:
        newest = producer.batches[-1] if producer.batches else None
        yield ProducerEntry(
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            last_sequence=-1 if newest is None else newest.last_sequence,
            last_offset=-1 if newest is None else newest.last_offset,
            last_timestamp=producer.last_timestamp,
            coordinator_epoch=producer.coordinator_epoch,
            transaction_first_offset=producer.transaction_first_offset,
        )


def _text_checkpoint(name: str, content: bytes) -> Iterator[DumpEntry]:
    names = (
        ("epoch", "start_offset")
        if name == "leader-epoch-checkpoint"
        else (
            "topic",
            "partition",
            "offset",
        )
    )
    try:
        lines = checkpoints.decode_lines(content)
    except checkpoints.CorruptCheckpoint as error:
        yield ProblemEntry(position=0, problem=str(error))
        return
    for line in lines:
        yield TextEntry(fields=dict(zip(names, line.split(" "), strict=False)))


def _small_text(content: bytes) -> Iterator[DumpEntry]:
    """Parse a small file: properties, `name: value` lines or one JSON object."""
    text = content.decode(errors="replace")
    if text.startswith("{"):
        fields = msgspec.json.decode(content, type=dict[str, msgspec.Raw])
        yield TextEntry(fields={name: bytes(raw).decode() for name, raw in fields.items()})
        return
    for line in text.splitlines():
        name, separator, value = line.replace(": ", "=", 1).partition("=")
        if separator and not line.startswith("#"):
            yield TextEntry(fields={name: value})


def _entries(layout: Struct, content: Buffer) -> Iterator[tuple[int, ...]]:
    whole = len(content) - len(content) % layout.size
    return layout.iter_unpack(content[:whole])


def _remainder(layout: Struct, content: Buffer) -> Iterator[DumpEntry]:
    if rest := len(content) % layout.size:
        yield ProblemEntry(
            position=len(content) - rest, problem=f"{rest} trailing bytes are not a complete entry"
        )


def _reserved(position: int, content: Buffer) -> PaddingEntry:
    return PaddingEntry(position=position, size_bytes=len(content) - position)


def _ends_at(batches: Buffer, position: int, offset: int) -> bool:
    """Return whether the batch at a position ends with an offset, as the index claims."""
    if position < 0 or position + HEADER_SIZE > len(batches):
        return False
    try:
        return read_header(batches, position).last_offset == offset
    except CorruptMessage:
        return False


def _verdict(is_valid: bool | None) -> str:
    return "" if is_valid is None else "  valid" if is_valid else "  INVALID"
