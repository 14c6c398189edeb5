"""Merged views: kappa and lambda return exact results at every moment."""

import json
import os
import random
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headrace.lake.catalog import MergedViewEntry
from headrace.lake.merged_views import covered_version, merged_rows, reached_version
from headrace.lake.tables import Table
from headrace.pipelines.commands import load_all, prepared
from headrace.pipelines.running.driving.runner import PipelineRunner
from headrace.testing.process import BrokerProcess
from tests.builders.lake_services import ServedLake
from tests.builders.layered_views import (
    COLUMNS,
    INPUT,
    VIEW,
    Record,
    Totals,
    as_totals,
    random_records,
    totals,
)
from tests.spark.conftest import MakeTopic
from tests.spark.crashes import fails_behind_the_commit
from tests.spark.pipeline_folders import WAIT_S, Continuously, Folder, eventually, send, toml

SCHEMA = "id LONG, page STRING, minute LONG, size LONG"
TABLES = """
CREATE STREAMING TABLE raw.hits AS SELECT id, page, minute, size FROM STREAM(sources.events);

CREATE MERGED VIEW refined.pages MERGE (hits SUM, size SUM, largest MAX) DEDUPLICATE BY (id) AS
SELECT page, minute, count(*) AS hits, sum(size) AS size, max(size) AS largest
FROM STREAM(raw.hits) GROUP BY page, minute;
"""

STREAMS = int(os.environ.get("HEADRACE_STREAMS", "1"))
"""The number of concurrent random streams."""
SEAMS = 5
"""The least number of different pairs of the layers, each with rows of both, among the answers."""
POLL_S = 0.05

Answer = tuple[int, int, Totals]
"""The versions of batch and speed layer, and their result."""


class WatchedStream:
    """A lambda pipeline with random records as input, and all answers that readers got."""

    def __init__(self, folder: Folder, topic: str, seed: int) -> None:
        self.folder = folder.write(
            pipeline_toml=toml(
                f"hits-{seed}",
                topic,
                SCHEMA,
                architecture="lambda",
                trigger="100 milliseconds",
                refresh="1 second",
            ),
            tables_sql=TABLES,
        )
        self.topic = topic
        self.rng = random.Random(seed)
        self.sent: list[Record] = []
        self.answers: list[Answer] = []
        self._served = ServedLake(folder.path / "lake")

    @property
    def view(self) -> MergedViewEntry:
        return self.folder.lake.view(VIEW.name)

    def send(self) -> None:
        more = random_records(self.rng, self.sent, 1_000 + len(self.sent))
        send(self.folder.broker, self.topic, (as_event(one) for one in more))
        self.sent += more

    def read(self) -> None:
        """Query the view in the tables and in the serving layer."""
        lake = self.folder.lake
        if VIEW.name not in lake.views():
            return
        now = lake.layers(self.view)
        found = as_totals(merged_rows(self.view, now))
        self.answers.append((now.batch_version, now.speed_version, found))
        self._served.refresh()
        answer = self._served.ask(f"SELECT * FROM {VIEW.name}")
        versions = answer.versions[VIEW.batch], answer.versions[VIEW.speed]
        self.answers.append((*versions, as_totals(answer.rows)))

    def seams(self) -> int:
        """Return the number of different answers with a part of both layers."""
        if not self.answers:
            return 0
        batch, speed = self.layers()
        return sum(
            0 < covered_version(batch, b) < reached_version(speed, INPUT, s)
            for b, s in {(b, s) for b, s, _ in self.answers}
        )

    def layers(self) -> tuple[Table, Table]:
        return self.folder.lake.table(VIEW.batch), self.folder.lake.table(VIEW.speed)

    def check(self) -> None:
        """Compare each answer with brute force over the records that its lineage leads to."""
        batch, speed = self.layers()
        landed = self.folder.lake.table(INPUT)
        records = {place: as_record(value) for place, value in self.folder.records(self.topic)}
        for b, s, found in self.answers:
            reaches = max(covered_version(batch, b), reached_version(speed, INPUT, s))
            places = places_up_to(landed, reaches)
            assert found == totals(records[one] for one in places), (b, s, reaches)
        assert found == totals(self.sent)

    def close(self) -> None:
        self._served.close()


def places_up_to(table: Table, version: int) -> list[tuple[int, int]]:
    """The partitions and offsets of the records that are in a version of the landing table."""
    found = [table.history.commit(number).lineage for number in range(version + 1)]
    return [
        (int(partition), offset)
        for lineage in found
        for partitions in (lineage.offsets.values() if lineage is not None else ())
        for partition, (first, end) in partitions.items()
        for offset in range(first, end)
    ]


def as_event(record: Record) -> dict[str, object]:
    return dict(zip(COLUMNS, record, strict=True))


def as_record(value: bytes) -> Record:
    event = json.loads(value)
    return event["id"], event["page"], event["minute"], event["size"]


def seen(folder: Folder, *, is_lambda: bool) -> Totals:
    lake = folder.lake
    return as_totals(lake.merged_rows(VIEW.name) if is_lambda else lake.table(VIEW.name).rows())


def test_while_both_layers_run_every_answer_counts_each_record_that_it_covers_once(
    tmp_path: Path, broker: BrokerProcess, spark: SparkSession, make_topic: MakeTopic
) -> None:
    """ARC-1: records are late, repeated or have different content; readers query all the time."""
    streams = [
        WatchedStream(Folder(tmp_path / f"p{seed}", broker, spark), make_topic(), seed)
        for seed in range(STREAMS)
    ]
    try:
        with Continuously([one.folder for one in streams]) as running:
            deadline = time.monotonic() + WAIT_S
            while any(one.seams() < SEAMS for one in streams):
                assert time.monotonic() < deadline, [one.seams() for one in streams]
                running.check()
                for one in streams:
                    if len(one.answers) % 8 == 0:
                        one.send()
                    one.read()
                time.sleep(POLL_S)
            eventually(lambda: all(is_through(one) for one in streams), "all records counted")
        for one in streams:
            one.check()
    finally:
        for one in streams:
            one.close()


def is_through(stream: WatchedStream) -> bool:
    """Return True if the last answers cover all sent records, as does the batch layer."""
    stream.read()
    batch, speed = stream.layers()
    is_covered = covered_version(batch) >= reached_version(speed, INPUT)
    return is_covered and all(one[2] == totals(stream.sent) for one in stream.answers[-2:])


def test_a_single_stream_has_the_same_result(
    tmp_path: Path, broker: BrokerProcess, spark: SparkSession, make_topic: MakeTopic
) -> None:
    """ARC-2"""
    rng = random.Random(5)
    topic = make_topic()
    folder = Folder(tmp_path / "p", broker, spark).write(
        pipeline_toml=toml("hits", topic, SCHEMA, architecture="kappa"), tables_sql=TABLES
    )
    sent: list[Record] = []
    for now in range(2):
        more = random_records(rng, sent, now)
        send(broker, topic, (as_event(one) for one in more))
        sent += more
        folder.once()
        assert seen(folder, is_lambda=False) == totals(sent)


def test_a_speed_layer_that_looks_before_anything_is_there_remembers_its_keys(
    tmp_path: Path, broker: BrokerProcess, spark: SparkSession, make_topic: MakeTopic
) -> None:
    """ARC-1: its first batch consists of records that the batch layer has covered."""
    topic = make_topic(partitions=2)
    folder = Folder(tmp_path / "p", broker, spark).write(
        pipeline_toml=toml("early", topic, SCHEMA, architecture="lambda"), tables_sql=TABLES
    )
    (pipeline,) = load_all([folder.path], folder.overrides)
    runner = PipelineRunner(prepared(spark, pipeline))
    (batch_layer,) = runner.views
    batch_layer.view.refresh()
    runner.flows_once(["refined.pages"], lambda: False)
    sent: list[Record] = [(n, "/a", 1, n) for n in range(5)]
    send(broker, topic, map(as_event, sent))
    for level in runner.run.preparation.levels():
        runner.flows_once(level, lambda: False)
    assert (runner.failures(), seen(folder, is_lambda=True)) == ([], totals(sent))


def test_a_new_query_is_computed_also_where_the_files_of_the_seam_are_gone(
    tmp_path: Path, broker: BrokerProcess, spark: SparkSession, make_topic: MakeTopic
) -> None:
    """ARC-1: small files are joined while no rows arrive, and vacuum removes the old ones.

    The first of two records with one id and different content counts, before and after that.
    """
    topic = make_topic()
    folder = Folder(tmp_path / "p", broker, spark).write(
        pipeline_toml=toml("tidied", topic, SCHEMA, architecture="lambda"), tables_sql=TABLES
    )
    for number in (1, 2):
        again: list[Record] = [(one, f"/{number}", number, 100) for one in range(1, number)]
        send(broker, topic, map(as_event, [(number, "/a", 1, number), *again, *again]))
        folder.once()
    assert seen(folder, is_lambda=True) == {("/a", 1): (2, 3, 2)}
    landed = folder.lake.table(INPUT)
    before = {file.path for file in landed.files()}
    folder.lake.optimize(INPUT)
    for path in before - {file.path for file in landed.files()}:
        (landed.place / path).unlink()
    folder.write(tables_sql=TABLES.replace("sum(size) AS size", "sum(10 * size) AS size"))
    folder.once()
    assert seen(folder, is_lambda=True) == {("/a", 1): (2, 30, 2)}


def test_a_flow_that_fails_behind_its_commit_resumes_with_its_keys(
    tmp_path: Path,
    broker: BrokerProcess,
    spark: SparkSession,
    make_topic: MakeTopic,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The repeated batch is not written, but its state in Spark is."""
    topic = make_topic(partitions=2)
    folder = Folder(tmp_path / "p", broker, spark).write(
        pipeline_toml=toml("cut", topic, SCHEMA, architecture="kappa"), tables_sql=TABLES
    )
    failed = fails_behind_the_commit(monkeypatch, {"refined.pages": 1})
    sent: list[Record] = [(n, "/a", 1, n) for n in range(5)]
    send(broker, topic, map(as_event, sent))
    folder.once()
    send(broker, topic, map(as_event, [*sent, (7, "/b", 1, 7)]))
    folder.once()
    assert failed == [("refined.pages", 0)]
    assert seen(folder, is_lambda=False) == {("/a", 1): (5, 10, 4), ("/b", 1): (1, 7, 7)}


PARSED = """
CREATE STREAMING TABLE raw.hits AS SELECT id, page, minute, size FROM STREAM(sources.events);

CREATE TEMPORARY VIEW hits AS SELECT page, minute, size + 1 AS size FROM STREAM(raw.hits);

CREATE MERGED VIEW refined.pages MERGE (hits SUM, size SUM, largest MAX) DEDUPLICATE BY (id) AS
SELECT page, minute, count(*) AS hits, sum(size) AS size, max(size) AS largest
FROM STREAM(hits) GROUP BY page, minute;
"""
"""The mistake is in the query between the raw table and the view."""


def test_a_batch_run_after_a_fix_corrects_the_results_of_both_layers(
    tmp_path: Path, broker: BrokerProcess, spark: SparkSession, make_topic: MakeTopic
) -> None:
    """ARC-1: the batch layer computes from the raw table, including records before the fix."""
    rng, sent, topic = random.Random(6), list[Record](), make_topic()
    folder = Folder(tmp_path / "p", broker, spark).write(
        pipeline_toml=toml("mended", topic, SCHEMA, architecture="lambda"), tables_sql=PARSED
    )

    def send_more() -> None:
        more = random_records(rng, sent, 1_000)
        send(broker, topic, map(as_event, more))
        sent.extend(more)

    def run_streams() -> PipelineRunner:
        (pipeline,) = load_all([folder.path], folder.overrides)
        runner = PipelineRunner(prepared(spark, pipeline))
        for level in runner.run.preparation.levels():
            assert runner.flows_once(level, lambda: False) == set()
        return runner

    send_more()
    folder.once()
    send_more()
    run_streams()
    view = folder.lake.view(VIEW.name)
    batch, speed = folder.lake.table(view.batch), folder.lake.table(view.speed)
    assert 0 < covered_version(batch) < reached_version(speed, INPUT)
    assert seen(folder, is_lambda=True) == totals((*one[:3], one[3] + 1) for one in sent)

    folder.write(tables_sql=PARSED.replace("size + 1 AS size", "size"))
    send_more()
    runner = run_streams()
    assert seen(folder, is_lambda=True) != totals(sent)
    (batch_layer,) = runner.views
    assert batch_layer.view.refresh()
    assert seen(folder, is_lambda=True) == totals(sent)
    send_more()
    run_streams()
    assert seen(folder, is_lambda=True) == totals(sent)
