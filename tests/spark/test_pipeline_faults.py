"""Faults of pipelines: each ends in exact counts, or in an error with advice."""

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headrace.client.admin import Admin
from headrace.client.descriptions import NewTopic
from headrace.pipelines.commands import drop_generation, replay, status, stop
from headrace.pipelines.running.driving import restarts
from headrace.pipelines.running.errors import FlowsFailed, PipelineRuns
from headrace.pipelines.status import FlowStatus, ViewStatus
from headrace.spark.launching.fork_server import fork_server
from headrace.testing.process import BrokerProcess
from tests.processes.process_trees import descendants
from tests.spark.conftest import MakeTopic
from tests.spark.numbered_pipelines import SCHEMA, TABLES, assert_exact, has_all, numbers
from tests.spark.pipeline_folders import Continuously, Folder, JumpingClock, eventually, send, toml

DAY_NS = 24 * 3_600 * 1_000_000_000
SCHEDULED = """
CREATE MATERIALIZED VIEW refined.counted REFRESH EVERY 1 SECONDS AS
SELECT count(*) AS n FROM raw.numbers;
"""


class Running:
    """A pipeline that runs in a thread of this process."""

    def __init__(self, folder: Folder, topic: str = "numbers") -> None:
        self.folder = folder
        self.topic = topic
        self.sent = 0
        self._run = Continuously([folder])

    @property
    def errors(self) -> list[BaseException]:
        return self._run.errors

    def start(self) -> None:
        self._run.start()

    def end(self) -> None:
        self._run.end()

    def send(self, count: int, timestamp_ms: int = 0) -> None:
        values = numbers(self.sent, self.sent + count)
        send(self.folder.broker, self.topic, values, timestamp_ms)
        self.sent += count

    def wait_until_processed(self) -> None:
        """Wait until all records are processed, or raise the error of the run."""
        eventually(
            lambda: bool(self.errors) or has_all(self.folder, self.sent), f"{self.sent} rows"
        )
        assert self.errors == []
        assert_exact(self.folder, self.sent)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Running]:
    """One continuous run, to which the tests of this module apply one fault after the other."""
    place = tmp_path_factory.mktemp("faults")
    with BrokerProcess(place / "broker", {"group.initial.rebalance.delay.ms": 0}) as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.topics.create([NewTopic(name="numbers", partitions=2)])
        folder = Folder(place / "pipeline", broker, spark).write(
            pipeline_toml=toml("numbers", "numbers", SCHEMA), tables_sql=TABLES
        )
        started = Running(folder)
        started.start()
        yield started
        started.end()


def test_rows_come_through_while_it_runs(running: Running) -> None:
    """ARC-3"""
    running.send(500)
    running.wait_until_processed()
    (stands,) = status([running.folder.path], running.folder.overrides)
    assert (stands.state, stands.mode) == ("running", "continuous")


def test_a_second_run_of_the_same_pipeline_is_rejected(running: Running) -> None:
    with pytest.raises(PipelineRuns, match="pipelines stop"):
        running.folder.once()


def test_a_crashed_broker_loses_and_duplicates_no_records(running: Running) -> None:
    running.send(300)
    running.folder.broker.kill()
    running.folder.broker.start()
    running.send(300)
    running.wait_until_processed()


def test_partitions_that_are_added_are_read(running: Running) -> None:
    with Admin(running.folder.broker.bootstrap_servers) as admin:
        admin.topics.add_partitions("numbers", 5)
    running.send(500)
    running.wait_until_processed()


def test_workers_that_are_killed_are_replaced_and_the_batch_repeated(running: Running) -> None:
    running.send(400)
    killed = 0
    for pid in worker_pids(running.folder.spark):
        with suppress(ProcessLookupError):  # Children go with their parents.
            os.kill(pid, signal.SIGKILL)
            killed += 1
    assert killed
    running.send(400)
    running.wait_until_processed()


def test_a_replay_that_switches_under_load_is_exact(
    running: Running,
) -> None:
    """ARC-2"""
    folder = running.folder
    is_built, errors = threading.Event(), []

    def go_on() -> None:
        """Send records during the replay, and at least once behind the switch."""
        is_last = False
        while not is_last:
            is_last = is_built.wait(0.2)
            try:
                running.send(20)
            except BaseException as error:  # The test reports it.
                errors.append(error)
                return

    sender = threading.Thread(target=go_on)
    sender.start()
    try:
        replay(folder.path, overrides=folder.overrides, spark=folder.spark)
    finally:
        is_built.set()
        sender.join(60)
    assert errors == []
    running.wait_until_processed()
    (stands,) = status([folder.path], folder.overrides)
    assert (stands.state, stands.mode) == ("running", "continuous")
    old = folder.lake.table("raw.numbers", 1)
    assert folder.lake.table("raw.numbers").generation == 2
    running.send(20)  # The run may have written all that came before it saw the switch.
    running.wait_until_processed()
    assert 0 < old.rows().num_rows < running.sent
    dropped = drop_generation(folder.path, 1, overrides=folder.overrides)
    assert set(dropped.tables) >= {"raw.numbers", "refined.parity"}
    running.send(100)
    running.wait_until_processed()


def test_a_pipeline_stops_on_request(running: Running) -> None:
    assert stop([running.folder.path], running.folder.overrides) == ["numbers"]
    (stands,) = status([running.folder.path], running.folder.overrides)
    assert stands.state == "stopped"
    assert stop([running.folder.path], running.folder.overrides) == []


def worker_pids(spark: SparkSession) -> list[int]:
    """The Python processes of the session, daemons and streams included.

    What runs in them was forked by a server; below the JVM are those that have asked it to.
    """
    context, server = spark.sparkContext, fork_server()
    assert context._jvm is not None
    assert server is not None
    jvm = int(context._jvm.java.lang.ProcessHandle.current().pid())
    return sorted({*descendants(jvm), *descendants(server.process.pid)})


def test_tables_and_schedules_stay_exact_under_clock_jumps(
    tmp_path: Path,
    broker: BrokerProcess,
    spark: SparkSession,
    make_topic: MakeTopic,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The clock of the driver jumps, and with it that of the producer of records.

    The clock of the JVM cannot be set for it alone. Its queries are restarted after the clock was
    set back, so that none waits for a past time of day; the ids of their runs show that.
    """
    topic = make_topic(partitions=2)
    folder = Folder(tmp_path / "pipeline", broker, spark).write(
        pipeline_toml=toml("clock", topic, SCHEMA), tables_sql=TABLES + SCHEDULED
    )
    clock, running = JumpingClock(), Running(folder, topic)
    monkeypatch.setattr(time, "time_ns", clock)
    running.start()
    try:
        for days in (0, 3, -6, 2):
            before = query_runs(spark, "clock.")
            clock.ahead_ns += days * DAY_NS
            stamp_ms = min(clock(), clock() - clock.ahead_ns) // 1_000_000
            running.send(100, stamp_ms)
            running.wait_until_processed()
            eventually(partial(is_counted, folder, running.sent), f"{running.sent} rows counted")
            if days < 0:  # A wait for a time of day would take days.
                eventually(partial(are_renewed, spark, before), "queries that are renewed")
        eventually(lambda: is_time_line_told(folder), "the schedule's last and next time")
    finally:
        running.end()
    versions = [commit.version for commit in folder.lake.table("raw.numbers").history.commits()]
    assert versions == sorted(versions, reverse=True)


def query_runs(spark: SparkSession, prefix: str) -> set[str]:
    """Return the ids of the running queries, which differ from those of later ones."""
    return {one.runId for one in spark.streams.active if str(one.name).startswith(prefix)}


def are_renewed(spark: SparkSession, before: set[str]) -> bool:
    return not before & query_runs(spark, "clock.")


def is_time_line_told(folder: Folder) -> bool:
    """Return True if the status has the last and next time of each part of the pipeline."""
    (stands,) = status([folder.path], folder.overrides)
    return stands.state == "running" and all(map(is_timed, stands.parts))


def is_timed(part: FlowStatus | ViewStatus) -> bool:
    if part.last_at is None or part.next_at is None:
        return False
    return part.last_at <= part.next_at and part.last_duration_ms > 0


def is_counted(folder: Folder, count: int) -> bool:
    """Return True if the view that is computed on a schedule has all rows."""
    is_there = "refined.counted" in folder.lake.names()
    return is_there and folder.rows("refined.counted", "n") == [count]


def test_a_topic_that_was_deleted_and_made_again_is_not_read_as_the_old_one(
    tmp_path: Path, broker: BrokerProcess, spark: SparkSession, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    folder = Folder(tmp_path / "pipeline", broker, spark).write(
        pipeline_toml=toml("again", topic, SCHEMA), tables_sql=TABLES
    )
    send(broker, topic, numbers(0, 10))
    folder.once()
    with Admin(broker.bootstrap_servers) as admin:
        admin.topics.delete([topic])
        admin.topics.create([NewTopic(name=topic, partitions=1)])
    send(broker, topic, numbers(100, 150))
    with pytest.raises(FlowsFailed, match=topic):
        folder.once()
    assert_exact(folder, 10)


def test_records_removed_by_retention_are_reported_and_not_skipped(
    tmp_path: Path, broker: BrokerProcess, spark: SparkSession, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    folder = Folder(tmp_path / "pipeline", broker, spark).write(
        pipeline_toml=toml("slow", topic, SCHEMA), tables_sql=TABLES
    )
    send(broker, topic, numbers(0, 10))
    folder.once()
    send(broker, topic, numbers(10, 30))
    with Admin(broker.bootstrap_servers) as admin:
        admin.partitions.delete_records_before(topic, {0: 20})
    with pytest.raises(FlowsFailed, match="failOnDataLoss"):
        folder.once()
    assert_exact(folder, 10)


class SmallDisk:
    """A lake on a disk of its own, with 4 MB."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._fillers = [place / "filler", place / "last of it"]

    def fill_up(self) -> None:
        """Fill the disk completely."""
        for filler, size in zip(self._fillers, (1 << 20, 4096), strict=True):
            with filler.open("wb", buffering=0) as file, suppress(OSError):
                while True:
                    file.write(b"x" * size)

    def make_room(self) -> None:
        for filler in self._fillers:
            filler.unlink()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    lake = tmp_path / "pipeline" / "lake"
    lake.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(lake)]
    if os.geteuid() != 0 or shutil.which("mount") is None or subprocess.run(mount).returncode:
        pytest.skip("a small disk of its own can only be mounted by root")
    try:
        yield SmallDisk(lake)
    finally:
        subprocess.run(["umount", "-l", str(lake)], check=True)


def test_a_flow_continues_exactly_after_a_full_disk(
    tmp_path: Path,
    broker: BrokerProcess,
    spark: SparkSession,
    make_topic: MakeTopic,
    small_disk: SmallDisk,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(restarts, "_FIRST_WAIT_S", 0.1)
    topic = make_topic()
    folder = Folder(tmp_path / "pipeline", broker, spark).write(
        pipeline_toml=toml("cramped", topic, SCHEMA), tables_sql=TABLES
    )
    send(broker, topic, numbers(0, 10))
    folder.once()
    small_disk.fill_up()
    send(broker, topic, numbers(10, 500))
    with pytest.raises(FlowsFailed, match="make room"):
        folder.once()
    small_disk.make_room()
    folder.once()
    assert_exact(folder, 500)


def test_a_full_disk_of_one_pipeline_stops_no_other(
    tmp_path: Path,
    broker: BrokerProcess,
    spark: SparkSession,
    make_topic: MakeTopic,
    small_disk: SmallDisk,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One driver runs both; the flows of one pipeline are retried until the disk has space."""
    monkeypatch.setattr(restarts, "_WAIT_S_MAX", 1.0)
    monkeypatch.setattr(restarts, "ATTEMPTS_MAX", 1_000)
    topic = make_topic()
    cramped, other = folders = [
        Folder(tmp_path / place, broker, spark).write(
            pipeline_toml=toml(name, topic, SCHEMA, trigger="100 milliseconds"), tables_sql=TABLES
        )
        for name, place in (("cramped", "pipeline"), ("other", "other"))
    ]
    send(broker, topic, numbers(0, 10))
    with Continuously(folders) as running:
        eventually(lambda: all(has_all(one, 10) for one in folders), "first numbers in both")
        small_disk.fill_up()
        send(broker, topic, numbers(10, 500))
        eventually(lambda: has_all(other, 500), "all numbers where there is room")
        told = {"pipeline status not written", "flow failed, restart scheduled"}
        eventually(lambda: bool(running.errors) or told <= set(caplog.messages), "both are logged")
        running.check()
        assert not has_all(cramped, 500)
        small_disk.make_room()
        eventually(lambda: has_all(cramped, 500), "all numbers where room was made")
    running.check()
    for folder in folders:
        assert_exact(folder, 500)
