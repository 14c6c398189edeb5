"""Keys as hashes: rows of the same key are always found, and stay together in one bucket."""

import random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
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
    parts = [(first, table.slice(first, 300)) for first in range(0, 1_200, 300)]
    looked_up = list(hashes.looked_up((first, part.to_batches(100)) for first, part in parts))
    found = [pc.indices_nonzero(mask).to_pylist() for _, mask in looked_up]
    assert [first for first, _ in looked_up] == [0, 300, 600, 900]
    assert found == [[0, 7], [200], [], [100]]


def test_small_parts_are_looked_up_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each of many small files would cost as much as the batch has keys."""
    looks: list[int] = []
    is_in = pc.is_in

    def counted(hashes: Any, **options: Any) -> Any:
        looks.append(len(hashes))
        return is_in(hashes, **options)

    monkeypatch.setattr(pc, "is_in", counted)
    table = pa.table({"key": range(1_000)})
    hashes = KeyHashes.of([table.slice(450, 100)], ["key"])
    parts = ((first, [table.slice(first, 10)]) for first in range(0, 1_000, 10))
    found = [first for first, mask in hashes.looked_up(parts) if pc.any(mask).as_py()]
    assert found == list(range(450, 550, 10))
    assert looks == [100] * 10


def test_buckets_partition_the_rows_and_keep_their_order() -> None:
    rng = random.Random(1)
    table = pa.table({"key": [rng.randrange(50) for _ in range(500)], "n": range(500)})
    parts = dict(by_bucket(table, ["key"], 7))
    keys = [set(part["key"].to_pylist()) for part in parts.values()]
    assert sum(part.num_rows for part in parts.values()) == 500
    assert sum(map(len, keys)) == 50
    assert all(part["n"].to_pylist() == sorted(part["n"].to_pylist()) for part in parts.values())


def test_an_empty_table_has_no_buckets() -> None:
    assert list(by_bucket(pa.table({"key": pa.array([], pa.int64())}), ["key"], 3)) == []
