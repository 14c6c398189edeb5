"""Records made anew of the bytes that quarantine has of them."""

import datetime as dt
from typing import Any

import pyarrow as pa

from headrace.lake.quarantine import QUARANTINE_SCHEMA
from headrace.pipelines.model import PipelineSettings, Place, Source
from headrace.pipelines.running.kept_records import KeptRecord, KeptRecords

NOON = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
SOURCE = Source("orders", Place("pipeline.toml", 1), format="json", schema="id BIGINT")
SETTINGS = PipelineSettings("shop")
NOON_MICROS = int(NOON.timestamp()) * 1_000_000
COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("_error", pa.string()),
        ("k_topic", pa.string()),
        ("k_partition", pa.int32()),
        ("k_offset", pa.int64()),
        ("k_timestamp", pa.timestamp("us", "UTC")),
        ("k_headers", pa.binary()),
    ]
)
NAMES = ("k_topic", "k_partition", "k_offset")


def quarantine(*rows: dict[str, Any]) -> pa.Table:
    named = [{"topic": "orders", "partition": 0, **row} for row in rows]
    full = [{name: row.get(name) for name in QUARANTINE_SCHEMA.names} for row in named]
    return pa.Table.from_pylist(full, QUARANTINE_SCHEMA)


def test_each_record_is_there_once_with_its_bytes_if_any_row_has_them() -> None:
    rows = quarantine(
        {"offset": 3, "row": '{"id": 1}'},
        {"offset": 3, "payload": b"x", "row": f'{{"timestamp": "{NOON.isoformat()}"}}'},
        {"offset": 4, "payload": b"y", "row": '{"timestamp": "noon"}'},
        {"offset": 5, "payload": b"y", "row": '{"timestamp": "+58134-01-21T00:00:00Z"}'},
        {"offset": None, "payload": b"z"},
    )
    assert KeptRecords.of(rows).records == {
        ("orders", 0, 3): KeptRecord(b"x", NOON_MICROS),
        ("orders", 0, 4): KeptRecord(b"y", None),
        ("orders", 0, 5): KeptRecord(b"y", 1_772_366_400_000 * 1_000_000),
    }


def test_bytes_become_the_columns_of_the_source_as_far_as_they_are_known() -> None:
    kept = KeptRecords(
        {
            ("orders", 0, 3): KeptRecord(b'{"id": 7}', NOON_MICROS),
            ("orders", 1, 5): KeptRecord(b"{torn"),
            ("orders", 1, 6): KeptRecord(None),
            ("orders", 1, 7): KeptRecord(b'{"id": 8}'),
        }
    )
    wanted = {("orders", 0, 3), ("orders", 1, 5), ("orders", 1, 6)}
    found = kept.decoded(wanted, NAMES, SOURCE, SETTINGS, COLUMNS).to_pylist()
    assert [(row["id"], row["_error"] is None, row["k_offset"]) for row in found] == [
        (7, True, 3),
        (None, False, 5),
    ]
    assert [(row["k_timestamp"], row["k_headers"]) for row in found] == [(NOON, None), (None, None)]


def test_bytes_that_are_not_decoded_are_the_value() -> None:
    source = Source("orders", Place("pipeline.toml", 1))
    columns = pa.schema([("value", pa.binary()), ("offset", pa.int64())])
    kept = KeptRecords({("orders", 0, 3): KeptRecord(b"x")})
    names = ("topic", "partition", "offset")
    found = kept.decoded({("orders", 0, 3)}, names, source, SETTINGS, columns)
    assert found.to_pylist() == [{"value": b"x", "offset": 3}]
