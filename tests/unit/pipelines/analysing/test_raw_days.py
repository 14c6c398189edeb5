"""Which tables of raw get topic and day as their partitions without a word."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from headrace.pipelines.analysing.raw_days import (
    Columns,
    Types,
    has_default_partitions,
    obstacle,
    record_origins,
)
from tests.builders.declared_pipelines import load_folder

RECORDS = {"value": "binary", "topic": "string", "timestamp": "timestamp"}
DATED = {**RECORDS, "day": "date"}


def of_records(types: Types) -> Columns:
    return Columns(types, record_origins(""))


@pytest.mark.parametrize(
    ("brought", "existing"),
    [
        ([RECORDS], None),
        ([RECORDS, DATED], None),
        ([DATED], ("topic", "day")),
        ([RECORDS], ("topic",)),  # Other existing partitions are rejected as any change is.
    ],
)
def test_a_table_of_records_is_partitioned_by_topic_and_day(
    brought: list[Types], existing: Sequence[str] | None
) -> None:
    """ARC-4"""
    named = {f"f{number}": of_records(types) for number, types in enumerate(brought)}
    assert obstacle(named, {}, existing) is None
    assert obstacle(named, {"day": "date"}, existing) is None


@pytest.mark.parametrize(
    ("types", "reason"),
    [
        ({"timestamp": "timestamp"}, "f selects no topic; select the record's topic"),
        ({"topic": "string"}, "f selects no timestamp"),
        ({**RECORDS, "timestamp": "bigint"}, "f selects timestamp as bigint"),
        ({**RECORDS, "day": "string"}, "f has a column day of its own (string); give that"),
        ({**RECORDS, "Day": "date"}, "f has a column Day of its own (date)"),
    ],
)
def test_one_flow_without_time_keeps_the_table_unpartitioned(types: Types, reason: str) -> None:
    found = obstacle({"fine": of_records(RECORDS), "f": of_records(types)}, {}, None)
    assert found is not None
    assert found.startswith(reason)


@pytest.mark.parametrize("own", ["topic", "timestamp"])
def test_columns_of_a_payload_are_not_taken_for_the_records(own: str) -> None:
    others = {name: known for name, known in record_origins("").items() if name != own}
    found = obstacle({"f": Columns(RECORDS, others)}, {}, None)
    assert found is not None
    assert found.startswith(f"{own} of f comes from the payload or a computation; rename")


def test_a_table_that_was_made_by_other_topics_and_days_stays_so() -> None:
    assert obstacle({"f": Columns(DATED)}, {}, ("topic", "day")) is None


def test_a_declared_day_that_is_no_date_is_left_alone() -> None:
    found = obstacle({"f": of_records(RECORDS)}, {"day": "int"}, None)
    assert found is not None
    assert found.startswith("its schema has a column day of its own (int);")


def test_an_unpartitioned_table_needs_a_replay_to_be_partitioned() -> None:
    found = obstacle({"f": of_records(RECORDS)}, {}, ())
    assert found is not None
    assert "headrace pipelines replay" in found


def test_only_raw_tables_without_partitioning_are_left_open(tmp_path: Path) -> None:
    tables = """
    CREATE STREAMING TABLE raw.open AS SELECT * FROM STREAM(sources.orders);
    CREATE STREAMING TABLE raw.whole PARTITIONED BY () AS SELECT * FROM STREAM(sources.orders);
    CREATE STREAMING TABLE raw.own PARTITIONED BY (topic) AS SELECT * FROM STREAM(sources.orders);
    CREATE STREAMING TABLE staging.o AS SELECT * FROM STREAM(raw.open);
    CREATE MATERIALIZED VIEW refined.o PARTITIONED BY () AS SELECT * FROM staging.o;
    """
    datasets = load_folder(tmp_path, {"a.sql": tables}).datasets
    assert [name for name, one in datasets.items() if has_default_partitions(one)] == ["raw.open"]
