"""Records rebuilt from the bytes in quarantine."""

import datetime as dt
import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.lake.catalog import Lake
from headrace.lake.quarantine import QUARANTINE_SCHEMA, SOURCE_NAME, UNREADABLE
from headrace.pipelines.model import KEPT_RECORD, Location, PipelineSettings, Source
from headrace.pipelines.running.correcting.kept_records import (
    KeptRecord,
    decoded,
    files_near,
    rebuildable,
    records_of,
)
from headrace.spark.source.record_columns import HEADERS_TYPE
from tests.builders.lakes import written

NOON = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
LATER = NOON + dt.timedelta(hours=1)
PLACE = ("orders", 0, 3)
SOURCE = Source(
    "orders",
    Location("pipeline.toml", 1),
    format="json",
    schema="id BIGINT",
    options={"metadataPrefix": "k_"},
)
SETTINGS = PipelineSettings("shop")


def quarantine(*rows: dict[str, Any]) -> pa.Table:
    named = [{"topic": "orders", "partition": 0, "offset": 3, **row} for row in rows]
    full = [{name: row.get(name) for name in QUARANTINE_SCHEMA.names} for row in named]
    return pa.Table.from_pylist(full, QUARANTINE_SCHEMA)


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        pytest.param([("dear", NOON, "{}"), ("dear", LATER, "{}")], 2, id="two batches"),
        pytest.param([("dear", NOON, "{}"), ("dear", NOON, "[1]")], 1, id="rows of one record"),
        pytest.param([(UNREADABLE, NOON, "{}"), (UNREADABLE, NOON, "{}")], 2, id="redriven both"),
        pytest.param(
            [
                (UNREADABLE, NOON, f'{{"{SOURCE_NAME}": "a"}}'),
                (UNREADABLE, LATER, f'{{"{SOURCE_NAME}": "b"}}'),
            ],
            1,
            id="reported by two sources",
        ),
        pytest.param([(UNREADABLE, NOON, "{}"), ("dear", LATER, "{}")], 1, id="read by one source"),
    ],
)
def test_each_record_is_rebuilt_as_often_as_it_was_read(
    rows: list[tuple[str, dt.datetime, str]], count: int
) -> None:
    """After a topic was recreated two records may have one place and the same bytes."""
    found = quarantine(
        *(
            {"payload": b"x", "rule": rule, "quarantined_at": at, "row": row}
            for rule, at, row in rows
        )
    )
    assert records_of(found) == [KeptRecord(PLACE, b"x", {"timestamp": None})] * count


def test_other_bytes_at_one_offset_are_another_record() -> None:
    rows = quarantine({"payload": b"x"}, {"payload": b"y"}, {"payload": b"x", "offset": 4})
    assert [(one.place[2], one.payload) for one in records_of(rows)] == [
        (3, b"x"),
        (3, b"y"),
        (4, b"x"),
    ]


def test_rows_are_rebuilt_if_the_table_has_no_others_of_their_record() -> None:
    rows = quarantine(
        {"payload": b"x", "rule": "dear"},
        {"payload": b"x", "rule": "dear", "offset": 4},
        {"payload": b"x", "rule": UNREADABLE, "offset": 4},
        {"payload": None, "rule": "dear", "offset": 5},
        {"payload": b"x", "rule": "dear", "offset": None},
    )
    found = rebuildable(rows, {("orders", 0, 4)}, "orders")
    assert found == [True, False, True, False, False]


def test_records_that_another_source_of_the_flow_has_stored_are_not_read_again() -> None:
    """A flow read a topic by `a` and `b`, which decode differently, and goes on with `a` alone.

    The table has the records at 0 and 3 as `a` decoded them, and none at 2. Neither source decoded
    the record at 1, and the row of 4 does not name its source.
    """
    reported = [(0, "b"), (1, "b"), (1, "a"), (2, "b"), (3, "b"), (4, None)]
    rows = quarantine(
        *(
            {
                "offset": offset,
                "payload": b"x",
                "rule": UNREADABLE,
                "row": json.dumps({SOURCE_NAME: source}),
            }
            for offset, source in reported
        )
    )
    stored = {("orders", 0, offset) for offset in (0, 1, 3, 4)}
    found = rebuildable(rows, stored, "a")
    assert found == [False, True, True, True, False, True]


def test_bytes_become_the_columns_of_the_source_as_far_as_they_were_kept() -> None:
    columns = pa.schema(
        [
            ("id", pa.int64()),
            ("_error", pa.string()),
            ("k_offset", pa.int64()),
            ("k_timestamp", pa.timestamp("us", "UTC")),
            ("k_headers", HEADERS_TYPE),
        ]
    )
    row = {KEPT_RECORD: {"timestamp": NOON.isoformat(), "headers": [{"key": "h", "value": None}]}}
    rows = quarantine(
        {"payload": b'{"id": 7}', "row": json.dumps(row)},
        {"payload": b"{torn", "offset": 5, "row": '{"timestamp": "noon"}'},
    )
    found = decoded(records_of(rows), SOURCE, SETTINGS, columns).to_pylist()
    assert [(row["id"], row["_error"] is None, row["k_offset"]) for row in found] == [
        (7, True, 3),
        (None, False, 5),
    ]
    assert [(row["k_timestamp"], row["k_headers"]) for row in found] == [
        (NOON, [{"key": "h", "value": None}]),
        (None, None),
    ]


def test_bytes_that_are_not_decoded_are_the_value_beside_their_key() -> None:
    source = Source("orders", Location("pipeline.toml", 1))
    names = {"key": pa.binary(), "value": pa.binary(), "offset": pa.int64()}
    beside = {"key": b64encode(b"k").decode()}
    found = decoded([KeptRecord(PLACE, b"x", beside)], source, SETTINGS, pa.schema(names))
    assert found.to_pylist() == [{"key": b"k", "value": b"x", "offset": 3}]


def test_a_time_beyond_the_calendar_of_python_is_kept() -> None:
    record = KeptRecord(PLACE, b"{}", {"timestamp": "+58134-01-21T00:00:00Z"})
    columns = pa.schema([("k_timestamp", pa.timestamp("us", "UTC"))])
    found = decoded([record], SOURCE, SETTINGS, columns)["k_timestamp"]
    assert found.cast(pa.int64()).to_pylist() == [1_772_366_400_000 * 1_000_000]


@pytest.mark.parametrize("by", [(), ("topic",)], ids=["plain", "partitioned by topic"])
def test_files_outside_the_bounds_of_some_records_are_skipped(
    by: tuple[str, ...], tmp_path: Path
) -> None:
    """The last file has a row without an offset, so its bounds do not rule it out."""
    schema = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())])
    table = Lake(tmp_path).create("raw.o", schema, partition_by=by)
    files: list[list[tuple[str, int, int | None]]] = [
        [("a", 0, 0), ("a", 0, 4)],
        [("a", 0, 5), ("a", 0, 9)],
        [("a", 1, 5)],
        [("b", 0, 5)],
        [("a", 0, None), ("a", 0, 6)],
    ]
    numbers: dict[str, int] = {}
    for number, rows in enumerate(files):
        table.append(written(table, [dict(zip(schema.names, row, strict=True)) for row in rows]))
        for file in table.files():
            numbers.setdefault(file.path, number)
    found = files_near(table, table.version, [("a", 0, 6), ("a", 0, 5), ("c", 7, 0)])
    assert sorted(numbers[file.path] for file in found) == ([1, 4] if by else [1, 3, 4])
