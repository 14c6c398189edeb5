"""Rows: the stock connector's columns, or the payload's with the origin of the record."""

from typing import Any

import pyarrow as pa
import pytest

from headrace.protocol.topic_partition import TopicPartition
from headrace.spark.decoding.decoder import Decoded
from headrace.spark.side_output import UnreadableRecords
from headrace.spark.source.errors import InvalidOption
from headrace.spark.source.record_columns import RecordColumns, Wanted
from headrace.spark.source.rows import Rows, row_schema

PLACE = TopicPartition("orders", 3)


class Lengths:
    """Decodes a payload to its length; one that is empty is bad."""

    schema = pa.schema([("length", pa.int64())])

    def decode(self, payloads: Any) -> Decoded:
        sizes = [len(one) or None for one in payloads.to_pylist()]
        errors = ["it is empty" if size is None else None for size in sizes]
        columns = pa.RecordBatch.from_arrays([pa.array(sizes, pa.int64())], schema=self.schema)
        return Decoded(columns, pa.array(errors, pa.string()))


def records(*values: bytes) -> RecordColumns:
    count = len(values)
    return RecordColumns(
        rows=count,
        offsets=pa.array(range(count), pa.int64()),
        timestamps=pa.array([0] * count, pa.timestamp("us", tz="UTC")),
        keys=pa.array([None] * count, pa.binary()),
        values=pa.array(values, pa.binary()),
    )


def test_without_a_format_there_are_the_connector_s_columns() -> None:
    expected = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert row_schema().names == expected
    assert row_schema(has_headers=True).names == [*expected, "headers"]


def test_only_requested_columns_are_built_in_the_requested_order() -> None:
    rows = Rows(row_schema(["offset", "value"]))
    assert rows.wanted == Wanted(keys=False, values=True, headers=False)
    batch = rows.batch(PLACE, records(b"a"), is_append_time=False)
    assert batch.to_pylist() == [{"offset": 0, "value": b"a"}]


def test_a_row_has_its_topic_and_partition() -> None:
    batch = Rows(row_schema(["topic", "partition", "timestampType"])).batch(
        PLACE, records(b"a", b"b"), is_append_time=True
    )
    assert batch.to_pylist() == [{"topic": "orders", "partition": 3, "timestampType": 1}] * 2


def test_a_bad_payload_becomes_a_row_with_the_error_and_the_bytes() -> None:
    rows = Rows(row_schema(decoder=Lengths()), Lengths())
    found = rows.batch(PLACE, records(b"abc", b""), is_append_time=False).to_pylist()
    assert [row["length"] for row in found] == [3, None]
    assert [row["_error"] for row in found] == [None, "it is empty"]
    assert [row["_payload"] for row in found] == [None, b""]
    assert found[0]["topic"] == "orders"


def test_all_payloads_are_kept_where_that_is_asked_for() -> None:
    rows = Rows(row_schema(decoder=Lengths()), Lengths(), keeps_payloads=True)
    found = rows.batch(PLACE, records(b"abc", b""), is_append_time=False).to_pylist()
    assert [row["_payload"] for row in found] == [b"abc", b""]


class Shelf:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.offsets: list[int] = []

    def put(self, records: UnreadableRecords) -> None:
        assert records.error.to_pylist() == ["it is empty"] * len(records.payload)
        assert set(records.topic.to_pylist()) == {"orders"}
        self.offsets += records.offset.to_pylist()


def test_a_bad_payload_goes_to_the_side_output_if_there_is_one() -> None:
    """ARC-4: also where the query uses none of the payload's columns."""
    shelf = Shelf()
    rows = Rows(row_schema(["offset"], decoder=Lengths()), Lengths(), side_output=shelf)
    found = rows.batch(PLACE, records(b"abc", b"", b"d"), is_append_time=False)
    assert rows.wanted.values
    assert (found["offset"].to_pylist(), shelf.offsets) == ([0, 2], [1])


def test_a_payload_that_is_not_asked_for_is_not_even_copied() -> None:
    schema = row_schema(["offset"], decoder=Lengths())
    assert not Rows(schema, Lengths()).wanted.values


def test_a_column_of_the_payload_that_is_also_ours_needs_a_prefix() -> None:
    class Offsets(Lengths):
        schema = pa.schema([("offset", pa.int64())])

    with pytest.raises(InvalidOption, match="metadataPrefix"):
        row_schema(decoder=Offsets())
    prefixed = row_schema(decoder=Offsets(), prefix="kafka_")
    assert prefixed.names[:4] == ["offset", "_error", "_payload", "kafka_topic"]


def test_an_unknown_column_is_reported_with_the_nearest_name() -> None:
    with pytest.raises(InvalidOption, match="near it: value"):
        row_schema(["valeu"])
