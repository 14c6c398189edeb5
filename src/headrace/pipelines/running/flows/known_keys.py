"""The keys of a batch that a table has already, for expectations of unique keys.

The keys of the batch are reduced to hashes of eight bytes. Files of the table whose bounds in the
log exclude all keys are skipped; for the others tasks read the key columns alone and write the keys
that meet a hash. Spark joins these few with the batch and compares the keys themselves, so the
result is as exact as a join with the whole table.
"""

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.lake.data_files import FileWriter
from headrace.lake.key_bounds import KeyBounds
from headrace.lake.key_hashes import KeyHashes, key_hashes
from headrace.lake.reading import Files
from headrace.lake.tables import Table
from headrace.lake.upsert_files import existing_rows
from headrace.pipelines.running.flows.batch_files import fitted
from headrace.spark.tables.frames import quoted
from headrace.spark.tables.parcels import Results, by_kind, grouped, results_of, work_by_group
from headrace.spark.tables.schemas import schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_HASHES, _BOUNDS, _KEYS = "hashes", "bounds", "keys"
_RESULTS_DDL = "kind string, body string"
_HASH = "hash"


def known_keys(
    rows: "DataFrame", table: Table, keys: tuple[str, ...], scratch: Path
) -> "DataFrame | None":
    """Return the keys of the table that rows of the batch may have; None if there are none.

    The rows are read once for this, so they should be cached.
    """
    version = table.version
    files = table.table_files(version)
    schema = pa.schema([files.schema.field(key) for key in keys])
    tasks = rows.select(*map(quoted, keys)).mapInArrow(
        partial(_note_hashes, schema, str(scratch)), _RESULTS_DDL
    )
    made = by_kind(tasks.collect())
    if _HASHES not in made:
        return None  # An empty batch, as a watermark or a WHERE can cause.
    bounds = KeyBounds.all_of([json.loads(body) for body in made[_BOUNDS]])
    numbers = bounds.numbers_of(table.file_bounds(version, keys))
    found = work_by_group(
        rows.sparkSession,
        grouped(files, numbers),
        partial(_note_keys, files, schema, tuple(made[_HASHES]), str(scratch)),
    )
    paths = found.get(_KEYS)
    if not paths:
        return None
    return rows.sparkSession.read.schema(schema_of(schema)).parquet(*paths)


def _note_hashes(
    schema: pa.Schema, scratch: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Write the hashes of a task's keys into a file, and return their bounds.

    Key columns may be null here: the rules that reject such rows are checked later.
    """
    schema = pa.schema([field.with_nullable(True) for field in schema])
    bounds = KeyBounds.of(schema)
    found: list[Any] = []
    for batch in batches:
        keys = fitted(batch, schema)
        bounds = bounds.with_rows(keys)
        found.append(key_hashes(keys, schema.names).unique())
    hashes = pa.chunked_array(found, pa.uint64()).unique()
    if not len(hashes):
        return
    note = Path(scratch) / f"hashes-{uuid4().hex}.parquet"
    pq.write_table(pa.table({_HASH: hashes}), note)
    results: Results = [(_HASHES, str(note)), (_BOUNDS, json.dumps(bounds.document()))]
    yield from results_of(results).to_batches()


def _note_keys(
    files: Files, schema: pa.Schema, notes: Sequence[str], scratch: str, group: tuple[int, ...]
) -> Results:
    """Write the keys of some files that meet a hash of the batch into a file."""
    hashes = pa.chunked_array([pq.read_table(note)[_HASH].combine_chunks() for note in notes])
    wanted = KeyHashes(tuple(schema.names), hashes.unique())
    with FileWriter(Path(scratch), schema) as writer:
        for batch in existing_rows(files, group, schema.names, wanted):
            writer.write(batch.select(schema.names))
        return [(_KEYS, str(Path(scratch) / file.path)) for file in writer.close()]
