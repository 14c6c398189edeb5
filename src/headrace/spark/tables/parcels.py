"""Rows to the tasks that have their keys: Arrow tables in parcels, which Spark's shuffle sorts.

Tasks read files, part the rows by the hash of their key into buckets, and pack each part as Arrow's
own bytes. Spark moves the parcels and does not look into them, so values keep their types to the
bit. One task at a time works on a bucket, which is what has to fit into its memory.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headrace.lake.errors import LakeError
from headrace.lake.key_hashes import KeyHashes, by_bucket
from headrace.lake.upserting import Files, standing_rows, standing_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BUCKET_BYTES = 32 << 20
"""So much of a batch goes into one bucket, if its keys are spread."""
BUCKET_BYTES_MAX = 1 << 30
BUCKETS_MAX = 2_000
_GROUP_BYTES = 32 << 20
"""So much of files, compressed, one task reads."""
_GATHERED_BYTES = 64 << 20
"""A task that has packed so much sends it off."""
_PARCELS_DDL = "bucket int, side int, place long, body binary"
_PARCELS = pa.schema(
    [("bucket", pa.int32()), ("side", pa.int32()), ("place", pa.int64()), ("body", pa.binary())]
)
_RESULTS_DDL = "kind string, body string"
_RESULTS = pa.schema([("kind", pa.string()), ("body", pa.string())])

Results = list[tuple[str, str]]
"""What a task tells the driver: what sort of thing it has made, and which, as text."""
Work = Callable[[Sequence[pa.Table]], Results]
"""What is done with a bucket, given as one table for each side."""


class BucketTooLarge(LakeError):
    """More rows of few keys than one task can hold."""


@dataclass(frozen=True, slots=True)
class Side:
    """Files whose rows are brought together with others by key."""

    files: Files
    keys: tuple[str, ...]
    columns: tuple[str, ...] = ()
    """Of standing rows, those that are looked at."""
    standing_for: Files | None = None
    """Where given, only rows with a key of these are sent, each with where it stands."""

    @property
    def schema(self) -> pa.Schema:
        if self.standing_for is None:
            return self.files.schema
        return standing_schema(self.files.schema, self.columns)

    def groups(self) -> list[tuple[int, ...]]:
        """The files that a task reads together.

        Who looks for the keys of a batch gathers these first. So it reads at least as much of the
        table as the batch has: else a large table would cost its groups times the batch.
        """
        if self.standing_for is None:
            return grouped(self.files)
        batch_bytes = sum(file.size_bytes for file in self.standing_for.files)
        return grouped(self.files, group_bytes=max(_GROUP_BYTES, batch_bytes))

    def batches(self, numbers: Sequence[int]) -> Iterator[Any]:
        if self.standing_for is None:
            for number in numbers:
                yield from self.files.batches(number)
            return
        batch = self.standing_for
        keys = (rows for n in range(len(batch.files)) for rows in batch.batches(n, self.keys))
        yield from standing_rows(self.files, numbers, self.columns, KeyHashes.of(keys, self.keys))


def work_by_key(
    spark: "SparkSession", sides: Sequence[Side], size_bytes: int, work: Work
) -> dict[str, list[str]]:
    """Bring the rows of all sides together by key and have tasks work on them; one job.

    `size_bytes` is about the size of the batch in memory. The answer is what was made, by sort.
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
    """Have a task work on each group; one job."""
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
    """Files by number, in their order, in groups of which a task reads one."""
    groups: list[tuple[int, ...]] = []
    room = 0
    for number in range(len(files.files)) if numbers is None else numbers:
        size_bytes = files.files[number].size_bytes
        if not groups or size_bytes > room:
            groups.append(())
            room = group_bytes
        groups[-1] += (number,)
        room -= size_bytes
    return groups


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
    """Reads groups of files and packs their rows by bucket."""

    sides: tuple[Side, ...]
    groups: tuple[tuple[int, tuple[int, ...]], ...]
    buckets: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for group in batch.column(0).to_pylist():
                yield from self._sent(group)

    def _sent(self, group: int) -> Iterator[pa.RecordBatch]:
        """Parcels in the order of the rows, of which `place` keeps count over all groups."""
        number, files = self.groups[group]
        side = self.sides[number]
        gathered: dict[int, list[Any]] = {}
        gathered_bytes, place = 0, group << 32
        for batch in side.batches(files):
            for bucket, rows in by_bucket(batch, side.keys, self.buckets):
                gathered.setdefault(bucket, []).append(rows)
            gathered_bytes += batch.nbytes
            if gathered_bytes >= _GATHERED_BYTES:
                yield _packed(gathered, number, place, side.schema)
                gathered, gathered_bytes, place = {}, 0, place + 1
        if gathered:
            yield _packed(gathered, number, place, side.schema)


def _packed(
    gathered: dict[int, list[Any]], side: int, place: int, schema: pa.Schema
) -> pa.RecordBatch:
    bodies = []
    for batches in gathered.values():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema) as stream:
            stream.write_table(pa.Table.from_batches(batches, schema).combine_chunks())
        bodies.append(sink.getvalue().to_pybytes())
    columns = [
        pa.array(list(gathered), pa.int32()),
        pa.repeat(pa.scalar(side, pa.int32()), len(bodies)),
        pa.repeat(pa.scalar(place, pa.int64()), len(bodies)),
        pa.array(bodies, pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_PARCELS)


def _unpacked(parcels: pa.Table, schemas: Sequence[pa.Schema]) -> list[pa.Table]:
    """The tables of a bucket, one for each side, with rows in the order in which they were sent."""
    if parcels.nbytes > BUCKET_BYTES_MAX:
        raise BucketTooLarge(
            f"{parcels.nbytes >> 20} MB of a batch have so few keys that one task would have to"
            f" merge them, and {BUCKET_BYTES_MAX >> 20} MB are the most; make batches smaller, as"
            " by the source's option maxOffsetsPerTrigger, or find out what writes so much to one"
            " key"
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
