"""A table's log: each commit is one JSON file, and the writer that creates the next number wins.

deltalake's `create_write_transaction` is not used. It commits an overwrite or a compaction that was
planned on an old version behind newer commits, and its cost grows with the files of the table. On a
file system Delta's commit protocol only needs to create the next file if it does not exist; a
writer that loses the race plans again.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote
from uuid import uuid4

import msgspec

from headrace.lake.data_files import DataFile, label_of
from headrace.lake.errors import RESTART_ADVICE, LakeError, VersionGone, WriteFailed
from headrace.lake.lineage import Lineage

OUR_METADATA = "headrace"
"""The member of a commit's information with the operation and the lineage."""


@dataclass(frozen=True, slots=True)
class Token:
    """A batch of a writer; a table commits each once, in increasing order."""

    writer: str
    batch: int


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A file of the table, and the commit that added its rows."""

    version: int
    path: str
    partition_values: dict[str, str | None]
    rows: int
    size_bytes: int = 0


class Add(msgspec.Struct, rename="camel"):
    path: str
    partition_values: dict[str, str | None] = {}
    size: int = 0
    data_change: bool = True
    stats: str | None = None

    @property
    def rows(self) -> int:
        if not self.stats:
            return -1
        return msgspec.json.decode(self.stats, type=_Count).num_records


class Remove(msgspec.Struct, rename="camel"):
    path: str
    data_change: bool = True


class Txn(msgspec.Struct, rename="camel"):
    app_id: str
    version: int


class Protocol(msgspec.Struct, rename="camel"):
    min_writer_version: int = 2
    writer_features: list[str] = []


class _Count(msgspec.Struct, rename="camel"):
    num_records: int = -1


class _Action(msgspec.Struct, rename="camel"):
    """One line of a commit; other kinds of lines are ignored."""

    add: Add | None = None
    remove: Remove | None = None
    txn: Txn | None = None
    commit_info: dict[str, Any] | None = None
    protocol: Protocol | None = None
    meta_data: dict[str, Any] | None = None


@dataclass(frozen=True)
class Commit:
    """One version of a table with its actions."""

    version: int
    actions: Sequence[_Action]

    @cached_property
    def adds(self) -> list[Add]:
        return [action.add for action in self.actions if action.add]

    @cached_property
    def removes(self) -> list[Remove]:
        return [action.remove for action in self.actions if action.remove]

    @property
    def tokens(self) -> list[Token]:
        return [Token(one.txn.app_id, one.txn.version) for one in self.actions if one.txn]

    @property
    def information(self) -> dict[str, Any]:
        return next((one.commit_info for one in self.actions if one.commit_info), {})

    @property
    def metadata(self) -> dict[str, Any]:
        """The operation and lineage that Headrace recorded with the commit."""
        found = self.information.get(OUR_METADATA)
        return found if isinstance(found, dict) else {}

    @property
    def lineage(self) -> Lineage | None:
        return Lineage.of(self.metadata)

    @property
    def timestamp_ms(self) -> int:
        return int(self.information.get("timestamp", -1))

    @property
    def operation(self) -> str:
        return str(self.metadata.get("operation") or self.information.get("operation", "unknown"))

    @property
    def has_new_schema(self) -> bool:
        return any(one.meta_data or one.protocol for one in self.actions)

    @property
    def removes_rows(self) -> bool:
        return any(one.data_change for one in self.removes)

    @property
    def changes_rows(self) -> bool:
        """Return whether the commit adds or removes rows, or changes the schema."""
        adds_rows = any(one.data_change for one in self.adds)
        return adds_rows or self.removes_rows or self.has_new_schema

    def removed_paths(self) -> set[str]:
        return {unquote(one.path) for one in self.removes}

    def added_files(self) -> list[AddedFile]:
        """Return the files with rows that were not in the table before."""
        return [
            AddedFile(self.version, unquote(a.path), a.partition_values, a.rows, a.size)
            for a in self.adds
            if a.data_change
        ]


class CommitLog:
    """The log folder of one table."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._folder = place / "_delta_log"

    def has(self, version: int) -> bool:
        return self._file(version).exists()

    def read(self, version: int) -> Commit:
        try:
            content = self._file(version).read_bytes()
        except FileNotFoundError as error:
            raise VersionGone(
                f"version {version} of the table at {self.place} is no longer in its log;"
                f" {RESTART_ADVICE}"
            ) from error
        try:
            return Commit(version, _decode(content))
        except msgspec.MsgspecError as error:
            raise LakeError(
                f"{self._file(version)} is damaged: {error}; restore the file from a copy"
            ) from error

    def versions(self) -> list[int]:
        """Return the versions whose commits are still in the log, oldest first."""
        names = (name for name in os.listdir(self._folder) if name.endswith(".json"))
        return sorted(int(name[:20]) for name in names if len(name) == 25 and name[:20].isdigit())

    def written_s(self, version: int) -> float | None:
        """Return the time at which a commit was written; None if the log does not have it."""
        try:
            return self._file(version).stat().st_mtime
        except FileNotFoundError:
            return None

    def write(self, version: int, actions: Iterable[Mapping[str, Any]]) -> bool:
        """Create this version; return False if it exists already."""
        content = b"\n".join(msgspec.json.encode(action) for action in actions) + b"\n"
        draft = self._folder / f".{version:020}.{uuid4().hex}.tmp"
        try:
            with draft.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.link(draft, self._file(version))
        except FileExistsError:
            return False
        except OSError as error:
            raise WriteFailed(
                f"version {version} of the table at {self.place} could not be written: {error}."
                " Nothing was committed; free or repair the disk, and run again"
            ) from error
        finally:
            draft.unlink(missing_ok=True)
        self._sync_folder()
        return True

    def last_checkpoint(self) -> int:
        """Return the version of the newest checkpoint, or -1."""
        try:
            content = (self._folder / "_last_checkpoint").read_bytes()
        except FileNotFoundError:
            return -1
        return int(msgspec.json.decode(content)["version"])

    def _file(self, version: int) -> Path:
        return self._folder / f"{version:020}.json"

    def _sync_folder(self) -> None:
        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def versions_of(log: CommitLog, paths: Set[str], newest: int) -> dict[str, int]:
    """Return the commit that added the rows of each file."""
    return {path: version for path, (version, _) in arrivals_of(log, paths, newest).items()}


def arrivals_of(log: CommitLog, paths: Set[str], newest: int) -> dict[str, tuple[int, int]]:
    """Return the commit that added the rows of each file, and the file's place in that commit.

    The log is read backwards; rewritten files have the commit in their names.
    """
    known = {path: (label[1], -1) for path in paths if (label := label_of(path)) is not None}
    version = newest
    while len(known) < len(paths) and log.has(version):
        for place, add in enumerate(log.read(version).adds):
            path = unquote(add.path)
            if path in paths and path not in known:
                known[path] = version, place
        version -= 1
    return {path: known.get(path, (version, -1)) for path in paths}


def information(
    operation: str, metadata: Mapping[str, Any], parameters: Mapping[str, str], now_ms: int
) -> dict[str, Any]:
    """Return the `commitInfo` line of a commit."""
    return {
        "commitInfo": {
            "timestamp": now_ms,
            "operation": operation,
            "operationParameters": dict(parameters),
            "engineInfo": "headrace",
            OUR_METADATA: dict(metadata),
        }
    }


def additions(files: Iterable[DataFile], *, data_change: bool = True) -> Iterator[dict[str, Any]]:
    for file in files:
        yield {
            "add": {
                "path": encoded(file.path),
                "partitionValues": file.partition_values,
                "size": file.size_bytes,
                "modificationTime": file.modified_ms,
                "dataChange": data_change,
                "stats": file.stats,
            }
        }


def removals(
    files: Iterable[AddedFile], now_ms: int, *, data_change: bool = True
) -> Iterator[dict[str, Any]]:
    for file in files:
        yield {
            "remove": {
                "path": encoded(file.path),
                "deletionTimestamp": now_ms,
                "dataChange": data_change,
                "extendedFileMetadata": True,
                "partitionValues": file.partition_values,
                "size": file.size_bytes,
            }
        }


def transaction(token: Token | None) -> list[dict[str, Any]]:
    if token is None:
        return []
    return [{"txn": {"appId": token.writer, "version": token.batch}}]


def encoded(path: str) -> str:
    """Encode a path as Delta's log does."""
    return quote(path, safe="/=!$&'()*+,;:@~")


def _decode(content: bytes) -> list[_Action]:
    return [_DECODER.decode(line) for line in content.splitlines() if line.strip()]


_DECODER = msgspec.json.Decoder(_Action)
