"""Lengths of time and schedules as people write them."""

import pytest

from headrace.pipelines.declaring.intervals import parse_schedule, schedule_complaint, seconds_of
from headrace.pipelines.problems import PipelineError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1 second", 1),
        ("10 seconds", 10),
        ("5 MINUTES", 300),
        ("INTERVAL '2' hours", 7200),
        ("500 milliseconds", 0.5),
        ("1 day", 86400),
    ],
)
def test_a_length_is_read(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "minutes", "5 parsecs", "-1 second", "5 minutes ago"])
def test_an_invalid_interval_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="write one like 10 seconds"):
        seconds_of(text)


def test_a_schedule_is_a_length_or_a_cron_line() -> None:
    assert schedule_complaint("5 minutes") is None
    assert schedule_complaint("*/15 0-6 * * 1,2") is None
    assert "cron" in (schedule_complaint("every now and then") or "")
    assert "longer" in (schedule_complaint("0 seconds") or "")


@pytest.mark.parametrize("text", ["often", "60 * * * *", "* 25 * * *", "a * * * *", "*/0 * * * *"])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(PipelineError):
        parse_schedule(text)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("99 * * * *", "'99' is not a minute between 0 and 59"),
        ("0 0 30 2 *", "never matches"),
        ("0 0 31 2,4,6,9,11 *", "never matches"),
    ],
)
def test_an_invalid_cron_line_is_reported_before_anything_runs(line: str, why: str) -> None:
    assert why in (schedule_complaint(line) or "")


def test_a_weekday_makes_up_for_an_impossible_day_of_the_month() -> None:
    assert schedule_complaint("0 0 30 2 1") is None
