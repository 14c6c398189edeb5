"""The files of a micro-batch of a table's stream, decided from offsets alone.

A stream begins with the files of one version, the snapshot, and then follows the later commits.
Offsets have a version; while a large snapshot is read in parts, they also have its number of
finished files. Two offsets always mean the same rows, so a batch can be repeated.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from headrace.lake.commit_log import AddedFile
from headrace.lake.errors import TableRewritten

T = TypeVar("T")

_STANDSTILL_MAX = 100
"""The commits without rows after which the offset advances, so that it stays within the log."""


class Versions(Protocol):
    """A table's versions."""

    name: str

    def snapshot_files(self, version: int, *, with_versions: bool = True) -> list[AddedFile]: ...
    def files_as_arrived(self, version: int) -> list[AddedFile]: ...
    def added(self, after_version: int, to_version: int) -> list[AddedFile]: ...


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a stream."""

    table: str
    table_id: str
    version: int
    """The last version whose rows are read; -1 before the first."""
    snapshot: int | None = None
    """The version whose files are being read in parts."""
    files: int = 0
    """The number of finished files of the snapshot."""

    def document(self) -> dict[str, Any]:
        """Return the position for Spark's checkpoint."""
        found: dict[str, Any] = {"table": self.table, "id": self.table_id, "version": self.version}
        if self.snapshot is not None:
            found |= {"snapshot": self.snapshot, "files": self.files}
        return found

    @classmethod
    def of(cls, document: dict[str, Any], table: str, table_id: str) -> "Position":
        """Parse a position from a checkpoint, which must be of this table."""
        if document.get("id") != table_id:
            raise TableRewritten(
                f"the checkpoint is of another table {document.get('table')}: {table} was rebuilt,"
                " or another generation is in use. Restart the stream with a new checkpoint"
            )
        return cls(
            table,
            table_id,
            int(document["version"]),
            document.get("snapshot"),
            int(document.get("files", 0)),
        )


def advanced(table: Versions, start: Position, newest: int, files_max: int | None) -> Position:
    """Return the end of the next batch, by the newest version and the limit.

    A commit is never split, so that rows that were written together are read together.
    """
    if start.version < 0 and start.snapshot is None and newest < 0:
        return start
    if start.version < 0:
        snapshot = newest if start.snapshot is None else start.snapshot
        return _advanced_in_snapshot(table, start, snapshot, files_max)
    return _advanced_in_commits(table, start, newest, files_max)


def planned(
    table: Versions, start: Position, end: Position, *, with_versions: bool = True
) -> list[AddedFile]:
    """Return the files between two positions, in the order of their rows' commits.

    A snapshot in parts is read in the order of file names, which does not change when files are
    joined.
    """
    if start.version >= 0:
        return table.added(start.version, end.version)
    if start.snapshot is None and end.snapshot is None:
        return table.files_as_arrived(end.version)
    snapshot = end.version if end.snapshot is None else end.snapshot
    if start.snapshot is not None:
        # A partly read snapshot is finished before later commits are read.
        snapshot = start.snapshot
    files = table.snapshot_files(snapshot, with_versions=with_versions)
    return files[start.files : end.files if end.snapshot is not None else None]


def bins(
    files: Iterable[T], bytes_max: int, size_bytes: Callable[[T], int]
) -> Iterator[tuple[T, ...]]:
    """Group files, in their order, by about this many bytes per task."""
    group: list[T] = []
    room = bytes_max
    for file in files:
        if group and size_bytes(file) > room:
            yield tuple(group)
            group, room = [], bytes_max
        group.append(file)
        room -= size_bytes(file)
    if group:
        yield tuple(group)


def _advanced_in_snapshot(
    table: Versions, start: Position, snapshot: int, files_max: int | None
) -> Position:
    if files_max is not None:
        total = len(table.snapshot_files(snapshot, with_versions=False))
        done = start.files + files_max
        if done < total:
            return Position(start.table, start.table_id, -1, snapshot, done)
    return Position(start.table, start.table_id, snapshot)


def _advanced_in_commits(
    table: Versions, start: Position, newest: int, files_max: int | None
) -> Position:
    """Advance to the last commit with rows; later commits without rows do not need a batch."""
    end, count = start.version, 0
    for version in range(start.version + 1, newest + 1):
        added = len(table.added(version - 1, version))
        if count and files_max is not None and count + added > files_max:
            break
        count += added
        if added or version - end > _STANDSTILL_MAX:
            end = version
    return Position(start.table, start.table_id, end)
