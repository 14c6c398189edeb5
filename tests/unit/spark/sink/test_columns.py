"""Columns that make records, and the errors for others."""

import datetime

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headrace.spark.sink.columns import columns_of
from headrace.spark.sink.errors import WrongColumns
from headrace.spark.sink.options import SinkOptions

HEADERS = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)


def schema(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


def options(topic: str | None = "out", **given: object) -> SinkOptions:
    return SinkOptions(properties={}, topic=topic, **given)  # type: ignore[arg-type]


def test_text_and_bytes_become_the_bytes_of_keys_and_values() -> None:
    columns = columns_of(schema(key=StringType(), value=BinaryType()), options())
    rows = columns.rows(pa.record_batch({"key": ["é", None], "value": [b"\x00", None]}))
    assert rows.keys == ["é".encode(), None]
    assert rows.values == [b"\x00", None]
    assert rows.is_plain


def test_every_part_of_a_record_has_its_column() -> None:
    columns = columns_of(
        schema(
            value=StringType(),
            topic=StringType(),
            partition=IntegerType(),
            headers=HEADERS,
            timestamp=TimestampType(),
        ),
        options(topic=None),
    )
    at = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    batch = pa.record_batch(
        {
            "value": ["a", "b"],
            "topic": ["x", "y"],
            "partition": pa.array([3, None], pa.int32()),
            "headers": [[{"key": "h", "value": b"1"}], None],
            "timestamp": pa.array([at, None], pa.timestamp("us", tz="UTC")),
        }
    )
    rows = columns.rows(batch)
    assert rows.topics == ["x", "y"]
    assert rows.partitions == [3, -1]
    assert rows.headers == [[("h", b"1")], []]
    assert rows.timestamps_ms == [int(at.timestamp() * 1000), 0]


def test_the_first_moment_of_1970_is_not_taken_for_now() -> None:
    columns = columns_of(schema(value=StringType(), timestamp=TimestampType()), options(topic="x"))
    at = pa.array([0, 999, 1000, None], pa.timestamp("us", tz="UTC"))
    rows = columns.rows(pa.record_batch({"value": ["a"] * 4, "timestamp": at}))
    assert rows.timestamps_ms == [1, 1, 1, 0]


def test_the_option_topic_goes_before_the_column() -> None:
    columns = columns_of(schema(value=StringType(), topic=StringType()), options(topic="out"))
    assert columns.rows(pa.record_batch({"value": ["a"], "topic": ["x"]})).topics is None


def test_columns_added_by_the_source_do_not_prevent_copying_a_topic() -> None:
    columns_of(
        schema(value=BinaryType(), offset=LongType(), timestampType=IntegerType()), options()
    )


@pytest.mark.parametrize(
    ("columns", "topic", "error"),
    [
        ({"key": StringType()}, "out", "no column `value`"),
        ({"value": LongType()}, "out", "`value` is bigint and must be STRING or BINARY"),
        ({"value": StringType(), "key": IntegerType()}, "out", "`key` is int"),
        ({"value": StringType()}, None, "set the option topic, or add a column `topic`"),
        ({"value": StringType(), "extra": LongType()}, "out", "`extra` would not be written"),
        ({"value": StringType(), "partition": LongType()}, "out", "must be INT; cast it"),
        ({"value": StringType(), "headers": StringType()}, "out", "must be ARRAY<STRUCT"),
    ],
)
def test_wrong_columns_are_named(
    columns: dict[str, DataType], topic: str | None, error: str
) -> None:
    with pytest.raises(WrongColumns, match=error):
        columns_of(schema(**columns), options(topic=topic))


def test_a_row_without_a_topic_is_refused() -> None:
    columns = columns_of(schema(value=StringType(), topic=StringType()), options(topic=None))
    with pytest.raises(WrongColumns, match="topic is null"):
        columns.rows(pa.record_batch({"value": ["a", "b"], "topic": ["x", None]}))


def test_json_takes_the_columns_that_have_no_other_part() -> None:
    columns = columns_of(
        schema(key=StringType(), id=LongType(), name=StringType()), options(is_json=True)
    )
    rows = columns.rows(pa.record_batch({"key": ["k"], "id": [7], "name": ["ada"]}))
    assert rows.keys == [b"k"]
    assert rows.values == [b'{"id":7,"name":"ada"}']


def test_json_writes_the_configured_columns() -> None:
    columns = columns_of(
        schema(key=StringType(), id=LongType(), name=StringType()),
        options(is_json=True, value_columns=("key", "id")),
    )
    rows = columns.rows(pa.record_batch({"key": ["k"], "id": [7], "name": ["ada"]}))
    assert rows.values == [b'{"key":"k","id":7}']


def test_json_keeps_a_column_whose_type_does_not_fit_its_name() -> None:
    columns = columns_of(schema(id=LongType(), timestamp=LongType()), options(is_json=True))
    rows = columns.rows(pa.record_batch({"id": [7], "timestamp": [1]}))
    assert rows.timestamps_ms is None
    assert rows.values == [b'{"id":7,"timestamp":1}']


def test_json_keeps_the_time_that_the_record_has_too() -> None:
    columns = columns_of(schema(id=LongType(), timestamp=TimestampType()), options(is_json=True))
    at = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    batch = pa.record_batch({"id": [7], "timestamp": pa.array([at], pa.timestamp("us", tz="UTC"))})
    rows = columns.rows(batch)
    assert rows.timestamps_ms == [int(at.timestamp() * 1000)]
    assert rows.values == [b'{"id":7,"timestamp":"2026-01-01T00:00:00Z"}']


def test_json_of_a_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(WrongColumns, match=r"value\.columns names the unknown column `nmae`"):
        columns_of(schema(name=StringType()), options(is_json=True, value_columns=("nmae",)))
