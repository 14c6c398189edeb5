"""Merging large batches into tables by key: tasks write the files, and the driver commits once.

Spark shuffles the rows of the batch and the existing rows of its keys, in parcels. A task decides
its part by the same functions as the driver for a small batch (`lake.upsert_decisions`,
`lake.applied_changes`), writes the new rows, and records the replaced ones. A second job rewrites
the files with replaced rows. Then one commit exchanges all files.
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

from headrace.lake.applied_changes import ChangeRules, is_applied
from headrace.lake.change_events import IS_DELETE
from headrace.lake.commit_log import AddedFile, Token
from headrace.lake.data_files import DataFile, FileWriter, remove_files
from headrace.lake.errors import FilesChanged
from headrace.lake.lineage import Lineage
from headrace.lake.reading import Files
from headrace.lake.schemas import conform
from headrace.lake.tables import Table
from headrace.lake.upsert_decisions import Upsert
from headrace.lake.upsert_files import FILE, ROW, by_partition, crowded, places_by_file, write_files
from headrace.spark.tables.parcels import Results, Side, grouped, work_by_group, work_by_key

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ATTEMPTS = 3
"""Attempts of a merge while other writers change the table."""
_ADDED, _PLACES, _TOUCHED, _ROWS, _HISTORY = "added", "places", "touched", "rows", "history"


@dataclass(frozen=True, slots=True)
class Staged:
    """The rows of a batch in files outside of any table."""

    files: Files
    size_bytes: int
    """The approximate size in memory."""

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files.files)

    def table(self) -> pa.Table:
        """Return all rows in the order of their arrival, for small batches."""
        numbers = range(len(self.files.files))
        batches = (batch for number in numbers for batch in self.files.batches(number))
        return pa.Table.from_batches(batches, self.files.schema)


def staged_files(place: str, schema: pa.Schema, files: Sequence[DataFile]) -> Files:
    """Wrap files that tasks have written, to read them like those of a table."""
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
    """Merge rows like `Table.upsert`, for batches that are too large for the driver."""
    how.check(table.schema)
    for _ in range(ATTEMPTS):
        if table.has(token):
            return table.version
        if not staged.files.files:
            return table.append([], token, lineage)
        version = table.version
        removed, added = _merge(spark, table.table_files(version), staged, how)
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
    """Apply events like `lake.applied_changes.apply_changes`, for batches too large for the driver.

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
    """Return the removed files and the new ones."""
    sides = (
        Side(staged.files, how.keys),
        Side(files, how.keys, how.columns_read, matching=staged.files),
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
    """Stage the changes of a batch of events to the target and the history."""
    targets, known = (one.table_files(one.version) for one in (table, history))
    sides = [Side(staged.files, rules.keys)]
    for files in (targets, known) if rules.reads_target else (known,):
        columns = tuple(files.schema.names)
        sides.append(Side(files, rules.keys, columns, matching=staged.files))
    task = _DecideTask(
        rules,
        staged.files.place,
        Upsert(rules.row_keys, delete=IS_DELETE).incoming_schema(targets.schema),
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
    """Merges a bucket: writes new rows to files of the table, and the places of replaced ones."""

    files: Files
    how: Upsert
    scratch: str

    def __call__(self, sides: Sequence[pa.Table]) -> Results:
        incoming, existing = sides
        incoming = conform(incoming, self.how.incoming_schema(self.files.schema))
        merged = self.how.merged(incoming, existing)
        with self.files.writer() as writer:
            writer.write(merged.rows)
            results = [(_ADDED, file.to_json()) for file in writer.close()]
        if len(merged.removed):
            places = existing.select([FILE, ROW]).take(merged.removed)
            note = Path(self.scratch) / f"places-{uuid4().hex}.parquet"
            pq.write_table(places.sort_by(FILE), note, row_group_size=64 * 1024)
            results.append((_PLACES, str(note)))
            results.append((_TOUCHED, json.dumps(places[FILE].unique().to_pylist())))
        return results


@dataclass(frozen=True, slots=True)
class _DecideTask:
    """Decides the changes of the events in a bucket, and stages them."""

    rules: ChangeRules
    scratch: str
    rows: pa.Schema
    history: pa.Schema

    def __call__(self, sides: Sequence[pa.Table]) -> Results:
        events, *existing = (
            side.drop_columns([FILE, ROW]) if ROW in side.column_names else side for side in sides
        )
        target = self.rows.remove(self.rows.get_field_index(IS_DELETE))
        versions = existing[0] if self.rules.reads_target else target.empty_table()
        decided = self.rules.decide(events, versions, existing[-1])
        return [
            *self._staged(_ROWS, decided.rows, self.rows),
            *self._staged(_HISTORY, decided.history, self.history),
        ]

    def _staged(self, kind: str, rows: pa.Table, schema: pa.Schema) -> Results:
        with FileWriter(Path(self.scratch), schema) as writer:
            writer.write(rows)
            return [(kind, file.to_json()) for file in writer.close()]


def _rewrite(files: Files, notes: Sequence[str], group: tuple[int, ...]) -> Results:
    """Rewrite some files without the replaced rows."""
    wanted = [(FILE, "in", list(group))]
    schema = pa.schema([(FILE, pa.int64()), (ROW, pa.int64())])
    found = [pq.read_table(note, filters=wanted).cast(schema) for note in notes]
    removed = places_by_file(pa.concat_tables([schema.empty_table(), *found]))
    none = files.schema.empty_table()
    return [(_ADDED, file.to_json()) for file in write_files(files, none, removed, group)]


def _files(made: dict[str, list[str]], kind: str) -> list[DataFile]:
    return [DataFile.from_json(body) for body in made.get(kind, ())]
