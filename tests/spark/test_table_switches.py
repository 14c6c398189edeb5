"""A run whose tables are switched continues with the new ones, and with the old after `--back`."""

from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from headrace.pipelines.commands import load_all, prepared, replay, switch_back
from headrace.pipelines.running.driving.driver import with_current_tables
from headrace.pipelines.running.driving.runner import PipelineRunner
from headrace.pipelines.running.flows.inputs import SnapshotReader
from headrace.pipelines.running.views.computed import ComputedView
from headrace.testing.process import BrokerProcess
from tests.spark.conftest import MakeTopic
from tests.spark.pipeline_folders import Folder, eventually, send, toml

SCHEMA = "id LONG"
TABLES = """
CREATE STREAMING TABLE raw.n AS SELECT id FROM STREAM(sources.events);
CREATE MERGED VIEW refined.n MERGE (n SUM) AS
SELECT id % 2 AS odd, count(*) AS n FROM STREAM(raw.n) GROUP BY id % 2;
CREATE MATERIALIZED VIEW refined.total AS SELECT sum(n) AS n FROM refined.n;
"""


class Switched:
    """A lambda pipeline with its current runner; flows run always, views on request."""

    def __init__(self, folder: Folder, topic: str) -> None:
        self.folder = folder
        self.topic = topic
        self.sent = 0
        (pipeline,) = load_all([folder.path], folder.overrides)
        self.runner = PipelineRunner(prepared(folder.spark, pipeline))
        self.runner.begin()

    def send(self, count: int) -> None:
        numbers = range(self.sent, self.sent + count)
        send(self.folder.broker, self.topic, ({"id": number} for number in numbers))
        self.sent += count

    def follow(self) -> None:
        before, self.runner = self.runner, with_current_tables(self.runner)
        assert self.runner is not before

    def wait_until_processed(self) -> None:
        eventually(lambda: self.counted() == self.sent, f"{self.sent} records counted")

    def counted(self) -> int:
        return sum(row["n"] for row in self.folder.lake.merged_rows("refined.n").to_pylist())

    def view(self, name: str) -> ComputedView:
        return next(one.view for one in self.runner.views if one.view.name == name)

    def generation(self) -> int:
        return self.folder.lake.table("refined.n__speed").generation


def test_a_run_follows_its_tables_to_new_ones_and_back_at_any_moment(
    tmp_path: Path,
    broker: BrokerProcess,
    spark: SparkSession,
    make_topic: MakeTopic,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """ARC-2: a replay switches while the batch layer computes and records arrive."""
    topic = make_topic()
    folder = Folder(tmp_path / "pipeline", broker, spark).write(
        pipeline_toml=toml("switched", topic, SCHEMA, architecture="lambda"), tables_sql=TABLES
    )
    switched = Switched(folder, topic)
    try:
        for count in (3, 4):  # Two commits, which the replay makes one of.
            switched.send(count)
            switched.wait_until_processed()
        switched.view("refined.total").refresh()
        begun = switched.view("refined.n")
        monkeypatch.setattr(ComputedView, "_rows", partial(in_the_middle, switched, monkeypatch))
        begun.refresh()
        assert (switched.generation(), switched.counted()) == (2, switched.sent)
        switched.view("refined.total").refresh()
        assert folder.rows("refined.total", "n") == [switched.sent]
        switch_back(folder.path, overrides=folder.overrides)
        switched.follow()
        switched.wait_until_processed()
        assert switched.generation() == 1
        assert switched.runner.failures() == []
    finally:
        switched.runner.end(lambda: True)


def in_the_middle(
    switched: Switched, patch: pytest.MonkeyPatch, reader: SnapshotReader
) -> DataFrame:
    """Replay, follow and receive records after a batch run has chosen its input."""
    patch.undo()
    folder, begun = switched.folder, switched.view("refined.n")
    # The layers of both buildings differ, what they come to does not.
    replay(folder.path, must_be_equal=True, overrides=folder.overrides, spark=folder.spark)
    switched.follow()
    switched.send(2)
    switched.wait_until_processed()
    return begun._rows(reader)
