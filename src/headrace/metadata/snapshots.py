"""Snapshots: an image in a file, which replaces the log before it.

A snapshot `00000000000000000047-0000000002.checkpoint` has the state before offset 47; the last
record before it is of epoch 2. The file begins with a control batch (a header, and the voters if
their set is dynamic), continues with metadata records and ends with a footer. A file without
the footer is incomplete and ignored. `bootstrap.checkpoint`, which formatting writes for the first
leader, has the same format.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from headrace.metadata.records import (
    CorruptMetadata,
    VersionedRecord,
    decode_batches,
    encode_values,
)
from headrace.protocol.message import Message
from headrace.protocol.metadata_records import encode_metadata_record
from headrace.protocol.quorum_records import encode_control_batch
from headrace.protocol.schemas.records.control import (
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)

_SUFFIX = ".checkpoint"
_CHUNK_SIZE = 256 << 10


class SnapshotId(NamedTuple):
    """The offset after a snapshot's last record, and that record's epoch; a later id is greater."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        return f"{self.end_offset:020d}-{self.epoch:010d}{_SUFFIX}"

    @classmethod
    def parse(cls, file_name: str) -> "SnapshotId | None":
        """Return the id in a file name; None for temporary, deleted and other files."""
        offset, dash, epoch = file_name.removesuffix(_SUFFIX).partition("-")
        numbers = len(offset) == 20 and len(epoch) == 10 and (offset + epoch).isdecimal()
        if not file_name.endswith(_SUFFIX) or not dash or not numbers:
            return None
        return cls(int(offset), int(epoch))


FORMATTED = SnapshotId(0, 0)
"""The snapshot that formatting writes: it has the voters only."""


class Snapshot(msgspec.Struct, frozen=True):
    """The content of a snapshot file."""

    timestamp_ms: int
    records: Sequence[Message]
    control: Sequence[Message] = ()
    """kraft.version and the voters, if their set is dynamic."""


def encode_snapshot(
    records: Iterable[VersionedRecord],
    *,
    epoch: int,
    last_contained_log_timestamp_ms: int,
    now_ms: int,
    voters: VotersRecord | None = None,
    kraft_version: int = 0,
) -> Iterator[bytearray]:
    """Encode a snapshot batch by batch, so that it is never in memory as a whole."""
    opening: list[Message] = [SnapshotHeaderRecord(0, last_contained_log_timestamp_ms)]
    if kraft_version and voters is not None:
        opening += [KRaftVersionRecord(0, kraft_version), voters]
    yield encode_control_batch(opening, 0, epoch, now_ms)
    offset = len(opening)
    for values in _chunks(records):
        yield encode_values(values, offset, epoch, now_ms)
        offset += len(values)
    yield encode_control_batch([SnapshotFooterRecord()], offset, epoch, now_ms)


def _chunks(records: Iterable[VersionedRecord]) -> Iterator[list[bytes]]:
    """Encode the records, in chunks of about the size of a batch."""
    chunk: list[bytes] = []
    size = 0
    for message, version in records:
        value = encode_metadata_record(message, version)
        chunk.append(value)
        size += len(value)
        if size >= _CHUNK_SIZE:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def decode_snapshot(data: bytes) -> Snapshot:
    """Decode a snapshot file; raise `CorruptMetadata` if a part is missing."""
    records: list[Message] = []
    control: dict[type[Message], Message] = {}
    for batch in decode_batches(data):
        if batch.is_control:
            control.update((type(message), message) for message in batch.records)
        else:
            records.extend(batch.records)
    header, footer = control.get(SnapshotHeaderRecord), control.get(SnapshotFooterRecord)
    if not isinstance(header, SnapshotHeaderRecord) or footer is None:
        raise CorruptMetadata("the snapshot has no header or no footer: it is incomplete")
    quorum = [control[kind] for kind in (KRaftVersionRecord, VotersRecord) if kind in control]
    return Snapshot(header.last_contained_log_timestamp, records, quorum)
