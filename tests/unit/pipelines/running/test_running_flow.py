"""What a query says of itself: how far behind it is, and whether it may be stopped."""

import datetime as dt
import errno
import json
import os
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest

from headrace.pipelines.model import PipelineSettings
from headrace.pipelines.running.reports import Report
from headrace.pipelines.running.restarts import Failure
from headrace.pipelines.running.running_flow import RunningFlow, lags_of


def source(latest: Any, end: Any) -> dict[str, Any]:
    return {"latestOffset": latest, "endOffset": end}


def test_each_partition_is_behind_by_what_was_not_read_of_it() -> None:
    """Sources tell their offsets as objects or as texts; a new partition was not read at all."""
    latest, end = {"orders": {"0": 10, "1": 4}}, {"orders": {"0": 7}}
    progress = {"sources": [source(json.dumps(latest), json.dumps(end))]}
    assert lags_of(progress) == {"orders": {"0": 3, "1": 4}}


def test_the_topics_of_several_sources_are_told_together() -> None:
    progress = {"sources": [source({"a": {"0": 1}}, {"a": {"0": 1}}), source({"b": {"0": 2}}, {})]}
    assert lags_of(progress) == {"a": {"0": 0}, "b": {"0": 2}}


def test_tables_and_what_has_not_begun_are_behind_by_nothing_known() -> None:
    assert lags_of({"sources": [source({"version": 3}, {"version": 2}), source(None, None)]}) == {}


def flow_of(*, is_active: bool = True, progress: Any = None, **status: bool) -> RunningFlow:
    """A flow whose query says this of itself."""
    query = SimpleNamespace(isActive=is_active, lastProgress=progress, status=status)
    return RunningFlow(cast(Any, None), cast(Any, None), cast(Any, query))


@pytest.mark.parametrize(
    ("is_active", "is_triggered", "has_data", "is_busy"),
    [(True, True, True, True), (True, True, False, False), (False, True, True, False)],
)
def test_a_flow_that_plans_its_next_batch_may_be_stopped(
    is_active: bool, is_triggered: bool, has_data: bool, is_busy: bool
) -> None:
    """Spark calls a trigger active also then, which is most of the time of one that is idle."""
    status = {"isTriggerActive": is_triggered, "isDataAvailable": has_data}
    assert flow_of(is_active=is_active, **status).is_busy == is_busy


def test_the_last_batch_is_known_by_its_number() -> None:
    assert flow_of().last_batch == -1
    assert flow_of(progress={"batchId": 3, "sources": []}).last_batch == 3


def test_a_flow_that_finds_no_room_at_its_start_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(flow: object, *, is_once: bool) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/lake/checkpoint")

    monkeypatch.setattr(RunningFlow, "report", lambda flow: Report())
    run, flow = SimpleNamespace(start=start), SimpleNamespace(name="raw.x")
    running = RunningFlow(cast(Any, run), cast(Any, flow))
    running.start(is_once=False)
    assert running.failure is not None
    assert (running.is_over, "make room" in running.failure.text) == (False, True)


NOON = dt.datetime(2026, 3, 1, 12, 0, 30, tzinfo=dt.UTC)


def scheduled(*, is_active: bool, **words: Any) -> RunningFlow:
    """A flow of a pipeline that looks for rows every minute."""
    flow = {"trigger": None, "is_once": False, "realtime": None, **words}
    settings = PipelineSettings(name="shop", trigger="1 minute")
    run = SimpleNamespace(pipeline=SimpleNamespace(settings=settings))
    query = SimpleNamespace(isActive=is_active)
    return RunningFlow(cast(Any, run), cast(Any, SimpleNamespace(**flow)), cast(Any, query))


@pytest.mark.parametrize(
    ("words", "after_s"),
    [
        ({}, 30),
        ({"trigger": "10 seconds"}, 10),
        ({"is_once": True}, None),
        ({"realtime": "5 seconds"}, None),
    ],
)
def test_a_flow_says_when_it_looks_for_rows_again(
    words: dict[str, Any], after_s: int | None
) -> None:
    due = scheduled(is_active=True, **words).next_at(NOON, 0.0)
    assert due == (None if after_s is None else NOON + dt.timedelta(seconds=after_s))


def test_a_flow_that_has_failed_says_when_it_is_started_again() -> None:
    running = scheduled(is_active=False)
    assert running.next_at(NOON, 7.0) is None
    running.failure = Failure("NoRoom", "the disk is full")
    running.restarts.not_before = 1007.0
    assert running.next_at(NOON, 7.0) == NOON + dt.timedelta(seconds=1000)
    assert running.next_at(NOON, 1008.0) == NOON
    running.is_over = True
    assert running.next_at(NOON, 7.0) is None
