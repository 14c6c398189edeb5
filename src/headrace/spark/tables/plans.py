"""Which files a micro-batch of a table's stream reads: decided from offsets alone.

A stream begins with the files of one version, the snapshot, and then follows the commits behind
it. Offsets name versions; while a large snapshot is read in parts, they also say how many of its
files are done. The same two offsets always mean the same rows, so a batch can be read again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from headrace.lake.commits import AddedFile
from headrace.lake.errors import TableRewritten

_STANDSTILL_MAX = 100
"""So many commits without rows may pass before the offset follows them: one that stands still
would in the end be older than the log."""


class Versions(Protocol):
    """What is asked of a table."""

    name: str

    def snapshot(self, version: int, *, with_versions: bool = True) -> list[AddedFile]: ...
    def files_as_arrived(self, version: int) -> list[AddedFile]: ...
    def added(self, after_version: int, to_version: int) -> list[AddedFile]: ...


@dataclass(frozen=True, slots=True)
class Position:
    """How far a stream has read."""

    table: str
    table_id: str
    version: int
    """All rows up to this version, and with it; -1 before the first."""
    snapshot: int | None = None
    """The version whose files are being read in parts."""
    files: int = 0
    """How many files of the snapshot are done."""

    def document(self) -> dict[str, Any]:
        """As Spark keeps it in its checkpoint."""
        said: dict[str, Any] = {"table": self.table, "id": self.table_id, "version": self.version}
        if self.snapshot is not None:
            said |= {"snapshot": self.snapshot, "files": self.files}
        return said

    @classmethod
    def of(cls, document: dict[str, Any], table: str, table_id: str) -> "Position":
        """Out of a checkpoint, which must be that of this table."""
        if document.get("id") != table_id:
            raise TableRewritten(
                f"the checkpoint is that of another table {document.get('table')}: {table} was"
                " built anew, or another generation is in use. Start the stream anew with a new"
                " checkpoint"
            )
        return cls(
            table,
            table_id,
            int(document["version"]),
            document.get("snapshot"),
            int(document.get("files", 0)),
        )


def advanced(table: Versions, start: Position, newest: int, files_max: int | None) -> Position:
    """How far the next batch goes: not beyond the newest version, nor much over the limit.

    A commit is never parted, so that what was written together is read together.
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
    """The files between two positions, in the order in which their rows came.

    A snapshot in parts is read in the order of the files' names, which a joined file does not
    change for the parts to come.
    """
    if start.version >= 0:
        return table.added(start.version, end.version)
    if start.snapshot is None and end.snapshot is None:
        return table.files_as_arrived(end.version)
    snapshot = end.version if end.snapshot is None else end.snapshot
    if start.snapshot is not None:
        # A snapshot that was begun is finished before any commit behind it is read.
        snapshot = start.snapshot
    files = table.snapshot(snapshot, with_versions=with_versions)
    return files[start.files : end.files if end.snapshot is not None else None]


def bins(files: Sequence[AddedFile], bytes_max: int) -> list[list[AddedFile]]:
    """Files in groups of about so many bytes, each for one task."""
    groups: list[list[AddedFile]] = []
    room = 0
    for file in files:
        if not groups or room < file.size_bytes:
            groups.append([])
            room = bytes_max
        groups[-1].append(file)
        room -= file.size_bytes
    return groups


def _advanced_in_snapshot(
    table: Versions, start: Position, snapshot: int, files_max: int | None
) -> Position:
    if files_max is not None:
        total = len(table.snapshot(snapshot, with_versions=False))
        done = start.files + files_max
        if done < total:
            return Position(start.table, start.table_id, -1, snapshot, done)
    return Position(start.table, start.table_id, snapshot)


def _advanced_in_commits(
    table: Versions, start: Position, newest: int, files_max: int | None
) -> Position:
    """Up to the last commit that has rows; those behind it that have none are not worth a batch."""
    end, count = start.version, 0
    for version in range(start.version + 1, newest + 1):
        added = len(table.added(version - 1, version))
        if count and files_max is not None and count + added > files_max:
            break
        count += added
        if added or version - end > _STANDSTILL_MAX:
            end = version
    return Position(start.table, start.table_id, end)
