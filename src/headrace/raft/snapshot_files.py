"""Snapshot files in the directory of the metadata log.

A file is written under a temporary name, synced and renamed, so whatever carries a snapshot's
name is whole.
"""

from collections.abc import Iterable
from os import urandom

import msgspec

from headrace.metadata.image import MetadataImage
from headrace.metadata.image_records import image_records
from headrace.metadata.snapshots import SnapshotId, encode_snapshot
from headrace.protocol.schemas.records.control import VotersRecord
from headrace.runtime import files

_PART = ".checkpoint.part"
_DELETED = ".checkpoint.deleted"


class SnapshotPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot to be written; an image never changes, so `run` may do so in a thread."""

    directory: str
    id: SnapshotId
    image: MetadataImage
    voters: VotersRecord | None
    kraft_version: int
    now_ms: int
    log_size_bytes: int

    def run(self) -> None:
        batches = encode_snapshot(
            image_records(self.image),
            epoch=self.id.epoch,
            last_contained_log_timestamp_ms=self.image.timestamp_ms,
            now_ms=self.now_ms,
            voters=self.voters,
            kraft_version=self.kraft_version,
        )
        write_snapshot(self.directory, self.id, batches)


def list_snapshots(directory: str) -> list[SnapshotId]:
    """The snapshots that are there, the oldest first."""
    found = map(SnapshotId.parse, files.names(directory))
    return sorted(snapshot for snapshot in found if snapshot is not None)


def snapshot_path(directory: str, snapshot: SnapshotId) -> str:
    return f"{directory}/{snapshot.file_name}"


def write_snapshot(directory: str, snapshot: SnapshotId, batches: Iterable[bytearray]) -> int:
    """Write a snapshot and give its size. Touches nothing else, so it may run in a thread."""
    path = snapshot_path(directory, snapshot)
    temporary = f"{path.removesuffix('.checkpoint')}-{urandom(8).hex()}{_PART}"
    file = files.create(temporary)
    size = 0
    for batch in batches:
        files.pwrite_all(file.fd, batch, size)
        size += len(batch)
    files.fsync(file.fd)
    files.replace(temporary, path)
    files.fsync_path(directory)
    return size


def delete_snapshot(directory: str, snapshot: SnapshotId) -> None:
    files.unlink_if_there(snapshot_path(directory, snapshot))


def delete_leftovers(directory: str) -> None:
    """Remove what was being written, or deleted, when the node last stopped."""
    for name in files.names(directory):
        if name.endswith((_PART, _DELETED)):
            files.unlink_if_there(f"{directory}/{name}")
