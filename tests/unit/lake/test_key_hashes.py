"""Keys as hashes: rows of the same key are always found, and stay together in one bucket."""

import random
from typing import Any

import pyarrow as pa
import pytest

from headrace.lake.key_hashes import KeyHashes, by_bucket, key_hashes

STRUCT = pa.struct([("a", pa.int32()), ("b", pa.float64())])


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, None, 3, 1]),
        pa.array(["a", None, "", "a"]),
        pa.array([b"a", b"", None, b"a"]),
        pa.array([0.0, -0.0, float("nan"), 0.0]),
        pa.array([{"a": 1, "b": 0.0}, None, {"a": None, "b": 1.0}, {"a": 1, "b": -0.0}], STRUCT),
        pa.array([5, None, 7, 5], pa.timestamp("us", "UTC")),
    ],
)
def test_equal_keys_have_equal_hashes(values: Any) -> None:
    rows = pa.table({"key": values, "n": [1, 1, 1, 1]})
    hashes = key_hashes(rows, ["key", "n"]).to_pylist()
    assert hashes[0] == hashes[3]


def test_every_row_with_a_key_of_the_batch_is_found() -> None:
    table = pa.table({"key": [None, *map(str, range(1_000))], "n": range(1_001)})
    batch = table.take(pa.array([0, 7, 500, 1_000]))
    hashes = KeyHashes.of([batch.slice(0, 2), batch.slice(2)], ["key"])
    found = table.filter(hashes.may_have(table.to_batches(max_chunksize=300)))
    assert found["n"].to_pylist() == [0, 7, 500, 1_000]


def test_buckets_part_the_rows_and_keep_their_order() -> None:
    rng = random.Random(1)
    table = pa.table({"key": [rng.randrange(50) for _ in range(500)], "n": range(500)})
    parts = dict(by_bucket(table, ["key"], 7))
    keys = [set(part["key"].to_pylist()) for part in parts.values()]
    assert sum(part.num_rows for part in parts.values()) == 500
    assert sum(map(len, keys)) == 50
    assert all(part["n"].to_pylist() == sorted(part["n"].to_pylist()) for part in parts.values())


def test_no_rows_have_no_buckets() -> None:
    assert list(by_bucket(pa.table({"key": pa.array([], pa.int64())}), ["key"], 3)) == []
