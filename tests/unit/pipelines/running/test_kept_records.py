"""Records made anew of the bytes that quarantine has of them."""

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from headrace.lake.quarantine import QUARANTINE_SCHEMA, TOLD_BY, UNREADABLE
from headrace.pipelines.model import PipelineSettings, Place, Source
from headrace.pipelines.running.kept_records import KeptRecord, KeptRecords, decoded

NOON = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
LATER = NOON + dt.timedelta(hours=1)
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


def test_records_of_one_place_are_told_apart_where_the_topic_was_made_again() -> None:
    """Offset 3 was `x` and then `y`, which a batch each refused, the first with two rows of it."""
    rows = quarantine(
        {"offset": 3, "payload": b"x", "quarantined_at": NOON},
        {"offset": 3, "payload": b"x", "quarantined_at": NOON},
        {"offset": 3, "payload": b"y", "quarantined_at": LATER},
        {"offset": 4, "row": "{}", "quarantined_at": NOON},
        {"offset": 4, "topic": "visits", "payload": b"z"},
    )
    kept = KeptRecords.of(rows, {"orders"})
    assert kept.records == {("visits", 0, 4): KeptRecord(b"z")}
    assert kept.apart == {("orders", 0, 3): (KeptRecord(b"x"), KeptRecord(b"y"))}
    assert kept.wanted == {("visits", 0, 4), ("orders", 0, 3)}


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        pytest.param([("dear", NOON, "{}"), ("dear", LATER, "{}")], 2, id="two batches"),
        pytest.param([("dear", NOON, "{}"), ("dear", NOON, "[1]")], 1, id="rows of one record"),
        pytest.param([(UNREADABLE, NOON, "{}"), (UNREADABLE, NOON, "{}")], 2, id="redriven both"),
        pytest.param(
            [
                (UNREADABLE, NOON, f'{{"{TOLD_BY}": "a"}}'),
                (UNREADABLE, LATER, f'{{"{TOLD_BY}": "b"}}'),
            ],
            1,
            id="told by two sources",
        ),
        pytest.param([(UNREADABLE, NOON, "{}"), ("dear", LATER, "{}")], 1, id="read by one source"),
    ],
)
def test_of_the_same_bytes_there_are_as_many_records_as_one_teller_knows_of(
    rows: list[tuple[str, dt.datetime, str]], count: int
) -> None:
    told = [{"rule": rule, "quarantined_at": at, "row": row} for rule, at, row in rows]
    found = quarantine(*({"offset": 3, "payload": b"x", **one} for one in told))
    kept = KeptRecords.of(found, {"orders"})
    assert kept.apart == {("orders", 0, 3): (KeptRecord(b"x"),) * count}


def test_what_is_gone_is_made_of_its_bytes_and_what_is_apart_always() -> None:
    place, other = ("orders", 0, 3), ("visits", 0, 3)
    x, y, z = KeptRecord(b"x"), KeptRecord(b"y"), KeptRecord(b"z")
    kept = KeptRecords({other: x, ("visits", 0, 4): KeptRecord()}, {place: (y, z)})
    assert kept.of_bytes([]) == [(place, y), (place, z)]
    assert kept.of_bytes(kept.records) == [(other, x), (place, y), (place, z)]


def test_bytes_become_the_columns_of_the_source_as_far_as_they_are_known() -> None:
    records = [
        (("orders", 0, 3), KeptRecord(b'{"id": 7}', NOON_MICROS)),
        (("orders", 1, 5), KeptRecord(b"{torn")),
    ]
    found = decoded(records, NAMES, SOURCE, SETTINGS, COLUMNS).to_pylist()
    assert [(row["id"], row["_error"] is None, row["k_offset"]) for row in found] == [
        (7, True, 3),
        (None, False, 5),
    ]
    assert [(row["k_timestamp"], row["k_headers"]) for row in found] == [(NOON, None), (None, None)]


def test_bytes_that_are_not_decoded_are_the_value() -> None:
    source = Source("orders", Place("pipeline.toml", 1))
    columns = pa.schema([("value", pa.binary()), ("offset", pa.int64())])
    records = [(("orders", 0, 3), KeptRecord(b"x"))]
    names = ("topic", "partition", "offset")
    found = decoded(records, names, source, SETTINGS, columns)
    assert found.to_pylist() == [{"value": b"x", "offset": 3}]
