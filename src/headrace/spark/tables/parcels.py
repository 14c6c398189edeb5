"""A shuffle of rows by key in parcels, which are Arrow tables as bytes.

Tasks read files, split the rows into buckets by the hash of their key, and pack each part in
Arrow's IPC format. Spark moves the parcels without decoding them, so values keep their exact types.
One task works on a bucket, which has to fit into its memory.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headrace.lake.errors import LakeError
from headrace.lake.key_hashes import KeyHashes, by_bucket
from headrace.lake.reading import Files
from headrace.lake.upsert_files import existing_rows, existing_schema
from headrace.spark.tables.plans import bins

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BUCKET_BYTES = 32 << 20
"""The size of a batch per bucket, if its keys are spread."""
BUCKET_BYTES_MAX = 1 << 30
BUCKETS_MAX = 2_000
_GROUP_BYTES = 32 << 20
"""The compressed size of the files per task."""
_BUFFER_BYTES = 64 << 20
"""The size at which a task sends its parcels."""
_PARCELS_DDL = "bucket int, side int, place long, body binary"
_PARCELS = pa.schema(
    [("bucket", pa.int32()), ("side", pa.int32()), ("place", pa.int64()), ("body", pa.binary())]
)
_RESULTS_DDL = "kind string, body string"
_RESULTS = pa.schema([("kind", pa.string()), ("body", pa.string())])

Results = list[tuple[str, str]]
"""A task's results for the driver: kind and content, as text."""
Work = Callable[[Sequence[pa.Table]], Results]
"""The work on a bucket, which is one table for each side."""


class BucketTooLarge(LakeError):
    """The rows of a few keys exceed the memory of a task."""


@dataclass(frozen=True, slots=True)
class Side:
    """Files with one side of a join by key."""

    files: Files
    keys: tuple[str, ...]
    columns: tuple[str, ...] = ()
    """The columns of existing rows to read."""
    matching: Files | None = None
    """If given, only rows with a key in these files are sent, with FILE and ROW."""

    @property
    def schema(self) -> pa.Schema:
        if self.matching is None:
            return self.files.schema
        return existing_schema(self.files.schema, self.columns)

    def groups(self) -> list[tuple[int, ...]]:
        """Group the files by task.

        A task that looks up the keys of a batch reads these first. So it reads at least as much of
        the table; otherwise a large table would cost its number of groups times the batch.
        """
        if self.matching is None:
            return grouped(self.files)
        batch_bytes = sum(file.size_bytes for file in self.matching.files)
        return grouped(self.files, group_bytes=max(_GROUP_BYTES, batch_bytes))

    def batches(self, numbers: Sequence[int]) -> Iterator[Any]:
        if self.matching is None:
            for number in numbers:
                yield from self.files.batches(number)
            return
        batch = self.matching
        keys = (rows for n in range(len(batch.files)) for rows in batch.batches(n, self.keys))
        yield from existing_rows(self.files, numbers, self.columns, KeyHashes.of(keys, self.keys))


def work_by_key(
    spark: "SparkSession", sides: Sequence[Side], size_bytes: int, work: Work
) -> dict[str, list[str]]:
    """Join the rows of all sides by key in one job, and return the results by kind.

    `size_bytes` is the approximate size of the batch in memory.
    """
    groups = [(number, group) for number, side in enumerate(sides) for group in side.groups()]
    buckets = min(BUCKETS_MAX, max(2, -(-size_bytes // BUCKET_BYTES)))
    send = _SendTask(tuple(sides), tuple(groups), buckets)
    parcels = spark.range(0, len(groups), 1, len(groups)).mapInArrow(send, _PARCELS_DDL)
    schemas = tuple(side.schema for side in sides)

    def on_bucket(table: pa.Table) -> pa.Table:
        return results_of(work(_unpacked(table, schemas)))

    sorted_out = parcels.repartition(buckets, "bucket").groupBy("bucket")
    return by_kind(sorted_out.applyInArrow(on_bucket, _RESULTS_DDL).collect())


def work_by_group(
    spark: "SparkSession", groups: Sequence[Any], work: Callable[[Any], Results]
) -> dict[str, list[str]]:
    """Run a task for each group in one job."""
    if not groups:
        return {}

    def on_groups(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from results_of(work(groups[number])).to_batches()

    tasks = spark.range(0, len(groups), 1, len(groups))
    return by_kind(tasks.mapInArrow(on_groups, _RESULTS_DDL).collect())


def grouped(
    files: Files, numbers: Sequence[int] | None = None, *, group_bytes: int = _GROUP_BYTES
) -> list[tuple[int, ...]]:
    """Group the numbers of files by task, in their order."""
    chosen = range(len(files.files)) if numbers is None else numbers
    return list(bins(chosen, group_bytes, lambda number: files.files[number].size_bytes))


def results_of(results: Results) -> pa.Table:
    kinds, bodies = zip(*results, strict=True) if results else ((), ())
    columns = [pa.array(kinds, pa.string()), pa.array(bodies, pa.string())]
    return pa.Table.from_arrays(columns, schema=_RESULTS)


def by_kind(rows: Sequence[Any]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row["kind"], []).append(row["body"])
    return found


@dataclass(frozen=True, slots=True)
class _SendTask:
    """Reads groups of files, and packs their rows by bucket."""

    sides: tuple[Side, ...]
    groups: tuple[tuple[int, tuple[int, ...]], ...]
    buckets: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for group in batch.column(0).to_pylist():
                yield from self._sent(group)

    def _sent(self, group: int) -> Iterator[pa.RecordBatch]:
        """Yield parcels in the order of the rows, with increasing places over all groups."""
        number, files = self.groups[group]
        side = self.sides[number]
        buffer: dict[int, list[Any]] = {}
        buffer_bytes, place = 0, group << 32
        for batch in side.batches(files):
            for bucket, rows in by_bucket(batch, side.keys, self.buckets):
                buffer.setdefault(bucket, []).append(rows)
            buffer_bytes += batch.nbytes
            if buffer_bytes >= _BUFFER_BYTES:
                yield _packed(buffer, number, place, side.schema)
                buffer, buffer_bytes, place = {}, 0, place + 1
        if buffer:
            yield _packed(buffer, number, place, side.schema)


def _packed(
    buffer: dict[int, list[Any]], side: int, place: int, schema: pa.Schema
) -> pa.RecordBatch:
    bodies = []
    for batches in buffer.values():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema) as stream:
            stream.write_table(pa.Table.from_batches(batches, schema).combine_chunks())
        bodies.append(sink.getvalue().to_pybytes())
    columns = [
        pa.array(list(buffer), pa.int32()),
        pa.repeat(pa.scalar(side, pa.int32()), len(bodies)),
        pa.repeat(pa.scalar(place, pa.int64()), len(bodies)),
        pa.array(bodies, pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_PARCELS)


def _unpacked(parcels: pa.Table, schemas: Sequence[pa.Schema]) -> list[pa.Table]:
    """Return the tables of a bucket, one for each side, with rows in the order of sending."""
    if parcels.nbytes > BUCKET_BYTES_MAX:
        raise BucketTooLarge(
            f"{parcels.nbytes >> 20} MB of a batch have so few keys that one task would have to"
            f" merge them, and the maximum is {BUCKET_BYTES_MAX >> 20} MB; make batches smaller,"
            " for example by the source's option maxOffsetsPerTrigger, or find the cause of so"
            " many rows for one key"
        )
    ordered = parcels.sort_by("place")
    sides = ordered["side"].to_pylist()
    tables: list[list[pa.Table]] = [[] for _ in schemas]
    for side, body in zip(sides, ordered["body"], strict=True):
        with pa.ipc.open_stream(body.as_buffer()) as stream:
            tables[side].append(stream.read_all())
    return [
        pa.concat_tables([schema.empty_table(), *found])
        for schema, found in zip(schemas, tables, strict=True)
    ]
