"""The programs of examples/delivery, killed with -9 again and again: what is lost, what is twice.

While records come in, each is started, left to make some progress, and killed at a moment of
chance; the last run may finish. Then every result is counted.
"""

import random
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

import headrace
from headrace import TopicPartition
from tests.clients.librdkafka import create_topic, read_values, watermarks
from tests.processes.nodes import Node, eventually

RECIPES = Path(__file__).resolve().parents[2] / "examples" / "delivery"
PARTITIONS = 3
BATCH = 50
KILLS = 8
SECONDS_MAX = 50

Progress = Callable[[], int]


class Source:
    """A topic that numbered records come into as long as it is open, each into one partition."""

    def __init__(self, node: Node) -> None:
        self.topic = create_topic(node, partitions=PARTITIONS)
        self.count = 0
        self._node = node
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._feed)
        self._thread.start()

    def end(self) -> None:
        self._is_over.set()
        self._thread.join()

    @property
    def values(self) -> list[bytes]:
        return [b"%d" % number for number in range(self.count)]

    def _feed(self) -> None:
        with headrace.Producer({"bootstrap.servers": self._node.address}) as producer:
            while not self._is_over.wait(0.005):
                for _ in range(10):
                    value = b"%d" % self.count
                    producer.send(self.topic, value, partition=self.count % PARTITIONS)
                    self.count += 1


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, flavour: object) -> Iterator[Node]:
    """A node whose groups do not wait for more members before they start."""
    own = Node(
        flavour,  # type: ignore[arg-type]
        tmp_path_factory.mktemp("recipes"),
        {"group.initial.rebalance.delay.ms": "0"},
    )
    own.start()
    yield own
    if own.is_running:
        own.stop()


@pytest.fixture
def source(node: Node) -> Iterator[Source]:
    opened = Source(node)
    yield opened
    opened.end()


def test_at_most_once_repeats_nothing(node: Node, source: Source, tmp_path: Path) -> None:
    """DEL-1: a kill loses at most the records in hand."""
    results = tmp_path / "results.txt"
    recipe = Recipe("at_most_once", node, source, results)
    recipe.kill_often(lambda: lines(results))
    recipe.run_to_the_end(lambda: committed(node, "at-most-once", source))
    found = Counter(results.read_bytes().split())
    lost = source.count - len(found)
    assert (max(found.values()), 0 <= lost <= KILLS * BATCH) == (1, True)


def test_at_least_once_loses_nothing(node: Node, source: Source, tmp_path: Path) -> None:
    """DEL-2: a kill repeats at most the records in hand."""
    results = tmp_path / "results.txt"
    recipe = Recipe("at_least_once", node, source, results)
    recipe.kill_often(lambda: lines(results))
    recipe.run_to_the_end(lambda: committed(node, "at-least-once", source))
    found = Counter(results.read_bytes().split())
    repeated = found.total() - source.count
    assert (set(found), 0 <= repeated <= KILLS * BATCH) == (set(source.values), True)


def test_exactly_once_by_transaction(node: Node, source: Source) -> None:
    """DEL-4, PUL-13, PUL-19: no record is lost or duplicated, over restarts of the producer."""
    target = create_topic(node)
    recipe = Recipe("exactly_once_transaction", node, source, target)
    recipe.kill_often(lambda: watermarks(node, target)[1])
    recipe.run_to_the_end(lambda: committed(node, "exactly-once", source))
    found = Counter(read_values(node, target, isolation_level="read_committed"))
    assert found == Counter(source.values)


def test_exactly_once_by_database(node: Node, source: Source, tmp_path: Path) -> None:
    """DEL-3: no record is lost or duplicated."""
    results = tmp_path / "results.db"
    recipe = Recipe("exactly_once_database", node, source, results)
    recipe.kill_often(lambda: rows(results))
    recipe.run_to_the_end(lambda: rows(results))
    with closing(sqlite3.connect(results)) as database:
        found = Counter(value for (value,) in database.execute("SELECT value FROM results"))
    assert found == Counter(source.values)


def test_an_idempotent_handler_makes_repetitions_harmless(
    node: Node, source: Source, tmp_path: Path
) -> None:
    """DEL-3(b): offsets are committed to Kafka, and the work repeated after a kill adds nothing."""
    results = tmp_path / "results.db"
    recipe = Recipe("idempotent_handler", node, source, results)
    recipe.kill_often(lambda: rows(results))
    recipe.run_to_the_end(lambda: committed(node, "idempotent-handler", source))
    with closing(sqlite3.connect(results)) as database:
        found = Counter(value for (value,) in database.execute("SELECT value FROM results"))
    assert found == Counter(source.values)


class Recipe:
    """One of the programs, with its topic and its output."""

    def __init__(self, name: str, node: Node, source: Source, target: object) -> None:
        program = str(RECIPES / f"{name}.py")
        self.command = [sys.executable, program, node.address, source.topic, str(target)]
        self.source = source
        self.chance = random.Random(name)

    def kill_often(self, progress: Progress) -> None:
        for _ in range(KILLS):
            enough = progress() + self.chance.randint(1, 500)
            self.run_until(lambda: progress() >= enough)  # noqa: B023

    def run_to_the_end(self, done: Progress) -> None:
        self.source.end()
        self.run_until(lambda: done() >= self.source.count)

    def run_until(self, is_enough: Callable[[], bool]) -> None:
        process = subprocess.Popen(self.command)
        try:
            eventually(lambda: is_enough() or process.poll() is not None, seconds=SECONDS_MAX)
            assert process.poll() is None, "the program ended too early"
        finally:
            process.kill()
            process.wait()


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def rows(path: Path) -> int:
    if not path.exists():
        return 0
    with closing(sqlite3.connect(path, timeout=30)) as database:
        try:
            return int(database.execute("SELECT count(*) FROM results").fetchone()[0])
        except sqlite3.OperationalError:  # The tables are not there yet.
            return 0


def committed(node: Node, group: str, source: Source) -> int:
    """The number of records that a group has committed."""
    with headrace.Consumer({"bootstrap.servers": node.address, "group.id": group}) as consumer:
        partitions = [TopicPartition(source.topic, index) for index in range(PARTITIONS)]
        return sum(max(0, partition.offset) for partition in consumer.committed(partitions))


@pytest.mark.parametrize("recipe", sorted(RECIPES.glob("*.py")), ids=lambda path: path.stem)
def test_a_recipe_without_arguments_prints_its_usage(recipe: Path) -> None:
    done = subprocess.run([sys.executable, recipe], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.split()[0]) == (1, "usage:")
