"""When views are due."""

import datetime as dt
import random

import pytest

from headrace.pipelines.declaring.intervals import Every, parse_schedule
from headrace.pipelines.running.driving.schedules import Retries, SetBack, Timeline, next_trigger


def at(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)


def test_an_interval_is_due_at_once_and_then_so_long_after_the_last_run() -> None:
    schedule = parse_schedule("5 minutes")
    assert schedule == Every(300)
    timeline = Timeline(schedule)
    assert timeline.next_at(None, at("2026-03-01T12:00")) == at("2026-03-01T12:00")
    assert timeline.next_at(at("2026-03-01T12:00"), at("2026-03-01T12:01")) == at(
        "2026-03-01T12:05"
    )


@pytest.mark.parametrize(
    ("line", "last", "due"),
    [
        ("0 3 * * *", "2026-03-01T03:00", "2026-03-02T03:00"),
        ("*/15 * * * *", "2026-03-01T12:00", "2026-03-01T12:15"),
        ("30 8-10 * * 1-5", "2026-02-27T10:30", "2026-03-02T08:30"),
        ("0 0 1 1 *", "2026-03-01T12:00", "2027-01-01T00:00"),
        ("0 0 29 2 *", "2026-03-01T12:00", "2028-02-29T00:00"),
        ("0 0 29 2 *", "2096-03-01T12:00", "2104-02-29T00:00"),
        ("0 12 13 * 5", "2026-03-01T12:00", "2026-03-06T12:00"),
        ("5,35 * * * 7", "2026-03-01T12:05", "2026-03-01T12:35"),
    ],
)
def test_a_cron_line_is_due_at_the_next_minute_that_it_names(
    line: str, last: str, due: str
) -> None:
    assert Timeline(parse_schedule(line)).next_at(at(last), at(last)) == at(due)


@pytest.mark.parametrize("text", ["5 minutes", "*/5 * * * *"])
def test_a_clock_that_was_set_back_does_not_hold_up_the_next_run(text: str) -> None:
    """The due time is computed repeatedly, and the announced time must be reached."""
    timeline, last = Timeline(parse_schedule(text)), at("2026-03-02T12:00")
    looks = [at("2026-03-01T12:00") + dt.timedelta(minutes=n) for n in range(6)]
    due = [timeline.next_at(last, look) for look in looks]
    assert due == [at("2026-03-01T12:05")] * 6


def test_a_cron_line_that_was_never_followed_is_due_at_its_next_minute() -> None:
    timeline = Timeline(parse_schedule("*/5 * * * *"))
    looks = [at("2026-03-01T12:01") + dt.timedelta(minutes=n) for n in range(5)]
    assert [timeline.next_at(None, look) for look in looks] == [at("2026-03-01T12:05")] * 5


@pytest.mark.parametrize("text", ["5 minutes", "*/5 * * * *"])
def test_runs_follow_elapsed_time_under_clock_jumps(text: str) -> None:
    """A jump ahead causes at most one extra run, a jump back at most one interval of waiting."""
    rng, timeline = random.Random(text), Timeline(parse_schedule(text))
    now, last, runs, jumps = at("2026-03-01T12:00"), None, 0, 0
    minutes = 2_000
    for _ in range(minutes):
        now += dt.timedelta(minutes=1)
        if rng.random() < 0.02:
            now += dt.timedelta(hours=rng.randrange(-72, 72))
            jumps += 1
        if timeline.next_at(last, now) <= now:
            last, runs = now, runs + 1
    assert minutes / 5 - jumps - 1 <= runs <= minutes / 5 + jumps + 1


def test_repeated_failures_wait_longer_each_time_within_bounds() -> None:
    retries, waits, now_s = Retries(), [], 100.0
    for _ in range(2_000):
        retries.record(has_failed=True, now_s=now_s)
        waits.append(retries.not_before - now_s)
        now_s = retries.not_before
    assert waits[:7] == [10, 20, 40, 80, 160, 320, 600]
    assert set(waits[7:]) == {600}


def test_a_failed_view_is_due_after_its_wait_and_never_in_the_past() -> None:
    retries, due, now = Retries(), at("2026-03-01T11:00"), at("2026-03-01T12:00")
    retries.record(has_failed=True, now_s=5.0)
    times = [retries.delayed(due, now, now_s) for now_s in (5.0, 11.0, 15.0, 99.0)]
    assert times == [now + dt.timedelta(seconds=s) for s in (10, 4, 0, 0)]


def test_a_successful_view_is_due_by_its_schedule_alone() -> None:
    retries, due, now = Retries(), at("2026-03-01T12:01"), at("2026-03-01T12:00")
    retries.record(has_failed=True, now_s=5.0)
    retries.record(has_failed=False, now_s=6.0)
    assert (retries, retries.delayed(due, now, 6.0)) == (Retries(), due)


def test_a_clock_that_is_set_back_is_noticed_once() -> None:
    clock = SetBack()
    looks = [(1000.0, 0.0), (1001.0, 1.0), (401.0, 2.0), (402.0, 3.0)]
    assert [clock.is_noticed(*look) for look in looks] == [False, False, True, False]


def test_a_clock_set_ahead_or_slightly_back_is_ignored() -> None:
    clock = SetBack()
    looks = [(1000.0, 0.0), (9000.0, 1.0), (9000.5, 2.5), (9001.0, 3.0)]
    assert not any(clock.is_noticed(*look) for look in looks)
    assert clock.is_noticed(1004.0, 4.0)


@pytest.mark.parametrize(
    ("interval_s", "now", "due"),
    [
        (60, "2026-03-01T12:00:30", "2026-03-01T12:01:00"),
        (60, "2026-03-01T12:01:00", "2026-03-01T12:02:00"),
        (0.25, "2026-03-01T12:00:00.300", "2026-03-01T12:00:00.500"),
        (7 * 86400, "2026-03-01T12:00:00", "2026-03-05T00:00:00"),
    ],
)
def test_a_query_looks_for_rows_at_the_multiples_of_its_trigger(
    interval_s: float, now: str, due: str
) -> None:
    assert next_trigger(interval_s, at(now)) == at(due)


def test_a_query_without_a_trigger_waits_for_no_time() -> None:
    assert next_trigger(0, at("2026-03-01T12:00")) is None
