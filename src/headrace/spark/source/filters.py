"""Offset ranges from Spark's filters, which Spark also applies itself.

Filters on topic and partition, bounds of the offset, and the earliest time limit the ranges. The
latest time does not, because later records may have earlier times.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    Not,
)

from headrace.protocol.topic_partition import TopicPartition
from headrace.spark.source.planning import Range

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Pushed:
    """The partitions and offsets that pass some filters."""

    first: int = 0
    end: int | None = None
    timestamp_ms_min: int | None = None
    topic_tests: tuple[Filter, ...] = ()
    partition_tests: tuple[Filter, ...] = ()

    def takes(self, place: TopicPartition) -> bool:
        """Return whether rows of a partition may pass; unsupported tests pass all rows."""
        results = [_passes(test, place.topic) for test in self.topic_tests]
        results += [_passes(test, place.partition) for test in self.partition_tests]
        return False not in results

    def narrowed(self, ranges: Iterable[Range]) -> Iterator[Range]:
        """Limit ranges to the rows that may pass."""
        for one in ranges:
            end = one.end if self.end is None else min(one.end, self.end)
            first = max(one.first, self.first)
            if first < end and self.takes(one.place):
                yield replace(one, first=first, end=end)


def pushed(filters: Iterable[Filter], prefix: str = "") -> Pushed:
    """Combine the limits of filters that hold together."""
    result = Pushed()
    for given in filters:
        inner = given.child if isinstance(given, Not) else given
        column = ".".join(getattr(inner, "attribute", ()))
        if column == f"{prefix}topic":
            result = replace(result, topic_tests=(*result.topic_tests, given))
        elif column == f"{prefix}partition":
            result = replace(result, partition_tests=(*result.partition_tests, given))
        elif column == f"{prefix}offset" and not isinstance(given, Not):
            result = _by_offset(result, given)
        elif column == f"{prefix}timestamp" and not isinstance(given, Not):
            result = _by_time(result, given)
    return result


def _by_offset(so_far: Pushed, given: Filter) -> Pushed:
    first, end = _offset_bounds(given)
    return replace(
        so_far,
        first=max(so_far.first, first),
        end=end if so_far.end is None or (end is not None and end < so_far.end) else so_far.end,
    )


def _offset_bounds(given: Filter) -> tuple[int, int | None]:
    match given:
        case EqualTo(value=int(value)) | EqualNullSafe(value=int(value)):
            return value, value + 1
        case GreaterThan(value=int(value)):
            return value + 1, None
        case GreaterThanOrEqual(value=int(value)):
            return value, None
        case LessThan(value=int(value)):
            return 0, value
        case LessThanOrEqual(value=int(value)):
            return 0, value + 1
        case In(value=values):
            numbers = [value for value in values if isinstance(value, int)]
            return (min(numbers), max(numbers) + 1) if numbers else (0, 0)
        case _:
            return 0, None


def _by_time(so_far: Pushed, given: Filter) -> Pushed:
    times: list[Any] = []
    match given:
        case EqualTo(value=value) | EqualNullSafe(value=value):
            times = [value]
        case GreaterThan(value=value) | GreaterThanOrEqual(value=value):
            times = [value]
        case In(value=values):
            times = list(values)
    moments = [time for time in times if isinstance(time, datetime)]
    if not moments or len(moments) != len(times):
        return so_far
    earliest_ms = min(map(_milliseconds, moments))
    if so_far.timestamp_ms_min is not None:
        earliest_ms = max(earliest_ms, so_far.timestamp_ms_min)
    return replace(so_far, timestamp_ms_min=earliest_ms)


def _milliseconds(moment: datetime) -> int:
    """Convert a time to milliseconds, rounded down as in records."""
    known = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return math.floor((known - _EPOCH) / timedelta(milliseconds=1))


def _passes(test: Filter, value: Any) -> bool | None:
    """Test a value that is never null; return None for unsupported tests."""
    match test:
        case Not(child=inner):
            result = _passes(inner, value)
            return None if result is None else not result
        case EqualTo(value=wanted) | EqualNullSafe(value=wanted):
            return bool(value == wanted)
        case In(value=wanted):
            return value in wanted
        case GreaterThan(value=wanted):
            return bool(value > wanted)
        case GreaterThanOrEqual(value=wanted):
            return bool(value >= wanted)
        case LessThan(value=wanted):
            return bool(value < wanted)
        case LessThanOrEqual(value=wanted):
            return bool(value <= wanted)
        case _:
            return None
