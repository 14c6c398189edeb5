"""One Delta table: rows in by commits that carry a token and a lineage, rows out of any version."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import DeltaError

from headrace.lake import reading
from headrace.lake.commits import (
    AddedFile,
    Token,
    additions,
    arrivals_of,
    removals,
    transaction,
    versions_of,
)
from headrace.lake.data_files import DataFile, FileWriter
from headrace.lake.errors import (
    CommitConflict,
    FilesChanged,
    LakeError,
    TableRewritten,
    VersionGone,
    WriteFailed,
    wheel_error,
)
from headrace.lake.followed import note_followed
from headrace.lake.head import Head, arrow_schema, at_version, bounds_of, files_of
from headrace.lake.history import History
from headrace.lake.key_bounds import FileBounds
from headrace.lake.landing import Actions, Landing
from headrace.lake.lineage import Lineage
from headrace.lake.metadata import changed_metadata
from headrace.lake.upserts import Upsert


@dataclass(frozen=True, slots=True)
class Optimized:
    """What `optimize` has done."""

    files_before: int = 0
    files_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0


class Table:
    """A table of the lake, open for reading and writing; threads may share it.

    A pipeline is the only writer of its tables, but people optimize and restore beside it: every
    change is planned on the newest version and lands only directly after it.
    """

    def __init__(self, name: str, place: Path | str, generation: int = 1) -> None:
        self.name = name
        self.place = Path(place)
        self.generation = generation
        self._landing = Landing(name, self.place)
        self.history = History(self._landing)

    @property
    def version(self) -> int:
        """The newest version."""
        return self._landing.newest().version

    @property
    def schema(self) -> pa.Schema:
        return self._landing.newest().schema

    @property
    def table_id(self) -> str:
        """Differs from that of any other table, also from one that was at this place before."""
        return self._landing.newest().table_id

    @property
    def partition_by(self) -> tuple[str, ...]:
        return self._landing.newest().partition_by

    @property
    def properties(self) -> dict[str, str]:
        """What the table says of how it is kept, under Delta's names."""
        return dict(self._landing.newest().properties)

    def has(self, token: Token) -> bool:
        """Whether this batch, or a later one of its writer, is in the table already."""
        with self._landing.lock:
            return self._landing.newest().has(token)

    def last_batch(self, writer: str) -> int | None:
        """The newest batch of a writer that is in the table; None if there is none."""
        with self._landing.lock:
            return self._landing.newest().last_batch(writer)

    def writer(self) -> FileWriter:
        """Writes files that `append` and `replace` take."""
        head = self._landing.newest()
        return FileWriter(self.place, head.schema, head.partition_by)

    def append(
        self, files: Sequence[DataFile], token: Token | None = None, lineage: Lineage | None = None
    ) -> int:
        """Add rows; a batch that is there already is not added again.

        Without files the token and the lineage are committed all the same: that a batch had
        nothing for this table is worth knowing too.
        """

        def plan(_: Head) -> Actions:
            return self._additions(files)

        return self.change("append", plan, token, lineage)

    def replace(
        self, files: Sequence[DataFile], token: Token | None = None, lineage: Lineage | None = None
    ) -> int:
        """Let the table hold these rows and no others, at one stroke."""

        def plan(head: Head) -> Actions:
            return [*self._additions(files), *removals(files_of(head.delta()))]

        return self.change("replace", plan, token, lineage)

    def amend(self, files: Sequence[DataFile], token: Token, lineage: Lineage | None = None) -> int:
        """Let a batch bring these files, and no longer those that it brought before a crash.

        For what is committed ahead of the rest of its batch: the batch may come out otherwise when
        it is repeated. Most of the time nothing was there, and this is an append.
        """
        earlier = self.added_by(token)

        def plan(_: Head) -> Actions:
            return [*transaction(token), *self._additions(files), *removals(earlier)]

        if earlier or self.has(token):
            return self.change("amend", plan, None, lineage)
        return self.append(files, token, lineage)

    def added_by(self, token: Token) -> list[AddedFile]:
        """The files of a batch that are in the table still; the batch is its writer's newest.

        `optimize` leaves the files of such a batch alone, so that they are found here.
        """
        if not self.has(token):
            return []
        for version in reversed(self._landing.log.versions()):
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
        """Put rows in the place of those with the same key, and add the others.

        With `merge` the columns of a matched row become the sum, the least or the most of both.
        Rows whose `delete` column is true take the matched row away, and are not added. A row
        whose `sequence` is below that of the one with its key changes nothing.
        """
        from headrace.lake.upserting import upsert

        how = Upsert(tuple(keys), merge, delete, sequence)
        how.check(self.schema)
        return upsert(self, rows, how, token, lineage)

    def exchange(
        self,
        planned_on: int,
        removed: Sequence[AddedFile],
        added: Sequence[DataFile],
        token: Token | None = None,
        lineage: Lineage | None = None,
    ) -> int:
        """Put files in the place of others, as was planned on some version.

        Refused if rows have come or gone since: they may have the very keys that were merged.
        Files that others have joined meanwhile hold the rows that they held, so they are in the
        way only if they are to go here too.
        """
        gone = {file.path for file in removed}

        def plan(head: Head) -> Actions:
            for version in range(planned_on + 1, head.version + 1):
                commit = head.log.read(version)
                if commit.changes_rows or gone & commit.removed_paths():
                    raise FilesChanged(
                        f"version {version} of {self.name} ({commit.operation}) changed files while"
                        " a merge was made; merge again"
                    )
            return [*self._additions(added), *removals(removed)]

        return self.change("upsert", plan, token, lineage)

    def delete(self, predicate: str, token: Token | None = None) -> int:
        """Take away the rows that make an SQL condition true."""

        def run(table: DeltaTable, properties: CommitProperties) -> None:
            table.delete(predicate, commit_properties=properties)

        return self._landing.by_wheel("delete", run, token, None)

    def files(self, version: int | None = None) -> list[AddedFile]:
        """The files that make up a version; their own `version` is not looked up and is -1."""
        return files_of(self._delta(version))

    def file_bounds(self, version: int, columns: Sequence[str]) -> FileBounds:
        """Of each file of a version, in the order of `files`, what the log tells of columns."""
        return bounds_of(self._delta(version), columns)

    def schema_at(self, version: int) -> pa.Schema:
        """The schema that a version had."""
        return arrow_schema(self._delta(version).schema())

    def snapshot(self, version: int, *, with_versions: bool = True) -> list[AddedFile]:
        """The files of a version, in a fixed order, each with the commit its rows came with.

        Of a file that was made of several, it is the last one's; of a file that is older than the
        log, the last version that the log has forgotten.
        """
        files = sorted(self.files(version), key=lambda file: file.path)
        if not with_versions:
            return files
        came_with = versions_of(self._landing.log, {file.path for file in files}, version)
        return [replace(file, version=came_with[file.path]) for file in files]

    def files_as_arrived(self, version: int) -> list[AddedFile]:
        """The files of a version in the order in which their rows came.

        So a reader who takes the first of several rows takes the same one as a stream that has
        followed the table. Only of what was joined in several partitions, or rewritten within one
        commit, the log does not tell which came first.
        """
        files = self.files(version)
        came = arrivals_of(self._landing.log, {file.path for file in files}, version)
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
        """Rows of a version, the newest unless another is given; `where` and `order` are SQL."""
        return reading.select(self.dataset(version), columns, where, limit, order)

    def dataset(self, version: int | None = None) -> Any:
        """A version as a dataset of Arrow, which DuckDB, Polars and others query too."""
        delta = self._delta(version)
        files = files_of(delta)
        if version is not None:
            self.check_files(files, version)
        by = delta.metadata().partition_columns
        return reading.dataset(self.place, files, arrow_schema(delta.schema()), by)

    def added(self, after_version: int, to_version: int) -> list[AddedFile]:
        """The files with rows that came after a version, up to another and with it.

        Rewritten files without new rows, as `optimize` makes them, are passed over.
        """
        found: list[AddedFile] = []
        for version in range(after_version + 1, to_version + 1):
            commit = self._landing.log.read(version)
            if commit.removes_rows:
                raise TableRewritten(
                    f"version {version} of {self.name} ({commit.operation}) changed or removed"
                    " rows that were there before, so a stream cannot go on behind it; read the"
                    " table whole, or start the stream anew with a new checkpoint"
                )
            found += commit.added_files()
        return found

    def evolve(self, schema: pa.Schema) -> int:
        """Let the table take rows of this schema: new columns come last, types become wider."""
        from headrace.lake.rewriting import evolve

        return evolve(self, schema)

    def set_properties(
        self, properties: Mapping[str, str], dropped: Collection[str] = frozenset()
    ) -> int:
        """Let the table have these properties, besides those that it has, and not the dropped."""

        def plan(head: Head) -> Actions:
            has_all = properties.items() <= head.properties.items()
            if has_all and head.properties.keys().isdisjoint(dropped):
                return []
            return changed_metadata(head.delta(), head.schema, properties, dropped)

        return self.change("set properties", plan)

    def optimize(self, up_to_version: int | None = None) -> Optimized:
        """Make few large files of many small ones, of those that came up to a version."""
        from headrace.lake.rewriting import optimize

        return optimize(self, up_to_version)

    def vacuum(self, retain_hours: int | None = None, *, dry_run: bool = False) -> list[str]:
        """Take away files that no version younger than that has, those of failed writes too.

        None retains what the table says, a day unless it was made otherwise. Nothing younger may
        be taken away: a task may just have written it, and its commit is yet to come.
        """
        if retain_hours is not None and retain_hours < 1:
            raise LakeError("files that are younger than an hour may be part of a commit to come")
        with self._landing.lock:
            delta = self._landing.newest().delta()
            try:
                return delta.vacuum(
                    retain_hours, dry_run=dry_run, enforce_retention_duration=False, full=True
                )
            except (DeltaError, OSError) as error:
                raise wheel_error(f"vacuum of {self.name}", error) from error

    def note_followed(self, version: int | None) -> None:
        """Let it be known how far all have read who follow the table, as `lake.followed` has it."""
        note_followed(self.place, version)

    def is_old_log_needed(self) -> bool:
        """Whether one of them is so far behind that the log is kept for it alone."""
        return self._landing.is_old_log_needed()

    def restore(self, version: int) -> int:
        """Let the table have the rows of an old version again, as a new version.

        The lineage comes back with the rows. The tokens do not: what a pipeline has written it
        does not write again, so rows that were put right by hand stay so.
        """
        if not 0 <= version <= self.version:
            raise VersionGone(f"{self.name} has no version {version}; its newest is {self.version}")
        lineage = self.history.lineage_at(version)

        def run(table: DeltaTable, properties: CommitProperties) -> None:
            table.restore(version, commit_properties=properties)

        return self._landing.by_wheel("restore", run, None, lineage)

    def change(
        self,
        operation: str,
        plan: Callable[[Head], Actions],
        token: Token | None = None,
        lineage: Lineage | None = None,
    ) -> int:
        """Land what is planned on the newest version, as `Landing.change` has it."""
        return self._landing.change(operation, plan, token, lineage)

    def conflict(self, operation: str, attempts: int) -> CommitConflict:
        """What to say when others were quicker each time, and who was so last."""
        return self._landing.conflict(operation, attempts)

    def _delta(self, version: int | None) -> DeltaTable:
        with self._landing.lock:
            head = self._landing.newest()
            if version is None or version == head.version:
                return head.delta()
            if not 0 <= version < head.version:
                raise VersionGone(
                    f"{self.name} has no version {version}; its newest is {head.version}"
                )
            return at_version(self.place, version)

    def _additions(self, files: Sequence[DataFile]) -> Actions:
        """Files as actions of a commit, if all of them are there still.

        Vacuum takes away what is old and in no version, and who writes may take longer than that,
        or the clock may jump. A commit of files that are gone would lose their rows for good.
        """
        missing = [file.path for file in files if not (self.place / file.path).exists()]
        if missing:
            raise WriteFailed(
                f"{len(missing)} of {len(files)} files that were written for {self.name} are gone"
                " before their commit: vacuum may have retained too little. Nothing was committed;"
                " run again, and vacuum with a longer --retain"
            )
        return additions(files)

    def check_files(self, files: Sequence[AddedFile], version: int) -> None:
        """Refuse to read a version of which vacuum has taken files away."""
        missing = [file.path for file in files if not (self.place / file.path).exists()]
        if missing:
            raise VersionGone(
                f"version {version} of {self.name} cannot be read any more: {len(missing)} of its"
                f" {len(files)} files were taken away by vacuum"
            )
