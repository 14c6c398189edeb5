"""Filters that Spark pushes down: never a row less than Spark's own filter would leave."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from headrace.protocol.topic_partition import TopicPartition
from headrace.spark.source.filters import pushed
from headrace.spark.source.planning import Range

RANGES = [Range(TopicPartition(topic, index), 0, 100) for topic in ("a", "b") for index in (0, 1)]
OFFSET, PARTITION, TOPIC, TIME = ("offset",), ("partition",), ("topic",), ("timestamp",)


def left(*filters: Filter) -> list[tuple[str, int, int, int]]:
    found = pushed(filters).narrowed(RANGES)
    return [(one.place.topic, one.place.partition, one.first, one.end) for one in found]


@pytest.mark.parametrize(
    ("given", "bounds"),
    [
        (EqualTo(OFFSET, 7), (7, 8)),
        (GreaterThan(OFFSET, 7), (8, 100)),
        (GreaterThanOrEqual(OFFSET, 7), (7, 100)),
        (LessThan(OFFSET, 7), (0, 7)),
        (LessThanOrEqual(OFFSET, 7), (0, 8)),
        (In(OFFSET, (9, 3)), (3, 10)),
        (Not(EqualTo(OFFSET, 7)), (0, 100)),
        (IsNotNull(OFFSET), (0, 100)),
    ],
)
def test_offsets_are_bounded(given: Filter, bounds: tuple[int, int]) -> None:
    assert {(first, end) for _, _, first, end in left(given)} == {bounds}


def test_contradicting_bounds_read_no_rows() -> None:
    assert left(GreaterThan(OFFSET, 50), LessThan(OFFSET, 20)) == []


@pytest.mark.parametrize(
    ("given", "places"),
    [
        (EqualTo(PARTITION, 1), {("a", 1), ("b", 1)}),
        (In(PARTITION, (0, 5)), {("a", 0), ("b", 0)}),
        (Not(EqualTo(PARTITION, 1)), {("a", 0), ("b", 0)}),
        (GreaterThan(PARTITION, 0), {("a", 1), ("b", 1)}),
        (EqualTo(TOPIC, "b"), {("b", 0), ("b", 1)}),
        (Not(In(TOPIC, ("b",))), {("a", 0), ("a", 1)}),
        (StringStartsWith(TOPIC, "x"), {("a", 0), ("a", 1), ("b", 0), ("b", 1)}),
        (Not(StringStartsWith(TOPIC, "a")), {("a", 0), ("a", 1), ("b", 0), ("b", 1)}),
    ],
)
def test_filters_choose_partitions(given: Filter, places: set[tuple[str, int]]) -> None:
    assert {(topic, partition) for topic, partition, _, _ in left(given)} == places


@pytest.mark.parametrize(
    ("given", "earliest_ms"),
    [
        (GreaterThan(TIME, datetime(1970, 1, 1, 0, 0, 1, 500, tzinfo=UTC)), 1000),
        (GreaterThanOrEqual(TIME, datetime(1970, 1, 1, 0, 0, 2)), 2000),
        (EqualTo(TIME, datetime(1970, 1, 1, 0, 0, 3, tzinfo=UTC)), 3000),
        (LessThan(TIME, datetime(1970, 1, 1, 0, 0, 3, tzinfo=UTC)), None),
        (GreaterThan(TIME, "yesterday"), None),
    ],
)
def test_only_the_earliest_time_determines_the_start(given: Any, earliest_ms: int | None) -> None:
    """A later record may carry an earlier time, so the latest time excludes nothing."""
    assert pushed([given]).timestamp_ms_min == earliest_ms


def test_columns_of_the_payload_are_not_record_positions() -> None:
    assert len(list(pushed([EqualTo(PARTITION, 9)], prefix="kafka_").narrowed(RANGES))) == 4
