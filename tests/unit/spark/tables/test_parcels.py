"""Parcels of rows arrive complete, in order and with their types."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.lake.catalog import Lake
from headrace.lake.reading import Files
from headrace.lake.upsert_files import FILE, ROW
from headrace.spark.tables import parcels
from headrace.spark.tables.parcels import BucketTooLarge, Side
from tests.builders.lakes import appended
from tests.builders.local_parcels import sent

SCHEMA = pa.schema(
    [("k", pa.int64()), ("tags", pa.map_(pa.string(), pa.int32())), ("n", pa.decimal128(9, 2))]
)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    table = Lake(tmp_path).create("raw.t", SCHEMA)
    for first in (0, 100, 200):
        rows = [{"k": first + n, "tags": [("a", n)], "n": None} for n in range(100)]
        appended(table, rows)
    return table.table_files(table.version)


def test_all_rows_arrive_once_in_the_order_of_the_files(files: Files) -> None:
    arrived = [tables[0] for tables in sent((Side(files, ("k",)),)).values()]
    order = [row for number in range(3) for batch in files.batches(number) for row in keys(batch)]
    assert sorted(row for table in arrived for row in keys(table)) == list(range(300))
    assert all(keys(table) == sorted(keys(table), key=order.index) for table in arrived)
    assert all(table.schema == files.schema for table in arrived)


def test_existing_rows_of_the_batchs_keys_are_sent_with_their_positions(
    files: Files, tmp_path: Path
) -> None:
    batch = Lake(tmp_path / "other").create("raw.b", SCHEMA)
    appended(batch, [{"k": k, "tags": None, "n": None} for k in (5, 105, 999)])
    staged = batch.table_files(batch.version)
    sides = (Side(staged, ("k",)), Side(files, ("k",), ("k",), matching=staged))
    together = [
        (keys(incoming), keys(existing), existing.select([FILE, ROW]).to_pylist())
        for incoming, existing in sent(sides).values()
    ]
    assert sorted(key for incoming, _, _ in together for key in incoming) == [5, 105, 999]
    assert all(set(existing) <= set(incoming) for incoming, existing, _ in together)
    found = [place for _, _, places in together for place in places]
    assert sorted(key_at(files, place) for place in found) == [5, 105]


def test_the_larger_a_batch_is_the_more_of_the_table_a_task_reads(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each task gathers the keys of the whole batch first."""
    monkeypatch.setattr(parcels, "_GROUP_BYTES", 1)
    small = replace(files, files=(replace(files.files[0], size_bytes=1),))
    large = replace(files, files=files.files[:2])
    groups = [Side(files, ("k",), ("k",), matching=one).groups() for one in (small, large)]
    assert groups == [[(0,), (1,), (2,)], [(0, 1), (2,)]]


def test_a_bucket_that_is_too_large_for_a_task_is_refused_with_advice(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parcels, "BUCKET_BYTES_MAX", 100)
    with pytest.raises(BucketTooLarge, match="maxOffsetsPerTrigger"):
        sent((Side(files, ("k",)),))


def keys(rows: Any) -> list[int]:
    found: list[int] = rows.column("k").to_pylist()
    return found


def key_at(files: Files, place: dict[str, int]) -> int:
    def rows() -> Iterator[int]:
        for batch in files.batches(place[FILE]):
            yield from keys(batch)

    return list(rows())[place[ROW]]
