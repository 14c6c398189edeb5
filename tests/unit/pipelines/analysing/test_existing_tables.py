"""Differences between an existing table and its declaration that only a rebuild resolves."""

import shutil
from pathlib import Path

import pyarrow as pa

from headrace.lake.catalog import Lake
from headrace.pipelines.analysing.existing_tables import (
    complaints,
    existing,
    partitioning_complaint,
    property_complaint,
)


def test_another_partitioning_is_reported_with_the_remedy() -> None:
    assert partitioning_complaint("raw.x", ("day",), ("day",)) is None
    told = partitioning_complaint("raw.x", ("topic", "day"), ())
    assert told is not None
    assert told.startswith("raw.x exists, partitioned by topic, day and not by nothing;")
    assert "headrace pipelines replay" in told


def test_properties_that_only_a_new_table_can_have_are_reported() -> None:
    existing = {"delta.enableChangeDataFeed": "true", "delta.logRetentionDuration": "x"}
    assert property_complaint("raw.x", existing, {"delta.logRetentionDuration": "y"}) is None
    assert property_complaint("raw.x", existing, {"delta.enableChangeDataFeed": "true"}) is None
    told = property_complaint("raw.x", existing, {"delta.columnMapping.mode": "name"})
    assert told is not None
    assert "without delta.columnMapping.mode as declared now" in told


def test_all_problems_of_a_table_are_reported(tmp_path: Path) -> None:
    columns = pa.schema([("id", pa.int64()), ("day", pa.date32())])
    table = Lake(tmp_path).create("raw.x", columns, partition_by=("day",))
    assert complaints(table, ("day",), {"delta.logRetentionDuration": "interval 3 days"}) == []
    assert len(complaints(table, (), {"delta.columnMapping.mode": "name"})) == 2


def test_a_table_exists_in_its_generation_unless_it_was_lost(
    tmp_path: Path,
) -> None:
    lake = Lake(tmp_path)
    made = lake.create("raw.x", pa.schema([("id", pa.int64())]))
    assert [existing(lake, "raw.x", 2), existing(lake, "raw.y")] == [None, None]
    there = existing(lake, "raw.x")
    assert there is not None
    assert there.partition_by == ()
    shutil.rmtree(made.place)
    assert existing(lake, "raw.x", 1) is None
