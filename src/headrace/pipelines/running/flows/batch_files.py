"""The files of one batch: tasks write and count them, the driver commits them once.

Rows do not pass through the driver. The tasks return the files that they wrote, for the table and
for quarantine, and the number of rows that broke each expectation.
"""

import datetime as dt
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from headrace.lake.data_files import DataFile, FileWriter, remove_files
from headrace.lake.quarantine import QUARANTINE_SCHEMA, UNREADABLE
from headrace.lake.schemas import conform
from headrace.pipelines.running.flows.expectations import RowChecks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_RESULT_DDL = "kind string, body string"
_RESULT = pa.schema([("kind", pa.string()), ("body", pa.string())])
_TABLE, _QUARANTINE, _COUNTS = "table", "quarantine", "counts"


@dataclass(slots=True)
class Written:
    """The result of a batch's tasks; no row counts before the commit."""

    files: list[DataFile] = field(default_factory=list)
    quarantined: list[DataFile] = field(default_factory=list)
    rows_in: int = 0
    dropped: int = 0
    size_bytes: int = 0
    """The approximate memory of the rows for the table."""
    broken: dict[str, int] = field(default_factory=dict)

    @property
    def rows_out(self) -> int:
        return sum(file.rows for file in self.files)

    def add_unreadable(self, files: list[DataFile]) -> None:
        """Add the files with unreadable records of the rows' sources."""
        self.quarantined += files
        if count := sum(file.rows for file in files):
            self.rows_in += count
            add_counts(self.broken, {UNREADABLE: count})

    @property
    def rows_quarantined(self) -> int:
        return sum(file.rows for file in self.quarantined)


@dataclass(frozen=True, slots=True)
class FileTask:
    """The work of a task: split its rows by the checks, write both parts into files."""

    place: str
    schema: pa.Schema
    partition_by: tuple[str, ...]
    quarantine_place: str | None
    checks: RowChecks
    now: dt.datetime

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = FileWriter(Path(self.place), self.schema, self.partition_by)
        # Without a place no row is rejected, and a writer without rows makes no file.
        rejected_place = Path(self.quarantine_place or self.place)
        quarantine = FileWriter(rejected_place, QUARANTINE_SCHEMA, ())
        counts = Written()
        try:
            for batch in batches:
                self._write(batch, table, quarantine, counts)
            files, quarantined = table.close(), quarantine.close()
        except BaseException:
            table.abort()
            quarantine.abort()
            raise
        body = {
            "in": counts.rows_in,
            "dropped": counts.dropped,
            "bytes": counts.size_bytes,
            "broken": counts.broken,
        }
        rows = [(_TABLE, file.to_json()) for file in files]
        rows += [(_QUARANTINE, file.to_json()) for file in quarantined]
        rows.append((_COUNTS, json.dumps(body)))
        kinds, bodies = zip(*rows, strict=True)
        yield pa.RecordBatch.from_arrays([pa.array(kinds), pa.array(bodies)], schema=_RESULT)

    def _write(
        self, batch: pa.RecordBatch, table: FileWriter, quarantine: FileWriter, counts: Written
    ) -> None:
        split = self.checks.split(batch, self.now)
        if split.kept.num_rows:
            kept = fitted(split.kept, self.schema)
            table.write(kept)
            counts.size_bytes += kept.nbytes
        if split.refused.num_rows:
            assert self.quarantine_place is not None, "only tables with a quarantine reject rows"
            quarantine.write(split.refused)
        counts.rows_in += batch.num_rows
        counts.dropped += split.dropped
        add_counts(counts.broken, split.broken)


def write_files(rows: "DataFrame", task: FileTask) -> Written:
    """Write the rows with Spark's tasks, in one job."""
    written = Written()
    for found in rows.mapInArrow(task, _RESULT_DDL).collect():
        if found["kind"] == _TABLE:
            written.files.append(DataFile.from_json(found["body"]))
        elif found["kind"] == _QUARANTINE:
            written.quarantined.append(DataFile.from_json(found["body"]))
        else:
            body = json.loads(found["body"])
            written.rows_in += body["in"]
            written.dropped += body["dropped"]
            written.size_bytes += body["bytes"]
            add_counts(written.broken, body["broken"])
    return written


def fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the columns of a table in its order and types; missing ones are null."""
    return conform(
        batch.select([name for name in schema.names if name in batch.schema.names]), schema
    )


def add_counts(total: dict[str, int], more: dict[str, int]) -> None:
    for name, count in more.items():
        total[name] = total.get(name, 0) + count


def discard(written: Written, table: Path, quarantine: Path | None) -> None:
    """Remove the files of a rejected batch."""
    remove_files(table, written.files)
    remove_files(quarantine or table, written.quarantined)
