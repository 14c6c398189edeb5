"""What keeps a table that is there from becoming what is declared."""

import shutil
from pathlib import Path

import pyarrow as pa

from headrace.lake.catalog import Lake
from headrace.pipelines.analysing.standing_tables import (
    complaints,
    partitioning_complaint,
    property_complaint,
    standing,
)


def test_another_partitioning_is_told_with_the_way_out() -> None:
    assert partitioning_complaint("raw.x", ("day",), ("day",)) is None
    told = partitioning_complaint("raw.x", ("topic", "day"), ())
    assert told is not None
    assert told.startswith("raw.x is there, partitioned by topic, day and not by nothing;")
    assert "headrace pipelines replay" in told


def test_properties_that_only_a_new_table_can_have_are_told() -> None:
    standing = {"delta.enableChangeDataFeed": "true", "delta.logRetentionDuration": "x"}
    assert property_complaint("raw.x", standing, {"delta.logRetentionDuration": "y"}) is None
    assert property_complaint("raw.x", standing, {"delta.enableChangeDataFeed": "true"}) is None
    told = property_complaint("raw.x", standing, {"delta.columnMapping.mode": "name"})
    assert told is not None
    assert "without delta.columnMapping.mode as it is declared now" in told


def test_all_that_is_wrong_with_a_table_is_told(tmp_path: Path) -> None:
    columns = pa.schema([("id", pa.int64()), ("day", pa.date32())])
    table = Lake(tmp_path).create("raw.x", columns, partition_by=("day",))
    assert complaints(table, ("day",), {"delta.logRetentionDuration": "interval 3 days"}) == []
    assert len(complaints(table, (), {"delta.columnMapping.mode": "name"})) == 2


def test_a_table_stands_in_the_generation_that_is_asked_for_unless_it_was_lost(
    tmp_path: Path,
) -> None:
    lake = Lake(tmp_path)
    made = lake.create("raw.x", pa.schema([("id", pa.int64())]))
    assert [standing(lake, "raw.x", 2), standing(lake, "raw.y")] == [None, None]
    there = standing(lake, "raw.x")
    assert there is not None
    assert there.partition_by == ()
    shutil.rmtree(made.place)
    assert standing(lake, "raw.x", 1) is None
