"""Schedules of views: failed ones wait, and ones without new input are checked when due."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headrace.pipelines.commands import load_all, prepared
from headrace.pipelines.running.driving.runner import PipelineRunner
from headrace.pipelines.running.driving.running_view import RunningView
from headrace.pipelines.running.driving.schedules import utc_now
from headrace.pipelines.running.state.reports import Report
from headrace.runtime.clock import SystemClock
from headrace.testing.process import BrokerProcess
from tests.spark.conftest import MakeTopic
from tests.spark.pipeline_folders import Folder, send, toml

SCHEMA = "id LONG"
BROKEN = """
CREATE MATERIALIZED VIEW refined.broken REFRESH EVERY 1 HOURS AS
SELECT 1 div (count(*) - count(*)) AS n FROM sources.events;
"""
COUNTED = """
CREATE STREAMING TABLE raw.numbers AS SELECT id FROM STREAM(sources.events);
CREATE MATERIALIZED VIEW refined.counted REFRESH CRON '0 3 * * *' AS
SELECT count(*) AS n FROM raw.numbers;
"""
WAIT_S = 120.0


@pytest.fixture
def folder(tmp_path: Path, broker: BrokerProcess, spark: SparkSession) -> Folder:
    return Folder(tmp_path / "pipeline", broker, spark)


def runner_of(folder: Folder) -> PipelineRunner:
    (pipeline,) = load_all([folder.path], folder.overrides)
    return PipelineRunner(prepared(folder.spark, pipeline))


def test_a_view_that_has_failed_is_not_computed_again_at_once(
    folder: Folder, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    folder.write(pipeline_toml=toml("broken", topic, SCHEMA), tables_sql=BROKEN)
    send(folder.broker, topic, [{"id": 1}])
    runner = runner_of(folder)
    (view,) = runner.views
    with ThreadPoolExecutor(max_workers=1) as worker:
        runner.tick(worker, worker)
        await_end(view)
        runner.tick(worker, worker)
    assert not is_under_way(view)
    assert view.next_at is not None
    assert view.next_at > utc_now(SystemClock())
    assert "DIVIDE_BY_ZERO" in str(view.failure)


def await_end(view: RunningView) -> None:
    assert view.future is not None
    assert view.next_at is None
    view.future.result(WAIT_S)


def is_under_way(view: RunningView) -> bool:
    return view.future is not None


def test_a_view_with_unchanged_inputs_is_due_by_its_schedule(
    folder: Folder, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    folder.write(pipeline_toml=toml("counted", topic, SCHEMA), tables_sql=COUNTED)
    send(folder.broker, topic, [{"id": 1}])
    folder.once()
    (running,) = runner_of(folder).views
    view, computed = running.view, Report.read(running.view.state.report)
    began = utc_now(SystemClock())
    assert not view.refresh()
    last = view.last_run()
    assert last is not None
    assert last.timestamp() >= began.timestamp() - 0.001
    assert Report.read(view.state.report).last_at_ms == computed.last_at_ms
