"""Large batches into tables by key: tasks merge and write the files, the driver commits once.

The rows of the batch and those of the table that have their keys meet by key, in parcels. A task
decides its part by the same functions as the driver decides a small batch (`lake.upserts`,
`lake.changes`), writes the new rows, and notes which rows they replace. A second job writes the
files with replaced rows anew, without them. Then all files come and go in one commit.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.lake.change_events import IS_DELETE
from headrace.lake.changes import ChangeRules, is_applied
from headrace.lake.commits import AddedFile, Token
from headrace.lake.data_files import DataFile, FileWriter, remove_files
from headrace.lake.errors import FilesChanged
from headrace.lake.lineage import Lineage
from headrace.lake.schemas import conform
from headrace.lake.tables import Table
from headrace.lake.upserting import (
    FILE,
    ROW,
    Files,
    by_partition,
    crowded,
    places_by_file,
    write_anew,
)
from headrace.lake.upserts import Upsert
from headrace.spark.tables.parcels import Results, Side, grouped, work_by_group, work_by_key

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ATTEMPTS = 3
"""How often a merge is made anew because someone has changed the table meanwhile."""
_ADDED, _PLACES, _TOUCHED, _ROWS, _HISTORY = "added", "places", "touched", "rows", "history"


@dataclass(frozen=True, slots=True)
class Staged:
    """The rows of a batch in files that belong to no table."""

    files: Files
    size_bytes: int
    """About how much memory they take."""

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files.files)

    def table(self) -> pa.Table:
        """All rows, in the order of their arrival; for a driver that merges a few."""
        numbers = range(len(self.files.files))
        batches = (batch for number in numbers for batch in self.files.batches(number))
        return pa.Table.from_batches(batches, self.files.schema)


def staged_files(place: str, schema: pa.Schema, files: Sequence[DataFile]) -> Files:
    """Files that tasks have written, to be read as those of a table are."""
    found = (AddedFile(-1, file.path, {}, file.rows, file.size_bytes) for file in files)
    return Files(place, schema, (), tuple(found))


def upsert_by_tasks(
    spark: "SparkSession",
    table: Table,
    staged: Staged,
    how: Upsert,
    token: Token,
    lineage: Lineage,
) -> int:
    """Like `Table.upsert`, for rows that are too many for the driver."""
    how.check(table.schema)
    for _ in range(ATTEMPTS):
        if table.has(token):
            return table.version
        if not staged.files.files:
            return table.append([], token, lineage)
        version = table.version
        removed, added = _merge(spark, Files.of(table, version), staged, how)
        try:
            return table.exchange(version, removed, added, token, lineage)
        except FilesChanged:
            remove_files(table.place, added)
    raise table.conflict("upsert", ATTEMPTS)


def apply_changes_by_tasks(
    spark: "SparkSession",
    table: Table,
    history: Table,
    staged: Staged,
    rules: ChangeRules,
    token: Token,
    lineage: Lineage,
) -> int:
    """Like `lake.changes.apply_changes`, for events that are too many for the driver.

    Decided rows are staged like the events, and merged into the history first and the target last.
    """
    if is_applied(table, history, token):
        return table.version
    rows, known = _decide(spark, table, history, staged, rules)
    upsert_by_tasks(spark, history, known, Upsert(rules.history_keys), token, lineage)
    how = Upsert(rules.row_keys, delete=IS_DELETE)
    return upsert_by_tasks(spark, table, rows, how, token, lineage)


def _merge(
    spark: "SparkSession", files: Files, staged: Staged, how: Upsert
) -> tuple[list[AddedFile], list[DataFile]]:
    """Which files go and which come."""
    sides = (
        Side(staged.files, how.keys),
        Side(files, how.keys, how.looked_at, standing_for=staged.files),
    )
    made = work_by_key(spark, sides, staged.size_bytes, _MergeTask(files, how, staged.files.place))
    added = _files(made, _ADDED)
    touched = {number for body in made.get(_TOUCHED, ()) for number in json.loads(body)}
    rewritten = by_partition(files.files, touched | crowded(files.files))
    again = work_by_group(
        spark,
        grouped(files, rewritten),
        partial(_rewrite, files, tuple(made.get(_PLACES, ()))),
    )
    return [files.files[number] for number in rewritten], added + _files(again, _ADDED)


def _decide(
    spark: "SparkSession", table: Table, history: Table, staged: Staged, rules: ChangeRules
) -> tuple[Staged, Staged]:
    """What a batch of events changes in the target and in the history."""
    targets, known = (Files.of(one, one.version) for one in (table, history))
    sides = [Side(staged.files, rules.keys)]
    for files in (targets, known) if rules.reads_target else (known,):
        columns = tuple(files.schema.names)
        sides.append(Side(files, rules.keys, columns, standing_for=staged.files))
    task = _DecideTask(
        rules,
        staged.files.place,
        Upsert(rules.row_keys, delete=IS_DELETE).arriving_schema(targets.schema),
        known.schema,
    )
    made = work_by_key(spark, sides, staged.size_bytes, task)
    place, size = staged.files.place, staged.size_bytes
    return (
        Staged(staged_files(place, task.rows, _files(made, _ROWS)), size),
        Staged(staged_files(place, task.history, _files(made, _HISTORY)), size),
    )


@dataclass(frozen=True, slots=True)
class _MergeTask:
    """Merges a bucket: new rows into files of the table, the places of replaced ones beside."""

    files: Files
    how: Upsert
    scratch: str

    def __call__(self, sides: Sequence[pa.Table]) -> Results:
        arriving, standing = sides
        arriving = conform(arriving, self.how.arriving_schema(self.files.schema))
        merged = self.how.merged(arriving, standing)
        with self.files.writer() as writer:
            writer.write(merged.rows)
            results = [(_ADDED, file.to_json()) for file in writer.close()]
        if len(merged.removed):
            places = standing.select([FILE, ROW]).take(merged.removed)
            note = Path(self.scratch) / f"places-{uuid4().hex}.parquet"
            pq.write_table(places.sort_by(FILE), note, row_group_size=64 * 1024)
            results.append((_PLACES, str(note)))
            results.append((_TOUCHED, json.dumps(places[FILE].unique().to_pylist())))
        return results


@dataclass(frozen=True, slots=True)
class _DecideTask:
    """Decides what the events of a bucket change, and stages it."""

    rules: ChangeRules
    scratch: str
    rows: pa.Schema
    history: pa.Schema

    def __call__(self, sides: Sequence[pa.Table]) -> Results:
        events, *standing = (
            side.drop_columns([FILE, ROW]) if ROW in side.column_names else side for side in sides
        )
        target = self.rows.remove(self.rows.get_field_index(IS_DELETE))
        versions = standing[0] if self.rules.reads_target else target.empty_table()
        decided = self.rules.decide(events, versions, standing[-1])
        return [
            *self._staged(_ROWS, decided.rows, self.rows),
            *self._staged(_HISTORY, decided.history, self.history),
        ]

    def _staged(self, kind: str, rows: pa.Table, schema: pa.Schema) -> Results:
        with FileWriter(Path(self.scratch), schema) as writer:
            writer.write(rows)
            return [(kind, file.to_json()) for file in writer.close()]


def _rewrite(files: Files, notes: Sequence[str], group: tuple[int, ...]) -> Results:
    """Write some files anew, without the rows that were replaced."""
    wanted = [(FILE, "in", list(group))]
    schema = pa.schema([(FILE, pa.int64()), (ROW, pa.int64())])
    found = [pq.read_table(note, filters=wanted).cast(schema) for note in notes]
    removed = places_by_file(pa.concat_tables([schema.empty_table(), *found]))
    none = files.schema.empty_table()
    return [(_ADDED, file.to_json()) for file in write_anew(files, none, removed, group)]


def _files(made: dict[str, list[str]], kind: str) -> list[DataFile]:
    return [DataFile.from_json(body) for body in made.get(kind, ())]
