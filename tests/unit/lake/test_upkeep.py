"""Tidying of tables that are fed for long: rarely, and nothing that is needed."""

import os
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.lake.catalog import Lake
from headrace.lake.upkeep import VACUUM_EVERY_S, Tidied, tidy
from tests.lakes import ids_of, numbers

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
NOW = 2_000_000_000.0


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path)
    table = lake.create("raw.orders", SCHEMA)
    for number in range(5):
        numbers(table, number)
    return lake


def test_a_few_small_files_are_left_alone(lake: Lake) -> None:
    assert tidy(lake, "raw.orders", now_s=NOW) == Tidied()
    assert len(lake.table("raw.orders").files()) == 5


def test_many_small_files_are_joined(lake: Lake) -> None:
    done = tidy(lake, "raw.orders", small_files_max=4, now_s=NOW)
    assert done.optimized is not None
    assert done.optimized.files_before == 5
    assert ids_of(lake.table("raw.orders")) == list(range(5))
    assert tidy(lake, "raw.orders", small_files_max=4, now_s=NOW).optimized is None


def test_files_that_nothing_needs_go_once_a_day(lake: Lake) -> None:
    left = lake.root / "raw" / "orders" / "part-left.zstd.parquet"
    left.write_bytes(b"of a task that died")
    os.utime(left, (1_000_000_000, 1_000_000_000))
    assert tidy(lake, "raw.orders", now_s=NOW).files_removed == 0
    later = NOW + VACUUM_EVERY_S
    assert tidy(lake, "raw.orders", now_s=later).files_removed == 1
    left.write_bytes(b"of another")
    os.utime(left, (1_000_000_000, 1_000_000_000))
    assert tidy(lake, "raw.orders", now_s=later + 1).files_removed == 0
    assert ids_of(lake.table("raw.orders")) == list(range(5))


def test_a_clock_that_was_set_back_does_not_hold_up_the_next_time(lake: Lake) -> None:
    tidy(lake, "raw.orders", now_s=NOW)
    left = lake.root / "raw" / "orders" / "part-left.zstd.parquet"
    left.write_bytes(b"of a task that died")
    os.utime(left, (1_000_000_000, 1_000_000_000))
    earlier = NOW - 30 * VACUUM_EVERY_S
    assert tidy(lake, "raw.orders", now_s=earlier).files_removed == 1
    left.write_bytes(b"of another")
    os.utime(left, (1_000_000_000, 1_000_000_000))
    assert tidy(lake, "raw.orders", now_s=earlier + 1).files_removed == 0
