"""Snapshot files in the directory of the metadata log.

A file is written under a temporary name, synced and renamed, so a file with a snapshot's name is
whole.
"""

from collections.abc import Iterable

import msgspec

from headrace.metadata.image import MetadataImage
from headrace.metadata.image_records import image_records
from headrace.metadata.records import CorruptMetadata
from headrace.metadata.snapshots import Snapshot, SnapshotId, decode_snapshot, encode_snapshot
from headrace.protocol.schemas.records.control import VotersRecord
from headrace.runtime import chance, files

_PART = ".checkpoint.part"
_DELETED = ".checkpoint.deleted"


class SnapshotPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot to write; an image never changes, so `run` may write it in a thread."""

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
    """Return the snapshots in a directory, the oldest first."""
    found = map(SnapshotId.parse, files.names(directory))
    return sorted(snapshot for snapshot in found if snapshot is not None)


def snapshot_path(directory: str, snapshot: SnapshotId) -> str:
    return f"{directory}/{snapshot.file_name}"


def read_snapshot(path: str) -> Snapshot:
    """Read a snapshot; an error names its file."""
    try:
        return decode_snapshot(files.read(path))
    except CorruptMetadata as error:
        raise CorruptMetadata(f"{path}: {error}") from error


def write_snapshot(directory: str, snapshot: SnapshotId, batches: Iterable[bytearray]) -> int:
    """Write a snapshot and return its size; may run in a thread."""
    part = ReceivedSnapshot(directory, snapshot)
    size = 0
    for batch in batches:
        part.write(size, batch)
        size += len(batch)
    part.keep()
    return size


class ReceivedSnapshot:
    """A snapshot that is not whole yet, in a file with a temporary name."""

    def __init__(self, directory: str, snapshot: SnapshotId) -> None:
        self._directory = directory
        self._path = snapshot_path(directory, snapshot)
        self._part = f"{self._path.removesuffix('.checkpoint')}-{chance.urandom(8).hex()}{_PART}"
        self._file = files.create(self._part)

    def write(self, position: int, data: "bytes | bytearray") -> None:
        files.pwrite_all(self._file.fd, data, position)

    def decode(self) -> Snapshot:
        return read_snapshot(self._part)

    def keep(self) -> None:
        """Give the whole snapshot its name, durably."""
        files.fsync(self._file.fd)
        files.replace(self._part, self._path)
        files.fsync_path(self._directory)

    def discard(self) -> None:
        files.unlink_if_there(self._part)


def delete_snapshot(directory: str, snapshot: SnapshotId) -> None:
    files.unlink_if_there(snapshot_path(directory, snapshot))


def delete_leftovers(directory: str) -> None:
    """Remove files whose writing or deletion was interrupted by the last stop."""
    for name in files.names(directory):
        if name.endswith((_PART, _DELETED)):
            files.unlink_if_there(f"{directory}/{name}")
