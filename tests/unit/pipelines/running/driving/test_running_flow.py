"""The state of a query by its own reports: its lag, and whether it may be stopped."""

import datetime as dt
import errno
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pyarrow as pa
import pytest

from headrace.lake.catalog import Lake
from headrace.pipelines.model import PipelineSettings
from headrace.pipelines.running.driving.restarts import Failure
from headrace.pipelines.running.driving.running_flow import RunningFlow, lags_of
from headrace.pipelines.running.flows.query import FlowQuery
from headrace.pipelines.running.state.reports import Report
from headrace.pipelines.running.tables.run_generations import RunGenerations
from tests.builders.lakes import numbers
from tests.builders.pipeline_runs import Clock


def source(latest: Any, end: Any) -> dict[str, Any]:
    return {"latestOffset": latest, "endOffset": end}


def test_the_lag_of_a_partition_is_its_unread_records() -> None:
    """Sources report offsets as objects or as texts; a new partition is entirely unread."""
    latest, end = {"orders": {"0": 10, "1": 4}}, {"orders": {"0": 7}}
    progress = {"sources": [source(json.dumps(latest), json.dumps(end))]}
    assert lags_of(progress) == {"orders": {"0": 3, "1": 4}}


def test_lags_of_several_sources_are_joined() -> None:
    progress = {"sources": [source({"a": {"0": 1}}, {"a": {"0": 1}}), source({"b": {"0": 2}}, {})]}
    assert lags_of(progress) == {"a": {"0": 0}, "b": {"0": 2}}


def test_tables_and_sources_that_have_not_begun_have_no_lag() -> None:
    assert lags_of({"sources": [source({"version": 3}, {"version": 2}), source(None, None)]}) == {}


def flow_of(*, is_active: bool = True, progress: Any = None, **status: bool) -> RunningFlow:
    """A flow with a query that reports this progress."""
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
    def start(query: object, *, is_once: bool) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/lake/checkpoint")

    monkeypatch.setattr(RunningFlow, "report", lambda flow: Report())
    monkeypatch.setattr(FlowQuery, "start", start)
    run, flow = SimpleNamespace(clock=Clock()), SimpleNamespace(name="raw.x")
    running = RunningFlow(cast(Any, run), cast(Any, flow))
    running.start(is_once=False)
    assert running.failure is not None
    assert (running.is_over, "make room" in running.failure.text) == (False, True)
    assert running.restarted == 1


def test_a_flow_is_behind_by_the_rows_that_its_table_got_since(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    table = lake.create("raw.x", pa.schema([("id", pa.int64()), ("name", pa.string())]))
    read = numbers(table, 1, 2, 3)
    numbers(table, 4, 5, 6, 7, 8)
    end = {"table": table.name, "id": table.table_id, "version": read}
    run = SimpleNamespace(generations=RunGenerations(lake, {}))
    running = flow_of(progress={"sources": [source({"version": 1}, end)]})
    running.run = cast(Any, run)
    assert running.lag() == 5
    end["version"] = table.version
    assert running.lag() == 0
    end["id"] = "that of the generation before"
    assert running.lag() is None


def test_a_restarted_flow_keeps_its_failure_until_it_makes_progress() -> None:
    query = SimpleNamespace(isActive=True, lastProgress=None)
    flow = SimpleNamespace(name="raw.x")
    running = RunningFlow(cast(Any, None), cast(Any, flow), cast(Any, query))
    running.failure = failure = Failure("BrokerUnreachable", "no broker answers")
    running.poll()
    assert running.failure == failure
    query.lastProgress = {"batchId": 0, "sources": []}
    running.poll()
    assert running.failure is None


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
def test_a_flow_returns_the_time_of_its_next_look(
    words: dict[str, Any], after_s: int | None
) -> None:
    due = scheduled(is_active=True, **words).next_at(NOON, 0.0)
    assert due == (None if after_s is None else NOON + dt.timedelta(seconds=after_s))


def test_a_failed_flow_returns_the_time_of_its_restart() -> None:
    running = scheduled(is_active=False)
    assert running.next_at(NOON, 7.0) is None
    running.failure = Failure("NoRoom", "the disk is full")
    running.restarts.not_before = 1007.0
    assert running.next_at(NOON, 7.0) == NOON + dt.timedelta(seconds=1000)
    assert running.next_at(NOON, 1008.0) == NOON
    running.is_over = True
    assert running.next_at(NOON, 7.0) is None
