"""Merged views: kappa and lambda come to the truth, at every moment."""

import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headrace.errors import HeadraceError
from headrace.lake.catalog import Lake
from headrace.pipelines.commands import load_all, prepared
from headrace.pipelines.running.flow_batches import FlowBatches
from headrace.pipelines.running.runner import PipelineRunner
from headrace.testing.process import BrokerProcess
from tests.spark.conftest import MakeTopic
from tests.spark.pipeline_folders import Folder, send, toml

SCHEMA = "id LONG, page STRING, bytes LONG"
TABLES = """
CREATE STREAMING TABLE raw.hits AS SELECT id, page, bytes FROM STREAM(sources.events);

CREATE MERGED VIEW refined.pages MERGE (hits SUM, bytes SUM, largest MAX) DEDUPLICATE BY (id) AS
SELECT page, count(*) AS hits, sum(bytes) AS bytes, max(bytes) AS largest
FROM STREAM(raw.hits) GROUP BY page;
"""

STREAMS = int(os.environ.get("HEADRACE_STREAMS", "1"))
"""How many random streams are tried."""


def truth(events: list[dict[str, object]]) -> dict[str, tuple[int, int, int]]:
    """The view by brute force over all that was sent: of each id only once."""
    once = {event["id"]: event for event in events}
    hits: Counter[str] = Counter()
    size: Counter[str] = Counter()
    largest: dict[str, int] = {}
    for event in once.values():
        page, count = str(event["page"]), int(str(event["bytes"]))
        hits[page] += 1
        size[page] += count
        largest[page] = max(count, largest.get(page, 0))
    return {page: (hits[page], size[page], largest[page]) for page in hits}


def events(rng: random.Random, sent: list[dict[str, object]]) -> list[dict[str, object]]:
    """Some new events, and some that were sent before, also long ago."""
    first = len({event["id"] for event in sent})
    fresh: list[dict[str, object]] = [
        {"id": first + n, "page": f"/{rng.randrange(4)}", "bytes": rng.randrange(1, 500)}
        for n in range(rng.randrange(1, 40))
    ]
    again = rng.sample(sent, min(len(sent), rng.randrange(0, 15)))
    mixed = fresh + again + rng.sample(fresh, len(fresh) // 4)
    rng.shuffle(mixed)
    return mixed


def seen(lake: Lake, *, is_lambda: bool) -> dict[str, tuple[int, int, int]]:
    rows = (
        lake.merged_rows("refined.pages") if is_lambda else lake.table("refined.pages").rows()
    ).to_pylist()
    return {row["page"]: (row["hits"], row["bytes"], row["largest"]) for row in rows}


@pytest.mark.parametrize("seed", range(11, 11 + STREAMS))
def test_batch_and_speed_together_are_the_truth_whenever_one_looks(
    seed: int, tmp_path: Path, broker: BrokerProcess, spark: SparkSession, make_topic: MakeTopic
) -> None:
    """ARC-1"""
    rng = random.Random(seed)
    topic = make_topic(partitions=2)
    folder = Folder(tmp_path / "p", broker, spark).write(
        pipeline_toml=toml("hits", topic, SCHEMA, architecture="lambda"), tables_sql=TABLES
    )
    (pipeline,) = load_all([folder.path], folder.overrides)
    runner = PipelineRunner(prepared(spark, pipeline))
    (batch_layer,) = runner.views
    sent: list[dict[str, object]] = []
    for _ in range(5):
        more = events(rng, sent)
        send(broker, topic, more)
        sent += more
        for level in runner.run.preparation.levels():
            runner.flows_once(level, lambda: False)
        assert seen(folder.lake, is_lambda=True) == truth(sent)
        if rng.random() < 0.6:
            batch_layer.view.refresh()
            assert seen(folder.lake, is_lambda=True) == truth(sent)
    batch_layer.view.refresh()
    speed = folder.lake.table("refined.pages__speed").rows()
    assert speed.num_rows == 0
    assert seen(folder.lake, is_lambda=True) == truth(sent)


def test_one_stream_comes_to_the_same_truth(
    tmp_path: Path, broker: BrokerProcess, spark: SparkSession, make_topic: MakeTopic
) -> None:
    """ARC-2"""
    rng = random.Random(5)
    topic = make_topic(partitions=2)
    folder = Folder(tmp_path / "p", broker, spark).write(
        pipeline_toml=toml("hits", topic, SCHEMA, architecture="kappa"), tables_sql=TABLES
    )
    sent: list[dict[str, object]] = []
    for _ in range(2):
        more = events(rng, sent)
        send(broker, topic, more)
        sent += more
        folder.once()
        assert seen(folder.lake, is_lambda=False) == truth(sent)


def test_a_speed_layer_that_looks_before_anything_is_there_remembers_its_keys(
    tmp_path: Path, broker: BrokerProcess, spark: SparkSession, make_topic: MakeTopic
) -> None:
    """ARC-1: its first batch is of what the batch layer has covered."""
    topic = make_topic(partitions=2)
    folder = Folder(tmp_path / "p", broker, spark).write(
        pipeline_toml=toml("early", topic, SCHEMA, architecture="lambda"), tables_sql=TABLES
    )
    (pipeline,) = load_all([folder.path], folder.overrides)
    runner = PipelineRunner(prepared(spark, pipeline))
    (batch_layer,) = runner.views
    batch_layer.view.refresh()
    runner.flows_once(["refined.pages"], lambda: False)
    sent: list[dict[str, object]] = [{"id": n, "page": "/a", "bytes": n} for n in range(5)]
    send(broker, topic, sent)
    for level in runner.run.preparation.levels():
        runner.flows_once(level, lambda: False)
    assert (runner.failures(), seen(folder.lake, is_lambda=True)) == ([], truth(sent))


def test_a_flow_that_fails_behind_its_commit_goes_on_and_still_knows_its_keys(
    tmp_path: Path,
    broker: BrokerProcess,
    spark: SparkSession,
    make_topic: MakeTopic,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The batch comes again and is not written, but what Spark remembers of it must be."""
    topic = make_topic(partitions=2)
    folder = Folder(tmp_path / "p", broker, spark).write(
        pipeline_toml=toml("cut", topic, SCHEMA, architecture="kappa"), tables_sql=TABLES
    )
    failed = fails_once_behind_the_commit(monkeypatch, "refined.pages")
    sent: list[dict[str, object]] = [{"id": n, "page": "/a", "bytes": n} for n in range(5)]
    send(broker, topic, sent)
    folder.once()
    send(broker, topic, [*sent, {"id": 7, "page": "/b", "bytes": 7}])
    folder.once()
    assert failed == [0]
    assert seen(folder.lake, is_lambda=False) == {"/a": (5, 10, 4), "/b": (1, 7, 7)}


def fails_once_behind_the_commit(monkeypatch: pytest.MonkeyPatch, flow: str) -> list[int]:
    """Let a flow fail when its table has a batch and Spark does not know yet; which it was."""
    failed: list[int] = []
    tell = FlowBatches._tell

    def cut(self: FlowBatches, batch: int, *of_it: Any) -> None:
        if self.flow == flow and not failed:
            failed.append(batch)
            raise HeadraceError("the power is gone")
        tell(self, batch, *of_it)

    monkeypatch.setattr(FlowBatches, "_tell", cut)
    return failed
