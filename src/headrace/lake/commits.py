"""A table's log: each commit is one JSON file, and who creates the next number wins.

The wheel's `create_write_transaction` is not used: it lets an overwrite or a compaction that was
planned on an old version land beside newer commits, and each call costs time in proportion to the
files of the table. Creating the next file only if it is not there is the whole of Delta's
commit protocol on a file system; a planner who lost looks again and plans anew.
"""

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote
from uuid import uuid4

import msgspec

from headrace.lake.data_files import DataFile, label_of
from headrace.lake.errors import START_ANEW, LakeError, VersionGone, WriteFailed
from headrace.lake.lineage import Lineage

OUR_METADATA = "headrace"
"""Under this name a commit's information holds what is ours: lineage, and why it was made."""


@dataclass(frozen=True, slots=True)
class Token:
    """Names a batch of a writer; a table takes each once, and batches only upwards."""

    writer: str
    batch: int


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A file of the table, and the commit that its rows came with."""

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
    """One line of a commit; lines of other kinds are none of our business."""

    add: Add | None = None
    remove: Remove | None = None
    txn: Txn | None = None
    commit_info: dict[str, Any] | None = None
    protocol: Protocol | None = None
    meta_data: dict[str, Any] | None = None


@dataclass(frozen=True)
class Commit:
    """One version of a table: what was added and removed, by whom and why."""

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
        """What we said of the commit."""
        said = self.information.get(OUR_METADATA)
        return said if isinstance(said, dict) else {}

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
        """Whether rows came or went, or mean something else by a new schema."""
        is_said = any(one.data_change for one in self.adds)
        return is_said or self.removes_rows or self.has_new_schema

    def removed_paths(self) -> set[str]:
        return {unquote(one.path) for one in self.removes}

    def added_files(self) -> list[AddedFile]:
        """The files with rows that were not in the table before."""
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
                f"version {version} of the table at {self.place} is not in its log any more;"
                f" {START_ANEW}"
            ) from error
        try:
            return Commit(version, _decode(content))
        except msgspec.MsgspecError as error:
            raise LakeError(
                f"{self._file(version)} is damaged: {error}; restore the file from a copy"
            ) from error

    def versions(self) -> list[int]:
        """Of which versions the log still has the commit, oldest first."""
        names = (name for name in os.listdir(self._folder) if name.endswith(".json"))
        return sorted(int(name[:20]) for name in names if len(name) == 25 and name[:20].isdigit())

    def written_s(self, version: int) -> float | None:
        """When the entry of a version was written; None if the log does not have it."""
        try:
            return self._file(version).stat().st_mtime
        except FileNotFoundError:
            return None

    def write(self, version: int, actions: Iterable[Mapping[str, Any]]) -> bool:
        """Make this version, if it is still free; False if another was quicker."""
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
                " Nothing was committed; make room or mend the disk, and run again"
            ) from error
        finally:
            draft.unlink(missing_ok=True)
        self._sync_folder()
        return True

    def last_checkpoint(self) -> int:
        """The version of the newest checkpoint; -1 if there is none."""
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
    """The commit that the rows of each file came with."""
    return {path: version for path, (version, _) in arrivals_of(log, paths, newest).items()}


def arrivals_of(log: CommitLog, paths: Set[str], newest: int) -> dict[str, tuple[int, int]]:
    """The commit that the rows of each file came with, and where in it; from the newest backwards.

    Files that were rewritten carry the commit in their names, so that the log need not be asked.
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
    operation: str, metadata: Mapping[str, Any], parameters: Mapping[str, str]
) -> dict[str, Any]:
    """The line that says what a commit is."""
    return {
        "commitInfo": {
            "timestamp": time.time_ns() // 1_000_000,
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


def removals(files: Iterable[AddedFile], *, data_change: bool = True) -> Iterator[dict[str, Any]]:
    now_ms = time.time_ns() // 1_000_000
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
    """A path as Delta's log writes it."""
    return quote(path, safe="/=!$&'()*+,;:@~")


def _decode(content: bytes) -> list[_Action]:
    return [_DECODER.decode(line) for line in content.splitlines() if line.strip()]


_DECODER = msgspec.json.Decoder(_Action)
