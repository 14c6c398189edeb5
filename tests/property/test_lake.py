"""Tables of the lake under random rows."""

import datetime as dt
import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.lake.catalog import Lake
from headrace.lake.commit_log import Token
from headrace.lake.data_files import FileWriter
from headrace.lake.reading import read_batches
from headrace.lake.rewriting import optimize
from tests.builders.lakes import appended, written

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
MOMENTS = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2200, 1, 1), timezones=st.just(dt.UTC))
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("text", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("ratio", pa.float64()),
        ("part", pa.string()),
    ]
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.none() | st.integers(-(1 << 63), (1 << 63) - 1),
            "text": st.none() | TEXTS,
            "at": st.none() | MOMENTS,
            "ratio": st.none() | st.floats(allow_nan=False),
            "part": st.none() | TEXTS.filter(bool),
        }
    ),
    max_size=12,
)


@contextmanager
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory)


def counted(rows: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row[name] for name in SCHEMA.names) for row in rows)


@settings(max_examples=20)
@given(rows=ROWS)
def test_rows_are_returned_for_any_name_of_a_partition(rows: list[dict[str, Any]]) -> None:
    with place() as root:
        table = Lake(root).create("raw.any", SCHEMA, partition_by=["part"])
        appended(table, rows)
        assert counted(table.rows().to_pylist()) == counted(rows)
        delta = DeltaTable(str(table.place))
        assert counted(delta.to_pyarrow_table().select(SCHEMA.names).to_pylist()) == counted(rows)
        by_file = [
            row
            for file in table.files()
            for batch in read_batches(table.place, file, SCHEMA, ["part"])
            for row in batch.to_pylist()
        ]
        assert counted(by_file) == counted(rows)


@settings(max_examples=30)
@given(rows=ROWS.filter(bool))
def test_bounds_in_the_log_enclose_every_value(rows: list[dict[str, Any]]) -> None:
    with place() as root:
        writer = FileWriter(root, SCHEMA)
        writer.write(pa.Table.from_pylist(rows, schema=SCHEMA))
        (file,) = writer.close()
        said = json.loads(file.stats)
    for name in SCHEMA.names:
        values = [row[name] for row in rows if row[name] is not None]
        assert said["nullCount"][name] == len(rows) - len(values)
        if name in said["minValues"]:
            least, most = said["minValues"][name], said["maxValues"][name]
            if name == "at":
                least, most = dt.datetime.fromisoformat(least), dt.datetime.fromisoformat(most)
            assert least <= min(values)
            assert most >= max(values)


STEPS = st.lists(
    st.tuples(st.sampled_from(["next", "again", "tidy"]), st.sampled_from("ab"), st.integers(0, 2)),
    max_size=14,
)


@settings(max_examples=20)
@given(steps=STEPS)
def test_the_last_version_of_a_batch_survives_joining_of_files(
    steps: list[tuple[str, str, int]],
) -> None:
    """Each row is named by the step that brought it, so that no two are alike."""
    with place() as root:
        table = Lake(root).create("quarantine.any", pa.schema([("id", pa.int64())]))
        expected: dict[str, list[list[int]]] = {"a": [], "b": []}
        for number, (what, writer, count) in enumerate(steps):
            batches = expected[writer]
            if what == "tidy":
                optimize(table)
                continue
            if what == "next" or not batches:
                batches.append([])
            batches[-1] = [10 * number + one for one in range(count)]
            files = written(table, [{"id": one} for one in batches[-1]])
            table.amend(files, Token(writer, len(batches) - 1))
        kept = [one for batches in expected.values() for batch in batches for one in batch]
        assert sorted(table.rows()["id"].to_pylist()) == sorted(kept)
