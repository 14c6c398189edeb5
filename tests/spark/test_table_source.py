"""Tables of the lake in Spark: streams that follow commits, and DataFrames of a version."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from headrace.lake.catalog import Lake
from headrace.lake.commit_log import Token
from headrace.lake.rewriting import evolve, optimize
from headrace.lake.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


@pytest.fixture
def session(spark: "SparkSession") -> "SparkSession":
    from headrace.spark.tables.source import TableSource

    spark.dataSource.register(TableSource)
    return spark


def commit(table: Table, *ids: int) -> int:
    with table.writer() as writer:
        writer.write(pa.table({"id": list(ids), "name": [f"n{one}" for one in ids]}))
        files = writer.close()
    return table.append(files)


def stream(session: "SparkSession", lake: Lake, name: str, **options: str) -> "DataStreamReader":
    reader = session.readStream.format("headrace-table").option("root", str(lake.root))
    return reader.option("table", name).options(**options)


class Run:
    """Runs a stream until nothing is left, and keeps what each batch brought."""

    def __init__(self, checkpoint: Path) -> None:
        self.checkpoint = checkpoint
        self.batches: list[list[dict[str, Any]]] = []

    def __call__(self, frame: "DataFrame") -> list[list[dict[str, Any]]]:
        self.batches = []
        query = (
            frame.writeStream.foreachBatch(self._keep)
            .option("checkpointLocation", str(self.checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(120)
        assert not query.isActive
        return self.batches

    def _keep(self, frame: "DataFrame", _: int) -> None:
        self.batches.append([row.asDict() for row in frame.collect()])


def ids(batches: list[list[dict[str, Any]]]) -> list[list[int]]:
    return [sorted(row["id"] for row in batch) for batch in batches]


def test_a_stream_reads_existing_rows_and_then_added_ones(
    session: "SparkSession", lake: Lake, tmp_path: Path
) -> None:
    table = lake.create("raw.orders", SCHEMA)
    commit(table, 1, 2)
    commit(table, 3)
    run = Run(tmp_path / "checkpoint")
    frame = stream(session, lake, "raw.orders", commitVersion="true").load()

    first = run(frame)
    commit(table, 4)
    table.append([], Token("w", 0))
    commit(table, 5)
    second = run(frame)

    assert ids(first) == [[1, 2, 3]]
    assert {(row["id"], row["_commit_version"]) for row in second[0]} == {(4, 3), (5, 5)}
    assert {(row["id"], row["_commit_version"]) for row in first[0]} == {(1, 1), (2, 1), (3, 2)}


def test_a_large_table_is_read_in_parts_each_file_once(
    session: "SparkSession", lake: Lake, tmp_path: Path
) -> None:
    table = lake.create("raw.orders", SCHEMA)
    for number in range(5):
        commit(table, number)
    run = Run(tmp_path / "checkpoint")
    frame = stream(session, lake, "raw.orders", maxFilesPerTrigger="2", columns="id").load()

    batches = run(frame)
    for number in range(5, 8):
        commit(table, number)
    later = run(frame)

    assert [len(batch) for batch in batches] == [2, 2, 1]
    assert sorted(one for batch in ids(batches) for one in batch) == [0, 1, 2, 3, 4]
    assert ids(later) == [[5, 6], [7]]
    assert batches[0][0].keys() == {"id"}


def test_a_stream_can_start_behind_a_version(
    session: "SparkSession", lake: Lake, tmp_path: Path
) -> None:
    table = lake.create("raw.orders", SCHEMA)
    commit(table, 1)
    second = commit(table, 2)
    frame = stream(session, lake, "raw.orders", startingVersion=str(second)).load()
    assert ids(Run(tmp_path / "checkpoint")(frame)) == [[2]]


def test_a_stream_over_changed_rows_stops_with_advice(
    session: "SparkSession", lake: Lake, tmp_path: Path
) -> None:
    table = lake.create("raw.orders", SCHEMA)
    commit(table, 1, 2)
    run = Run(tmp_path / "checkpoint")
    frame = stream(session, lake, "raw.orders").load()
    run(frame)
    table.upsert(pa.table({"id": [1], "name": ["x"]}, schema=SCHEMA), ["id"])
    with pytest.raises(Exception, match="restart the stream with a new checkpoint"):
        run(frame)


def test_a_stream_does_not_mistake_a_rebuilt_table_for_the_old_one(
    session: "SparkSession", lake: Lake, tmp_path: Path
) -> None:
    commit(lake.create("raw.orders", SCHEMA), 1)
    run = Run(tmp_path / "checkpoint")
    frame = stream(session, lake, "raw.orders").load()
    run(frame)
    commit(lake.create("raw.orders", SCHEMA, generation=2), 1)
    lake.switch({"raw.orders": 2})
    with pytest.raises(Exception, match="was rebuilt"):
        run(frame)


def test_old_files_are_read_with_the_current_columns(
    session: "SparkSession", lake: Lake, tmp_path: Path
) -> None:
    table = lake.create("raw.orders", SCHEMA)
    commit(table, 1)
    evolve(table, pa.schema([*SCHEMA, ("price", pa.float64())]))
    with table.writer() as writer:
        writer.write(pa.table({"id": [2], "name": ["b"], "price": [1.5]}))
        table.append(writer.close())
    frame = stream(session, lake, "raw.orders").load()
    rows = Run(tmp_path / "checkpoint")(frame)[0]
    assert {(row["id"], row["price"]) for row in rows} == {(1, None), (2, 1.5)}


def test_a_version_as_a_data_frame_has_types_partitions_and_odd_names(
    session: "SparkSession", lake: Lake
) -> None:
    from headrace.spark.tables.frames import table_frame

    moment = datetime(2026, 3, 1, 12, 30, 0, 123456, tzinfo=UTC)
    rows = [
        {"id": 1, "day": date(2026, 3, 1), "topic": "a b/c=é%[x]", "at": moment, "tags": ["q"]},
        {"id": 2, "day": None, "topic": None, "at": None, "tags": None},
    ]
    schema = pa.schema(
        [
            ("id", pa.int32()),
            ("day", pa.date32()),
            ("topic", pa.string()),
            ("at", pa.timestamp("us", tz="UTC")),
            ("tags", pa.list_(pa.string())),
        ]
    )
    table = lake.create("raw.events", schema, partition_by=["day", "topic"])
    with table.writer() as writer:
        writer.write(pa.Table.from_pylist(rows, schema=schema))
        version = table.append(writer.close())

    found = table_frame(session, table, version)

    assert found.columns == ["id", "day", "topic", "at", "tags"]
    got = found.toArrow().sort_by("id").to_pylist()
    assert got == rows
    assert table_frame(session, table, 0).count() == 0


def test_partitions_whose_folders_spark_would_misread_are_read_from_the_log(
    session: "SparkSession", lake: Lake
) -> None:
    from headrace.spark.tables.frames import table_frame

    schema = pa.schema([("id", pa.int64()), ("city", pa.string())])
    table = lake.create("trusted.cities", schema, partition_by=["city"])
    rows = pa.table({"id": [1, 2], "city": ["Köln", "x" * 300]}, schema=schema)
    with table.writer() as writer:
        writer.write(rows)
        table.append(writer.close())
    table.upsert(pa.table({"id": [3], "city": ["Zürich"]}, schema=schema), ["id"])
    found = {(row["id"], row["city"]) for row in table_frame(session, table).collect()}
    assert found == {(1, "Köln"), (2, "x" * 300), (3, "Zürich")}


@pytest.mark.parametrize("cities", [("b", "a"), ("Köln", "x" * 300)], ids=["spark", "python"])
def test_every_reader_returns_the_first_row_of_a_key(
    session: "SparkSession", lake: Lake, cities: tuple[str, str]
) -> None:
    """ARC-1: over files and commits, and also where those of a partition were joined."""
    from headrace.spark.tables.frames import first_rows

    schema = pa.schema([("id", pa.int64()), ("city", pa.string()), ("n", pa.int64())])
    table = lake.create("trusted.visits", schema, partition_by=["city"])
    one, other = cities
    batches: list[list[tuple[int | None, str, int | None]]] = [
        [(1, one, 0)],
        [(2, other, 1), (1, other, 2)],
        [(None, other, 3), (None, other, 4)],
    ]
    batches += [[(3, one, None), (3, one, 5)], [(1, one, 6), (2, one, 7)]]
    for rows in batches:
        with table.writer() as writer:
            named = [dict(zip(schema.names, row, strict=True)) for row in rows]
            writer.write(pa.Table.from_pylist(named, schema=schema))
            table.append(writer.close())
    truth = {(1, one, 0), (2, other, 1), (None, other, 3), (3, one, None)}

    assert {tuple(r) for r in first_rows(session, table, 5, ["id"]).collect()} == truth
    optimize(table, up_to_version=3)
    joined = first_rows(session, table, table.version, ["id"])
    assert (joined.columns, {tuple(r) for r in joined.collect()}) == (schema.names, truth)
    assert first_rows(session, table, 0, ["id"]).count() == 0


def test_a_table_in_batch_has_the_commit_of_each_row(session: "SparkSession", lake: Lake) -> None:
    table = lake.create("raw.orders", SCHEMA)
    commit(table, 1)
    commit(table, 2)
    frame = (
        session.read.format("headrace-table")
        .options(root=str(lake.root), table="raw.orders", commitVersion="true")
        .load()
    )
    assert {(row["id"], row["_commit_version"]) for row in frame.collect()} == {(1, 1), (2, 2)}


def test_a_misspelt_table_or_option_is_named(session: "SparkSession", lake: Lake) -> None:
    lake.create("raw.orders", SCHEMA)
    with pytest.raises(Exception, match=r"did you mean raw\.orders"):
        stream(session, lake, "raw.ordes").load()
    with pytest.raises(Exception, match="maxfiles is not an option"):
        stream(session, lake, "raw.orders", maxFiles="1").load()
