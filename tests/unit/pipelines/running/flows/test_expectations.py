"""Batches parted by what is expected of their rows."""

import datetime as dt
import json
import math
from typing import Any

import pyarrow as pa
import pytest

from headrace.lake.quarantine import QUARANTINE_SCHEMA, UNREADABLE
from headrace.pipelines.model import Expectation, RowRule, Violation
from headrace.pipelines.running.errors import ExpectationFailed
from headrace.pipelines.running.flows.expectations import RowChecks

NOW = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)


def checks(*actions: Violation) -> RowChecks:
    expectations = [
        Expectation(f"rule {number}", RowRule(f"condition {number}"), action)
        for number, action in enumerate(actions)
    ]
    return RowChecks.of(expectations, "staging.orders", "orders")


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({name: pa.array(values) for name, values in columns.items()})


def test_rows_without_faults_are_all_kept_without_the_flags() -> None:
    split = checks(Violation.DROP).split(batch(id=[1, 2], _broken_0=[False, False]), NOW)
    assert split.kept.to_pydict() == {"id": [1, 2]}
    assert (split.refused.num_rows, split.dropped, split.broken) == (0, 0, {})


def test_dropped_rows_are_counted_and_gone() -> None:
    split = checks(Violation.DROP).split(batch(id=[1, 2, 3], _broken_0=[True, False, True]), NOW)
    assert split.kept.to_pydict() == {"id": [2]}
    assert (split.dropped, split.broken) == (2, {"rule 0": 2})


def test_warned_rows_are_kept_and_counted() -> None:
    split = checks(Violation.WARN).split(batch(id=[1], _broken_0=[True]), NOW)
    assert (split.kept.num_rows, split.broken) == (1, {"rule 0": 1})


def test_quarantined_rows_have_their_reason_and_origin() -> None:
    """ARC-4"""
    rows = batch(
        id=[7], topic=["t"], partition=pa.array([3], pa.int32()), offset=[41], _broken_0=[True]
    )
    (refused,) = checks(Violation.QUARANTINE).split(rows, NOW).refused.to_pylist()
    assert refused == {
        "quarantined_at": NOW,
        "table": "staging.orders",
        "flow": "orders",
        "rule": "rule 0",
        "reason": "condition 0",
        "topic": "t",
        "partition": 3,
        "offset": 41,
        "payload": None,
        "row": json.dumps({"id": 7, "topic": "t", "partition": 3, "offset": 41}),
    }


def test_unreadable_rows_are_quarantined_with_their_bytes_under_any_rules() -> None:
    rows = batch(
        id=pa.array([None, 2], pa.int64()),
        _error=["no JSON", None],
        _payload=[b"{torn", None],
        _broken_0=[True, False],
    )
    split = checks(Violation.DROP).split(rows, NOW)
    assert split.kept.to_pydict() == {"id": [2]}
    (refused,) = split.refused.to_pylist()
    assert (refused["rule"], refused["reason"]) == (UNREADABLE, "no JSON")
    assert refused["payload"] == b"{torn"
    assert split.broken == {UNREADABLE: 1}


def test_a_row_that_is_quarantined_is_not_dropped_too() -> None:
    rules = checks(Violation.DROP, Violation.QUARANTINE)
    split = rules.split(batch(id=[1], _broken_0=[True], _broken_1=[True]), NOW)
    assert (split.refused.num_rows, split.dropped, split.kept.num_rows) == (1, 0, 0)


def test_the_first_rule_that_a_row_breaks_is_its_reason() -> None:
    rules = checks(Violation.QUARANTINE, Violation.QUARANTINE)
    split = rules.split(batch(id=[1], _broken_0=[True], _broken_1=[True]), NOW)
    assert split.refused["rule"].to_pylist() == ["rule 0"]
    assert split.broken == {"rule 0": 1, "rule 1": 1}


def test_a_rule_that_fails_refuses_the_whole_batch() -> None:
    with pytest.raises(ExpectationFailed, match=r"2 rows .* 'rule 0'"):
        checks(Violation.FAIL).check_counts({"rule 0": 2})


def test_rows_with_times_bytes_and_numbers_become_json() -> None:
    rows = batch(at=[NOW], raw=[b"\x00\xff"], _broken_0=[True])
    (refused,) = checks(Violation.QUARANTINE).split(rows, NOW).refused.to_pylist()
    assert json.loads(refused["row"]) == {"at": NOW.isoformat(), "raw": "AP8="}


def test_refused_rows_have_the_columns_of_quarantine() -> None:
    split = checks(Violation.QUARANTINE).split(batch(id=[1], _broken_0=[True]), NOW)
    assert split.refused.schema == QUARANTINE_SCHEMA


def test_a_time_beyond_python_s_years_is_quarantined_like_any_other() -> None:
    """ARC-4: the row that an expectation is there to catch."""
    far = pa.array([1_772_366_400_000 * 1_000_000], pa.timestamp("us", "UTC"))
    rows = pa.record_batch({"at": far, "_broken_0": pa.array([True])})
    (refused,) = checks(Violation.QUARANTINE).split(rows, NOW).refused.to_pylist()
    assert json.loads(refused["row"]) == {"at": "+58134-01-21T00:00:00Z"}


def test_numbers_that_json_lacks_are_text_as_in_spark() -> None:
    found = [{"x": [math.nan, 1.5]}, {"x": [math.inf, -math.inf]}]
    rows = batch(inner=found, y=[math.nan, 0.5], _broken_0=[True, True])
    refused = checks(Violation.QUARANTINE).split(rows, NOW).refused.to_pylist()
    assert [json.loads(row["row"], parse_constant=pytest.fail) for row in refused] == [
        {"inner": {"x": ["NaN", 1.5]}, "y": "NaN"},
        {"inner": {"x": ["Infinity", "-Infinity"]}, "y": 0.5},
    ]
