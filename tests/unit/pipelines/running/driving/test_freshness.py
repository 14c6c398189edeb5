"""Tables that no rows come for become stale by the clock."""

import logging

import pytest

from headrace.pipelines.model import Expectation, Freshness, Location, StreamingTable, Violation
from headrace.pipelines.running.driving.freshness import FreshnessWatch

START_MS = 1_000_000
MINUTE_MS = 60_000


def watch(on_violation: Violation = Violation.WARN) -> FreshnessWatch:
    fresh = Expectation("fresh", Freshness("at", 60), on_violation)
    table = StreamingTable("trusted.o", Location("o.sql", 1), expectations=(fresh,))
    return FreshnessWatch.of({table.name: table})


def test_a_table_without_new_rows_becomes_stale_and_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    watched = watch()
    newest = {"trusted.o": {"fresh": START_MS}}
    for later_ms in (MINUTE_MS, 2 * MINUTE_MS, 3 * MINUTE_MS):
        watched.check(newest, START_MS + later_ms, START_MS)
    assert watched.stale == {
        "trusted.o": "trusted.o breaks the expectation 'fresh': the newest at is 180 s old"
    }
    assert watched.failed == {}
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_a_table_that_never_had_a_row_is_stale_when_its_time_is_over() -> None:
    watched = watch()
    watched.check({}, START_MS + MINUTE_MS, START_MS)
    assert watched.stale == {}
    watched.check({}, START_MS + MINUTE_MS + 1, START_MS)
    assert "no row with a value of at has arrived yet" in watched.stale["trusted.o"]


def test_new_rows_make_a_table_fresh_again() -> None:
    watched = watch(Violation.FAIL)
    later_ms = START_MS + 2 * MINUTE_MS
    watched.check({}, later_ms, START_MS)
    assert watched.failed == watched.stale != {}
    watched.check({"trusted.o": {"fresh": later_ms}}, later_ms, START_MS)
    assert watched.failed == watched.stale == {}


def test_a_run_has_time_to_catch_up_before_tables_are_stale() -> None:
    watched = watch()
    old = {"trusted.o": {"fresh": START_MS - 10 * MINUTE_MS}}
    watched.check(old, START_MS + 1, START_MS)
    assert watched.stale == {}
    watched.check(old, START_MS + 1, None)
    assert "600 s old" in watched.stale["trusted.o"]
