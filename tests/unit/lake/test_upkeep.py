"""Tidying of tables that are fed for long: rarely, and nothing that is needed."""

import os
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.lake.catalog import Lake
from headrace.lake.upkeep import SMALL_FILES_MAX, VACUUM_EVERY_S, Tidied, tidy
from headrace.testing.clock import SimulatedClock
from tests.builders.lakes import ids_of, numbers

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
NOW = 2_000_000_000.0


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path)
    table = lake.create("raw.orders", SCHEMA)
    for number in range(5):
        numbers(table, number)
    return lake


def tidied(lake: Lake, now_s: float, small_files_max: int = SMALL_FILES_MAX) -> Tidied:
    clock = SimulatedClock(now_ms=int(now_s * 1000))
    return tidy(Lake(lake.root, clock=clock), "raw.orders", small_files_max=small_files_max)


def test_a_few_small_files_are_left_alone(lake: Lake) -> None:
    assert tidied(lake, NOW) == Tidied()
    assert len(lake.table("raw.orders").files()) == 5


def test_many_small_files_are_joined(lake: Lake) -> None:
    done = tidied(lake, NOW, small_files_max=4)
    assert done.optimized is not None
    assert done.optimized.files_before == 5
    assert ids_of(lake.table("raw.orders")) == list(range(5))
    assert tidied(lake, NOW, small_files_max=4).optimized is None


def test_unused_files_are_deleted_once_a_day(lake: Lake) -> None:
    left = lake.root / "raw" / "orders" / "part-left.zstd.parquet"
    left.write_bytes(b"of a task that died")
    os.utime(left, (1_000_000_000, 1_000_000_000))
    assert tidied(lake, NOW).files_removed == 0
    later = NOW + VACUUM_EVERY_S
    assert tidied(lake, later).files_removed == 1
    left.write_bytes(b"of another")
    os.utime(left, (1_000_000_000, 1_000_000_000))
    assert tidied(lake, later + 1).files_removed == 0
    assert ids_of(lake.table("raw.orders")) == list(range(5))


def test_a_clock_that_was_set_back_does_not_delay_the_next_run(lake: Lake) -> None:
    tidied(lake, NOW)
    left = lake.root / "raw" / "orders" / "part-left.zstd.parquet"
    left.write_bytes(b"of a task that died")
    os.utime(left, (1_000_000_000, 1_000_000_000))
    earlier = NOW - 30 * VACUUM_EVERY_S
    assert tidied(lake, earlier).files_removed == 1
    left.write_bytes(b"of another")
    os.utime(left, (1_000_000_000, 1_000_000_000))
    assert tidied(lake, earlier + 1).files_removed == 0
