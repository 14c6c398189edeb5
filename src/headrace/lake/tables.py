"""One Delta table: commits with a token and a lineage, and reads of any version."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import DeltaError

from headrace.lake import errors, reading
from headrace.lake.commit_log import (
    AddedFile,
    Token,
    additions,
    arrivals_of,
    removals,
    transaction,
    versions_of,
)
from headrace.lake.committer import Actions, Committer, History
from headrace.lake.data_files import DataFile, FileWriter, remove_files
from headrace.lake.key_bounds import FileBounds
from headrace.lake.lineage import Lineage
from headrace.lake.metadata import changed_metadata
from headrace.lake.reader_positions import record_reader_position
from headrace.lake.reading import Files
from headrace.lake.schemas import conform
from headrace.lake.snapshot import Snapshot, arrow_schema, at_version, bounds_of, files_of
from headrace.lake.upsert_decisions import Upsert
from headrace.runtime.clock import Clock, SystemClock

_MERGES_MAX = 20
"""Attempts of a merge while other writers change the table."""


class Table:
    """A table of the lake, open for reading and writing; threads may share it.

    A pipeline is the only writer of its tables, but users optimize and restore them meanwhile. So
    every change is planned on the newest version and committed directly after it.
    """

    def __init__(
        self,
        name: str,
        place: Path | str,
        generation: int = 1,
        *,
        clock: Clock = SystemClock(),  # noqa: B008, it has no state.
    ) -> None:
        self.name = name
        self._clock = clock
        self.place = Path(place)
        self.generation = generation
        self._committer = Committer(name, self.place, clock)
        self.history = History(self._committer)

    @property
    def version(self) -> int:
        return self._committer.snapshot().version

    @property
    def schema(self) -> pa.Schema:
        return self._committer.snapshot().schema

    @property
    def table_id(self) -> str:
        """The id of the table, unlike that of any other table or an earlier one at this place."""
        return self._committer.snapshot().table_id

    @property
    def partition_by(self) -> tuple[str, ...]:
        return self._committer.snapshot().partition_by

    @property
    def properties(self) -> dict[str, str]:
        """The table properties, under Delta's names."""
        return dict(self._committer.snapshot().properties)

    def has(self, token: Token) -> bool:
        """Return whether this batch, or a later one of its writer, is in the table."""
        with self._committer.lock:
            return self._committer.snapshot().has(token)

    def last_batch(self, writer: str) -> int | None:
        """Return the newest batch of a writer in the table, if there is one."""
        with self._committer.lock:
            return self._committer.snapshot().last_batch(writer)

    def writer(self) -> FileWriter:
        """Open a writer of files for `append` and `replace`."""
        snapshot = self._committer.snapshot()
        return FileWriter(self.place, snapshot.schema, snapshot.partition_by)

    def append(
        self, files: Sequence[DataFile], token: Token | None = None, lineage: Lineage | None = None
    ) -> int:
        """Add rows, unless the table has the batch already.

        Without files, the token and the lineage are still committed.
        """

        def plan(_: Snapshot) -> Actions:
            return self._additions(files)

        return self.change("append", plan, token, lineage)

    def replace(
        self, files: Sequence[DataFile], token: Token | None = None, lineage: Lineage | None = None
    ) -> int:
        """Replace all rows atomically."""

        def plan(snapshot: Snapshot) -> Actions:
            return [
                *self._additions(files),
                *self.removals(files_of(snapshot.delta())),
            ]

        return self.change("replace", plan, token, lineage)

    def amend(self, files: Sequence[DataFile], token: Token, lineage: Lineage | None = None) -> int:
        """Append the files of a batch, in place of those that it added before a crash.

        For rows that are committed before the rest of their batch: a repetition of the batch may
        have other rows.
        """
        earlier = self.added_by(token)

        def plan(_: Snapshot) -> Actions:
            return [
                *transaction(token),
                *self._additions(files),
                *self.removals(earlier),
            ]

        if earlier or self.has(token):
            return self.change("amend", plan, None, lineage)
        return self.append(files, token, lineage)

    def added_by(self, token: Token) -> list[AddedFile]:
        """Return the files of its writer's newest batch that are still in the table.

        `optimize` does not join these files, so they are found here.
        """
        if not self.has(token):
            return []
        for version in reversed(self._committer.log.versions()):
            commit = self.history.commit(version)
            if token in commit.tokens:
                paths = {file.path for file in self.files()}
                return [file for file in commit.added_files() if file.path in paths]
        return []

    def upsert(
        self,
        rows: pa.Table,
        keys: Sequence[str],
        token: Token | None = None,
        lineage: Lineage | None = None,
        *,
        merge: Mapping[str, str] | None = None,
        delete: str | None = None,
        sequence: str | None = None,
    ) -> int:
        """Replace the rows with the same key, and insert the others.

        With `merge`, columns of a matched row become the sum, minimum or maximum of both. Rows
        whose `delete` column is true delete the matched row. Rows whose `sequence` is below that
        of the matched row are ignored.
        """
        how = Upsert(tuple(keys), merge, delete, sequence)
        how.check(self.schema)
        return self.merge_rows(rows, how, token, lineage)

    def merge_rows(
        self, rows: pa.Table, how: Upsert, token: Token | None, lineage: Lineage | None
    ) -> int:
        """Merge rows into the table in one commit."""
        from headrace.lake.upsert_files import merged_files

        for _ in range(_MERGES_MAX):
            if token is not None and self.has(token):
                return self.version
            version = self.version
            files = self.table_files(version)
            incoming = conform(rows, how.incoming_schema(files.schema))
            if not incoming.num_rows:
                return self.append([], token, lineage)
            removed, added = merged_files(files, incoming, how)
            try:
                return self.exchange(version, removed, added, token, lineage)
            except errors.FilesChanged:
                remove_files(self.place, added)
        raise self.conflict("upsert", _MERGES_MAX)

    def exchange(
        self,
        planned_on: int,
        removed: Sequence[AddedFile],
        added: Sequence[DataFile],
        token: Token | None = None,
        lineage: Lineage | None = None,
    ) -> int:
        """Replace files by others, as planned on some version.

        Rejected if rows were changed since, as they may have the merged keys. Files that were
        joined since keep their rows, so they only conflict if they are among the removed ones.
        """
        gone = {file.path for file in removed}

        def plan(snapshot: Snapshot) -> Actions:
            for version in range(planned_on + 1, snapshot.version + 1):
                commit = snapshot.log.read(version)
                if commit.changes_rows or gone & commit.removed_paths():
                    raise errors.FilesChanged(
                        f"version {version} of {self.name} ({commit.operation}) changed files while"
                        " a merge was made; merge again"
                    )
            return [*self._additions(added), *self.removals(removed)]

        return self.change("upsert", plan, token, lineage)

    def delete(self, predicate: str, token: Token | None = None) -> int:
        """Delete the rows that match an SQL condition."""

        def run(table: DeltaTable, properties: CommitProperties) -> None:
            table.delete(predicate, commit_properties=properties)

        return self._committer.by_deltalake("delete", run, token, None)

    def files(self, version: int | None = None) -> list[AddedFile]:
        """Return the files of a version; their own `version` is not looked up and is -1."""
        return files_of(self._delta(version))

    def table_files(self, version: int) -> Files:
        """Return the files of a version with their schema, as tasks read them."""
        files, by = tuple(self.files(version)), tuple(self.partition_by)
        return Files(str(self.place), self.schema_at(version), by, files)

    def file_bounds(self, version: int, columns: Sequence[str]) -> FileBounds:
        """Return the bounds of columns for each file of a version, in the order of `files`."""
        return bounds_of(self._delta(version), columns)

    def schema_at(self, version: int) -> pa.Schema:
        return arrow_schema(self._delta(version).schema())

    def snapshot_files(self, version: int, *, with_versions: bool = True) -> list[AddedFile]:
        """Return the files of a version in a fixed order, each with the commit of its rows.

        For a joined file this is the last commit; for a file that is older than the log, the last
        version that was cleaned up.
        """
        files = sorted(self.files(version), key=lambda file: file.path)
        if not with_versions:
            return files
        came_with = versions_of(self._committer.log, {file.path for file in files}, version)
        return [replace(file, version=came_with[file.path]) for file in files]

    def files_as_arrived(self, version: int) -> list[AddedFile]:
        """Return the files of a version in the order of their rows' commits.

        So a reader that takes the first of several rows takes the same one as a stream that has
        followed the table. The order is unknown only among files that were joined in several
        partitions or rewritten within one commit.
        """
        files = self.files(version)
        came = arrivals_of(self._committer.log, {file.path for file in files}, version)
        ordered = sorted(files, key=lambda file: (came[file.path], file.path))
        return [replace(file, version=came[file.path][0]) for file in ordered]

    def rows(
        self,
        version: int | None = None,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        limit: int | None = None,
        order: str | None = None,
    ) -> pa.Table:
        """Return rows of a version, by default of the newest; `where` and `order` are SQL."""
        return reading.select(self.dataset(version), columns, where, limit, order)

    def dataset(self, version: int | None = None) -> Any:
        """Return a version as an Arrow dataset, which DuckDB and Polars can query too."""
        delta = self._delta(version)
        files = files_of(delta)
        if version is not None:
            self.check_files(files, version)
        by = delta.metadata().partition_columns
        return reading.dataset(self.place, files, arrow_schema(delta.schema()), by)

    def added(self, after_version: int, to_version: int) -> list[AddedFile]:
        """Return the files with rows added after a version, up to and including another.

        Files that were only rewritten, as by `optimize`, are left out.
        """
        found: list[AddedFile] = []
        for version in range(after_version + 1, to_version + 1):
            commit = self._committer.log.read(version)
            if commit.removes_rows:
                raise errors.TableRewritten(
                    f"version {version} of {self.name} ({commit.operation}) changed or removed"
                    " existing rows, so a stream cannot continue after it; read the table as a"
                    " batch, or restart the stream with a new checkpoint"
                )
            found += commit.added_files()
        return found

    def set_properties(
        self, properties: Mapping[str, str], dropped: Collection[str] = frozenset()
    ) -> int:
        """Set some properties and remove others."""

        def plan(snapshot: Snapshot) -> Actions:
            has_all = properties.items() <= snapshot.properties.items()
            if has_all and snapshot.properties.keys().isdisjoint(dropped):
                return []
            return changed_metadata(snapshot.delta(), snapshot.schema, properties, dropped)

        return self.change("set properties", plan)

    def vacuum(self, retain_hours: int | None = None, *, dry_run: bool = False) -> list[str]:
        """Remove files that no recent version has, those of failed writes included.

        The default retention is a property of the table, usually a day. It must not be below an
        hour, because tasks may have written files whose commit is yet to come.
        """
        if retain_hours is not None and retain_hours < 1:
            raise errors.LakeError(
                "vacuum has to retain an hour at least: younger files may belong to the next commit"
            )
        with self._committer.lock:
            delta = self._committer.snapshot().delta()
            try:
                return delta.vacuum(
                    retain_hours, dry_run=dry_run, enforce_retention_duration=False, full=True
                )
            except (DeltaError, OSError) as error:
                raise errors.deltalake_error(f"vacuum of {self.name}", error) from error

    def record_reader_position(self, version: int | None) -> None:
        """Record the position of following readers, as `reader_positions` describes."""
        record_reader_position(self.place, version)

    def is_old_log_needed(self) -> bool:
        """Return whether the log is kept beyond its retention for such a reader."""
        return self._committer.is_old_log_needed()

    def restore(self, version: int) -> int:
        """Restore the rows and the lineage of an old version as a new version.

        The tokens stay: the pipeline does not repeat batches that it has written, so manual
        corrections persist.
        """
        if not 0 <= version <= self.version:
            raise errors.VersionGone(
                f"{self.name} has no version {version}; its newest is {self.version}"
            )
        lineage = self.history.lineage_at(version)

        def run(table: DeltaTable, properties: CommitProperties) -> None:
            table.restore(version, commit_properties=properties)

        return self._committer.by_deltalake("restore", run, None, lineage)

    def change(
        self,
        operation: str,
        plan: Callable[[Snapshot], Actions],
        token: Token | None = None,
        lineage: Lineage | None = None,
    ) -> int:
        """Commit a plan on the newest version; see `Committer.change`."""
        return self._committer.change(operation, plan, token, lineage)

    def removals(self, files: Iterable[AddedFile], *, data_change: bool = True) -> Actions:
        """Return the actions that remove files from the table now."""
        return removals(files, self._clock.now_ms(), data_change=data_change)

    def conflict(self, operation: str, attempts: int) -> errors.CommitConflict:
        return self._committer.conflict(operation, attempts)

    def _delta(self, version: int | None) -> DeltaTable:
        with self._committer.lock:
            snapshot = self._committer.snapshot()
            if version is None or version == snapshot.version:
                return snapshot.delta()
            if not 0 <= version < snapshot.version:
                raise errors.VersionGone(
                    f"{self.name} has no version {version}; its newest is {snapshot.version}"
                )
            return at_version(self.place, version)

    def _additions(self, files: Sequence[DataFile]) -> Actions:
        """Return the actions that add files, all of which must still exist.

        Vacuum may have removed files of a very slow writer, or after a jump of the clock. A commit
        of missing files would lose their rows for good.
        """
        missing = [file.path for file in files if not (self.place / file.path).exists()]
        if missing:
            raise errors.WriteFailed(
                f"{len(missing)} of {len(files)} files that were written for {self.name} were"
                " removed before their commit, probably by a vacuum with a short retention. Nothing"
                " was committed; run again, and vacuum with a longer --retain"
            )
        return additions(files)

    def check_files(self, files: Sequence[AddedFile], version: int) -> None:
        """Reject a version whose files vacuum has removed."""
        missing = [file.path for file in files if not (self.place / file.path).exists()]
        if missing:
            raise errors.VersionGone(
                f"version {version} of {self.name} can no longer be read: vacuum has removed"
                f" {len(missing)} of its {len(files)} files"
            )
