"""A real Kafka Streams application, exactly once: as a streams group (KIP-1071) and as of old."""

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.clients.librdkafka import (
    SECONDS_MAX,
    admin,
    create_topic,
    produce,
    read,
    unique_name,
    values,
)
from tests.integration.conftest import StartNode
from tests.processes.kafka import TOOL_FLAGS, KafkaRelease
from tests.processes.nodes import Node, eventually

PROGRAM = Path(__file__).parent / "java" / "WordCount.java"


@pytest.fixture(scope="module")
def program(kafka_release: KafkaRelease, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that runs the application, which is compiled once."""
    if shutil.which("javac") is None:
        pytest.skip("no `javac` on the path: needs a JDK")
    classes, libs = tmp_path_factory.mktemp("classes"), f"{kafka_release.libs}/*"
    command = ["javac", *(f"-J{flag}" for flag in TOOL_FLAGS), "-d", str(classes), "-cp", libs]
    subprocess.run([*command, str(PROGRAM)], check=True, timeout=120)
    # Kept classes are of those jars alone, so they come first.
    flags = (*TOOL_FLAGS, *kafka_release.sooner)
    return ["java", *flags, "-cp", f"{libs}:{classes}", PROGRAM.stem]


@contextmanager
def word_count(
    program: Sequence[str],
    node: Node,
    source: str,
    target: str,
    application: str,
    state: Path,
    protocol: str,
) -> Iterator[None]:
    """The application, running in two threads; it stops when its input is closed."""
    properties = [
        f"bootstrap.servers={node.address}",
        f"application.id={application}",
        f"state.dir={state}",
        f"group.protocol={protocol}",
        "processing.guarantee=exactly_once_v2",
        "num.stream.threads=2",
        "commit.interval.ms=100",
        "auto.offset.reset=earliest",
    ]
    if protocol == "classic":  # Such a member does not leave the group, so its successor must wait.
        properties.append("session.timeout.ms=6000")
    with (state.with_suffix(".log")).open("wb") as log:
        running = subprocess.Popen(
            [*program, source, target, *properties], stdin=subprocess.PIPE, stdout=log, stderr=log
        )
        try:
            yield
            assert running.stdin is not None
            running.stdin.close()
            assert running.wait(60) == 0
        finally:
            running.kill()
            running.wait()


def counts(node: Node, topic: str) -> dict[str, int]:
    """The last count of each word that was committed."""
    found = {}
    for message in read(node, topic, isolation_level="read_committed"):
        key, value = message.key(), message.value()
        assert key is not None
        assert value is not None
        found[key.decode()] = int(value)
    return found


@pytest.mark.parametrize("protocol", ["streams", "classic"])
def test_a_word_count_runs_exactly_once_over_a_restart(
    start_node: StartNode, program: Sequence[str], tmp_path: Path, protocol: str
) -> None:
    """ARC-9: DEL-3: tasks, internal topics and transactions of a Java application."""
    node = start_node(
        group_streams_initial_rebalance_delay_ms=0,
        group_streams_heartbeat_interval_ms=300,
        group_streams_min_heartbeat_interval_ms=100,
    )
    source, target = create_topic(node, partitions=3), create_topic(node)
    application = unique_name("application")
    names = (source, target, application, tmp_path / "state", protocol)
    produce(node, source, values("the quick fox", "the dog"), partition=0)
    with word_count(program, node, *names):
        expected = {"the": 2, "quick": 1, "fox": 1, "dog": 1}
        eventually(lambda: counts(node, target) == expected, seconds=90)
        assert (
            f"{application}-counts-changelog" in admin(node).list_topics(timeout=SECONDS_MAX).topics
        )
    node.kill()
    node.start()
    produce(node, source, values("the end"), partition=1)
    with word_count(program, node, *names):
        expected = {"the": 3, "quick": 1, "fox": 1, "dog": 1, "end": 1}
        eventually(lambda: counts(node, target) == expected, seconds=90)
