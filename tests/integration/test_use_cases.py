"""The programs of examples/use_cases, run as users run them, and compared with expected.toml."""

import csv
import json
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from examples.use_cases import commit_log, event_sourcing, producer_exercises, task_queue
from tests.clients.librdkafka import Sent, produce, read, unique_name
from tests.integration.cli.commands import ok
from tests.processes.nodes import Node, eventually
from tests.processes.registries import running_registry

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "use_cases"
EXPECTED = tomllib.loads((FOLDER / "expected.toml").read_text())
PAGE = ROOT / "docs" / "tutorials" / "producer-exercises.md"
SECONDS_MAX = 60


def run(program: str, *arguments: str) -> str:
    """Return the output of a program that succeeds without a warning."""
    done = subprocess.run(
        [sys.executable, FOLDER / program, *arguments],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@contextmanager
def running(program: str, *arguments: str) -> "Iterator[subprocess.Popen[bytes]]":
    """Run a program until the end of the block."""
    process = subprocess.Popen([sys.executable, FOLDER / program, *arguments])
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(SECONDS_MAX)


# Event sourcing


@pytest.fixture(scope="module")
def store(shared_node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("events")
    with running_registry(shared_node.address, folder, "use-cases") as registry:
        topic = unique_name("accounts")
        cluster = ("--bootstrap", shared_node.address, "--registry", registry.url)
        out = run("event_sourcing.py", *cluster, "--topic", topic)
        store = event_sourcing.EventStore(shared_node.address, registry.url, topic)
        yield store, json.loads(out)


def test_the_state_of_past_moments_is_rebuilt_from_events(store: Any) -> None:
    """USE-5: balances, the events read after a snapshot, and the default of an added field."""
    _, found = store
    assert found == EXPECTED["event_sourcing"]


def test_every_past_state_agrees_with_the_account_books(store: Any) -> None:
    """USE-5: after each tenth event, with snapshots and without."""
    events, _ = store
    rows = list(csv.DictReader(event_sourcing.DATA.read_text().splitlines()))
    for count in range(1, len(rows) + 1, 10):
        books: dict[str, int] = {}
        for row in rows[:count]:
            sign = -1 if row["kind"] == "withdrawn" else 1
            books[row["account"]] = books.get(row["account"], 0) + sign * int(row["cents"])
            if row["kind"] == "closed":
                del books[row["account"]]
        moment_ms = event_sourcing.moment_of(rows[count - 1]["at"])
        for with_snapshots in (True, False):
            state = events.state_at(moment_ms, with_snapshots=with_snapshots)
            assert state.balances == books


# Commit log


def table(path: Path) -> list[tuple[Any, ...]]:
    if not path.exists():
        return []
    with closing(sqlite3.connect(path, timeout=30)) as database:
        try:
            return database.execute("SELECT * FROM products ORDER BY product").fetchall()
        except sqlite3.OperationalError:  # The table is not there yet.
            return []


def follow(path: Path, node: Node, topic: str) -> commit_log.Replica:
    """Follow the log to its end, in this process."""
    replica = commit_log.Replica(str(path))
    replica.follow(node.address, topic, lambda: replica.is_at_end(node.address, topic))
    return replica


def test_two_replicas_stay_equal_through_a_crash(node: Node, tmp_path: Path) -> None:
    """USE-6: one replica is killed with -9 amid the changes, and continues."""
    topic = unique_name("products")
    cluster = ("--bootstrap", node.address, "--topic", topic)
    one, two = tmp_path / "one.db", tmp_path / "two.db"
    run("commit_log.py", "create", *cluster)
    with running("commit_log.py", "replicate", str(one), *cluster):
        with running("commit_log.py", "replicate", str(two), *cluster) as crashed:
            writer = threading.Thread(target=commit_log.write, args=(node.address, topic))
            writer.start()
            eventually(lambda: table(two), seconds=SECONDS_MAX)
            crashed.kill()
            writer.join()
        with running("commit_log.py", "replicate", str(two), *cluster):
            wanted = EXPECTED["commit_log"]["rows"]
            eventually(
                lambda: (len(table(one)), table(one) == table(two)),
                expect=lambda found: found == (wanted, True),
                seconds=SECONDS_MAX,
            )
    assert commit_log.Replica(str(one)).summary() == (wanted, EXPECTED["commit_log"]["cents"])


def close_segments(node: Node, topic: str) -> None:
    """Close the segments by deletions of a row that does not exist, ten minutes later."""
    later_ms = int(time.time() * 1000) + 600_000
    for partition in range(2):
        produce(node, topic, [Sent(None, b"p00", timestamp=later_ms)], partition=partition)


def changes(node: Node, topic: str) -> int:
    return sum(len(read(node, topic, partition=partition)) for partition in range(2))


def test_a_lost_replica_is_rebuilt_from_the_compacted_log(node: Node, tmp_path: Path) -> None:
    """USE-6, PUL-2: a topic of its own policy has lost most of its records, and no row."""
    topic, uncompacted = unique_name("products"), unique_name("products")
    settings = {"segment_ms": "60000", "min_cleanable_dirty_ratio": "0.01"}
    commit_log.create(node.address, topic, **settings)
    commit_log.create(node.address, uncompacted, **settings, cleanup_policy="delete")
    for name in (topic, uncompacted):
        commit_log.write(node.address, name)
        close_segments(node, name)
    rows = EXPECTED["commit_log"]["rows"]
    eventually(lambda: changes(node, topic) < 400 - rows, seconds=SECONDS_MAX)
    rebuilt = follow(tmp_path / "rebuilt.db", node, topic)
    assert rebuilt.summary() == (rows, EXPECTED["commit_log"]["cents"])
    assert changes(node, uncompacted) == 402


# Task queue


def sent(path: Path) -> dict[str, int]:
    """Return the number of mails by the attempt that sent them."""
    if not path.exists():
        return {}
    with closing(sqlite3.connect(path, timeout=30)) as database:
        try:
            found = database.execute("SELECT attempt, count(*) FROM sent GROUP BY attempt")
            return {str(attempt): count for attempt, count in found}
        except sqlite3.OperationalError:  # The table is not there yet.
            return {}


@pytest.mark.usefixtures("only_headrace")
def test_workers_send_each_mail_once_with_retries_and_dead_letters(
    node: Node, tmp_path: Path
) -> None:
    """USE-7, PUL-6: two workers, one of which is killed with -9; invalid mails are dead letters."""
    queue = task_queue.Queue(node.address, unique_name("mails"))
    queue.create()
    queue.put()
    results = tmp_path / "sent.db"
    common = ("--bootstrap", node.address, "--name", queue.name)
    with ExitStack() as stack:
        for number in range(len(task_queue.DELAYS_S)):
            stack.enter_context(running("task_queue.py", "delay", "--number", str(number), *common))
        stack.enter_context(running("task_queue.py", "work", str(results), *common))
        with running("task_queue.py", "work", str(results), *common) as killed:
            eventually(lambda: sent(results), seconds=SECONDS_MAX)
            killed.kill()
        wanted = EXPECTED["task_queue"]
        eventually(
            lambda: sent(results), expect=lambda found: found == wanted["sent"], seconds=SECONDS_MAX
        )
        eventually(
            lambda: letters(queue),
            expect=lambda found: found == wanted["letters"],
            seconds=SECONDS_MAX,
        )


def letters(queue: task_queue.Queue) -> list[str]:
    return sorted(
        letter.value().decode() for letter in task_queue.read_all(queue.bootstrap, queue.letters)
    )


@pytest.mark.usefixtures("only_headrace")
def test_the_queue_command_works_on_the_same_topics(node: Node) -> None:
    """USE-7, RMQ-1: statistics of the example's queue, and a task taken by hand."""
    queue = task_queue.Queue(node.address, unique_name("mails"))
    queue.create()
    queue.put()
    taken = ok(node, "queue", "take", queue.name, "-n", "1")
    assert taken.out == "ada@example.org\n"
    assert ok(node, "queue", "stats", queue.name, "--json").document["open"] == 19


# Exercises with a producer


@pytest.fixture(scope="module")
def steps(shared_node: Node) -> dict[str, producer_exercises.Stored]:
    return {step.name: step.stored for step in producer_exercises.steps(shared_node.address)}


def test_batches_follow_from_waiting_and_lingering(steps: Any) -> None:
    """USE-12, PUL-9: a batch per awaited record, or one for all."""
    wanted = EXPECTED["producer_exercises"]["batches"]
    assert {name: steps[name].batches for name in wanted} == wanted


def test_compression_improves_with_the_batch(steps: Any) -> None:
    """USE-12"""
    plain = steps["linger for 5 s"].stored_bytes
    sizes = [steps[f"gzip, batches of {count}"].stored_bytes for count in (1, 10, 100)]
    sizes.append(steps["gzip"].stored_bytes)
    assert sizes == sorted(sizes, reverse=True)
    assert [sizes[0] > plain, sizes[1] < plain / 4, sizes[3] < plain / 20] == [True, True, True]


def test_partitioners_decide_on_the_records_of_partitions(steps: Any) -> None:
    """USE-12, PUL-9"""
    wanted = EXPECTED["producer_exercises"]["partitions"]
    assert {name: list(steps[name].partitions) for name in wanted} == wanted


def test_the_page_shows_what_the_steps_measure(steps: Any) -> None:
    """USE-12: batches as they are, bytes within a tenth."""
    rows = re.findall(r"^\| (.+) \| (\d+) \| (\d+) \|$", PAGE.read_text(), re.MULTILINE)
    assert len(rows) == 10
    for name, batches, size in rows:
        assert steps[name].batches == int(batches)
        assert steps[name].stored_bytes == pytest.approx(int(size), rel=0.1)
    for name, text in re.findall(r"^\| ([a-z ]+) \| ([\d ]+) \|$", PAGE.read_text(), re.MULTILINE):
        assert list(steps[name].partitions) == [int(count) for count in text.split()]
