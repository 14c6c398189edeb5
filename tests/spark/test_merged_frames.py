"""Both layers of a merged view as a plan of Spark, with the same rows as in DuckDB."""

import random
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headrace.lake.catalog import Lake, MergedViewEntry
from headrace.lake.commit_log import Token
from headrace.lake.errors import UnusableView
from headrace.lake.lineage import Lineage
from headrace.lake.merged_views import COMMIT_VERSION, Pair, merged_rows
from headrace.lake.tables import Table
from headrace.pipelines.model import MergedView
from headrace.pipelines.running.flows.inputs import SnapshotReader, TableReads
from headrace.spark.tables.frames import merged_frame
from tests.builders.lakes import appended, written
from tests.builders.layered_views import VIEW, Layers, as_totals, totals
from tests.builders.seeds import seeds

ANSWERS = 5
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)

Choice = Callable[[random.Random], object]

KEYS: dict[str, tuple[pa.DataType, Choice]] = {
    "a page": (pa.string(), lambda rng: rng.choice(["/é", "x" * 300, "", None])),
    'of "it".`x`': (pa.float64(), lambda rng: rng.choice([1.5, float("nan"), None])),
}
MERGED: dict[str, tuple[str, pa.DataType, Choice]] = {
    "n": ("sum", pa.int32(), lambda rng: rng.randrange(-9, 9)),
    "price": ("sum", pa.decimal128(9, 2), lambda rng: Decimal(rng.randrange(999)) / 4),
    "weight": ("sum", pa.float32(), lambda rng: rng.choice([0.5, 2.25, None])),
    "first": ("min", pa.date32(), lambda rng: date(2026, 3, rng.randrange(1, 28))),
    "last": ("max", pa.timestamp("us", "UTC"), lambda rng: NOON + timedelta(0, 1) * rng.random()),
    "most": ("max", pa.float64(), lambda rng: rng.choice([1.0, float("nan"), None])),
    "name": ("min", pa.string(), lambda rng: rng.choice(["é", "z", "Z", "", None])),
    "seen": ("max", pa.bool_(), lambda rng: rng.choice([True, False, None])),
}


@pytest.mark.parametrize("seed", seeds(1))
def test_a_plan_counts_each_record_of_its_versions_once(
    seed: int, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ARC-1: parts, batch runs and reads are interleaved; the layers move on before it runs."""
    layers = Layers(tmp_path, seed, monkeypatch)
    for number in range(ANSWERS):
        for _ in range(4):
            layers.step()
        now = layers.lake.layers(VIEW)
        frame = merged_frame(spark, VIEW, now)
        for _ in range(4):
            layers.step()
        found = as_totals(frame.toArrow())
        assert found == as_totals(merged_rows(VIEW, now)), f"answer {number}"
        expected = totals(layers.covered(now.batch_version, now.speed_version))
        assert found == expected, f"answer {number}"


@pytest.mark.parametrize(
    ("keys", "partition_by"),
    [((), ()), (tuple(KEYS), ()), (tuple(KEYS), ("a page",))],
    ids=["no keys", "keys", "partitioned"],
)
@pytest.mark.parametrize("seed", seeds(1))
def test_random_layers_of_all_types_are_merged_as_by_duckdb(
    seed: int, keys: tuple[str, ...], partition_by: tuple[str, ...], lake: Lake, spark: SparkSession
) -> None:
    rng = random.Random(seed)
    view = random_layers(rng, lake, keys, partition_by)
    now = lake.layers(view)
    found, expected = merged_frame(spark, view, now).toArrow(), merged_rows(view, now)
    assert found.schema.equals(expected.schema)
    assert texts(found) == texts(expected)


def test_layers_without_rows_make_an_empty_view(lake: Lake, spark: SparkSession) -> None:
    view = made_view(lake, tuple(KEYS), ())
    assert merged_frame(spark, view, lake.layers(view)).count() == 0


def test_a_view_that_does_not_fit_its_tables_is_rejected(lake: Lake, spark: SparkSession) -> None:
    made_view(lake, tuple(KEYS), ())
    other = MergedViewEntry("refined.v", ("gone",), {"n": "sum"}, "refined.v__b", "refined.v__s")
    with pytest.raises(UnusableView, match="needs the column gone"):
        merged_frame(spark, other, lake.layers(other))


def test_tasks_read_the_files_of_a_merged_view_at_the_recorded_versions(
    tmp_path: Path, lake: Lake, spark: SparkSession
) -> None:
    """No row reaches the driver, independent of their number."""
    rng = random.Random(1)
    view = random_layers(rng, lake, tuple(KEYS), ())
    reader = reader_of(spark, lake, view)
    frame = reader.read(view.name)
    now = lake.layers(view)
    assert reader.versions == now.versions
    assert {Path(one).name for one in frame.inputFiles()} == names_of(now)
    add_part(rng, lake.table(view.speed), version=9)
    again = reader.read(view.name)
    assert texts(again.toArrow()) == texts(frame.toArrow())
    assert texts(again.toArrow()) != texts(reader_of(spark, lake, view).read(view.name).toArrow())


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def random_layers(
    rng: random.Random, lake: Lake, keys: tuple[str, ...], partition_by: tuple[str, ...]
) -> MergedViewEntry:
    """A view whose batch layer covers version 3 of its input, with parts of both sides of it."""
    view = made_view(lake, keys, partition_by)
    batch, speed = lake.table(view.batch), lake.table(view.speed)
    rows = [random_row(rng, batch) for _ in range(6)]
    batch.replace(written(batch, rows), Token("batch", 0), Lineage(inputs={"raw.v": (0, 3)}))
    for version in range(1, 7):
        add_part(rng, speed, version)
    return view


def add_part(rng: random.Random, speed: Table, version: int) -> None:
    rows = [random_row(rng, speed) for _ in range(3)]
    appended(speed, [{**row, COMMIT_VERSION: version} for row in rows])


def made_view(lake: Lake, keys: tuple[str, ...], partition_by: tuple[str, ...]) -> MergedViewEntry:
    columns = [(name, KEYS[name][0]) for name in keys]
    columns += [(name, type_) for name, (_, type_, _) in MERGED.items()]
    merge = {name: how for name, (how, _, _) in MERGED.items()}
    view = MergedViewEntry("refined.v", keys, merge, "refined.v__b", "refined.v__s")
    lake.create(view.batch, pa.schema(columns), partition_by=partition_by)
    speed = pa.schema([*columns, (COMMIT_VERSION, pa.int64())])
    lake.create(view.speed, speed, partition_by=partition_by)
    lake.put_view(view.name, view)
    return view


def random_row(rng: random.Random, table: Table) -> dict[str, object]:
    choices = {name: choice for name, (_, choice) in KEYS.items()}
    choices |= {name: choice for name, (_, _, choice) in MERGED.items()}
    return {name: choices[name](rng) for name in table.schema.names if name in choices}


def reader_of(spark: SparkSession, lake: Lake, view: MergedViewEntry) -> SnapshotReader:
    dataset = MergedView(view.name, cast(Any, None), cast(Any, None), view.merge)
    pipeline = SimpleNamespace(datasets={view.name: dataset}, sources={})
    return SnapshotReader(TableReads(spark, cast(Any, pipeline), lake))


def names_of(now: Pair) -> set[str]:
    """The files of both layers."""
    layers = ((now.batch, now.batch_version), (now.speed, now.speed_version))
    return {Path(file.path).name for table, version in layers for file in table.files(version)}


def texts(rows: Any) -> list[str]:
    """Return the rows in a fixed order, as text because NaN does not equal itself."""
    found: Iterable[dict[str, object]] = rows.to_pylist()
    return sorted(map(repr, found))
