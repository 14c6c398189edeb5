"""Rows that a test gives, as a topic or a table would hold them."""

import datetime as dt

import pyarrow as pa
import pytest

from headrace.pipelines.model import Location, Source
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.testing.given_rows import Row, listed, source_rows, table_rows, with_days

PREFIXED = Source(
    "orders",
    Location("pipeline.toml", 1),
    format="json",
    schema="id BIGINT, timestamp STRING",
    options={"metadataPrefix": "kafka_"},
)
COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("timestamp", pa.string()),
        ("kafka_topic", pa.string()),
        ("kafka_offset", pa.int64()),
        ("kafka_timestamp", pa.timestamp("us", "UTC")),
    ]
)


def test_the_origin_of_a_record_has_the_column_names_of_the_source() -> None:
    """A payload's own `timestamp` was filled with the record's, and `kafka_offset` was null."""
    rows = source_rows(PREFIXED, [{"id": 1}, {"id": 2, "timestamp": "x"}], COLUMNS, 7).to_pylist()
    assert [row["timestamp"] for row in rows] == [None, "x"]
    assert [row["kafka_offset"] for row in rows] == [7, 8]
    assert {row["kafka_topic"] for row in rows} == {"orders"}
    assert None not in [row["kafka_timestamp"] for row in rows]


@pytest.mark.parametrize("rows", ['{"id": 1}', b"payload", {"id": 1}, None, 7])
def test_one_row_is_no_list_of_rows(rows: object) -> None:
    with pytest.raises(PipelineError, match=r"give sources\.orders a list of rows, not"):
        listed("sources.orders", rows)


def test_rows_may_come_from_a_generator() -> None:
    assert listed("raw.orders", (number for number in (1, 2))) == [1, 2]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"id": 2**70}, r"column id is int64, and 1180591620717411303424 does not fit"),
        ({"id": 1, "kafka_timestamp": "2026-03-01"}, r"kafka_timestamp is .*, and '2026-03-01'"),
    ],
)
def test_a_value_of_another_type_than_its_column_is_reported(
    row: dict[str, object], told: str
) -> None:
    with pytest.raises(PipelineError, match=rf"these rows do not fit raw\.orders: .*{told}"):
        table_rows("raw.orders", [{"id": 1}, row], COLUMNS)


def test_days_are_those_of_the_times_in_utc_unless_they_are_given() -> None:
    columns = pa.schema(
        [("timestamp", pa.timestamp("us", "UTC")), ("day", pa.date32()), ("id", pa.int64())]
    )
    late = dt.datetime(2026, 3, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    other = dt.date(2020, 1, 1)
    rows: list[Row] = [{"timestamp": late}, {"timestamp": late, "day": other}, {"id": 1}]
    found = with_days(table_rows("raw.orders", rows, columns))
    assert found["day"].to_pylist() == [dt.date(2026, 2, 28), other, None]
    assert found.schema == columns
