"""Kill -9 of everything that takes part in a query, again and again: no row lost, none twice."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from shutil import which

import pytest

from headrace.client.admin import Admin
from headrace.client.descriptions import NewTopic
from headrace.client.partitions import LATEST
from headrace.client.producer import Producer
from headrace.testing.process import BrokerProcess
from tests.clients.committed_records import committed_values
from tests.processes.process_trees import descendants

KILLS = int(os.environ.get("HEADRACE_KILLS", "4"))
PROGRESS_MAX = 2_000
RECORDS = 1_000 + PROGRESS_MAX * KILLS
"""Enough for every kill to meet a query that is under way."""
PROGRESS_S_MAX = 120.0
REST_S_MAX = 150.0


class CopyingQuery:
    """A program that copies a topic; started again after it was killed."""

    def __init__(self, broker: BrokerProcess, directory: Path) -> None:
        self._arguments = [broker.bootstrap_servers, "in", "out", str(directory / "checkpoint")]
        self._log = directory / "query.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.jobs.copying_query", *self._arguments]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    @property
    def result(self) -> int | None:
        assert self._process is not None
        return self._process.poll()

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]

    def kill_everything(self) -> None:
        """Driver, JVM and Python workers."""
        self.kill(lambda _: True)
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def kill(self, is_meant: Callable[[str], bool]) -> None:
        """The processes of the query with a chosen command line."""
        assert self._process is not None
        for pid, command in descendants(self._process.pid).items():
            if is_meant(command):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def kill_all(query: CopyingQuery, _: BrokerProcess) -> None:
    query.kill_everything()


def kill_jvm(query: CopyingQuery, _: BrokerProcess) -> None:
    query.kill(lambda command: "java" in command.split("\0")[0])


def kill_workers(query: CopyingQuery, _: BrokerProcess) -> None:
    """The processes of tasks and streams, and the server that has forked them."""
    names = ("pyspark", "headrace.spark")
    query.kill(
        lambda command: (
            any(name in command for name in names) and "java" not in command.split("\0")[0]
        )
    )


def kill_broker(_: CopyingQuery, broker: BrokerProcess) -> None:
    broker.kill()
    broker.start()


VICTIMS = (kill_all, kill_broker, kill_workers, kill_jvm)


@pytest.mark.timeout(120 + 90 * KILLS)
def test_every_row_is_written_once_for_any_killed_process(
    own_broker: BrokerProcess, tmp_path: Path
) -> None:
    """Exactly once from topic to topic, through crashes of driver, JVM, workers and broker."""
    if which("java") is None:
        pytest.skip("Spark needs a Java runtime")
    fill(own_broker, RECORDS)
    chance = Random(KILLS)
    with running(CopyingQuery(own_broker, tmp_path)) as query:
        for number in range(KILLS):
            goal = written(own_broker) + chance.randrange(500, PROGRESS_MAX)
            await_progress(query, own_broker, goal)
            VICTIMS[number % len(VICTIMS)](query, own_broker)
        await_end(query)
    values = committed_values(own_broker.bootstrap_servers, "out")
    assert sorted(int(value or b"-1") for value in values) == list(range(RECORDS))


def fill(broker: BrokerProcess, count: int) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        admin.topics.create([NewTopic(name=name, partitions=2) for name in ("in", "out")])
    with Producer(broker.bootstrap_servers) as producer:
        for number in range(count):
            producer.send("in", str(number), partition=number % 2)


def written(broker: BrokerProcess) -> int:
    """Return the end of the output, with markers."""
    with Admin(broker.bootstrap_servers) as admin:
        return sum(one.offset for one in admin.partitions.offsets("out", LATEST))


def await_progress(query: CopyingQuery, broker: BrokerProcess, goal: int) -> None:
    """Wait until the output reaches an offset; restart a query that a kill has ended."""
    deadline = time.monotonic() + PROGRESS_S_MAX
    while written(broker) < goal:
        if query.result == 0:
            return
        if query.result is not None:
            query.start()
        assert time.monotonic() < deadline, f"the query does not get on:\n{query.log}"
        time.sleep(0.05)


def await_end(query: CopyingQuery) -> None:
    deadline = time.monotonic() + REST_S_MAX
    while query.result != 0:
        if query.result is not None:
            query.start()
        assert time.monotonic() < deadline, f"the query does not end:\n{query.log}"
        time.sleep(0.1)


@contextmanager
def running(query: CopyingQuery) -> Iterator[CopyingQuery]:
    query.start()
    try:
        yield query
    finally:
        query.kill_everything()
