"""Apache Kafka on the directories, ports and properties of a cluster of Headrace."""

import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from headrace.settings.properties import parse
from headrace.testing.cluster import ClusterProcess
from tests.conftest import watch
from tests.processes.nodes import START_SECONDS_MAX, Kafka, Node, eventually

# The last node waits for a majority that is gone: first to move its leaders, then to leave it.
STOP_SECONDS_MAX = 3


class KafkaTwins:
    """Three nodes of Kafka that live where the nodes of a stopped cluster of Headrace did."""

    def __init__(self, cluster: ClusterProcess, directory: Path) -> None:
        self.address = cluster.bootstrap_servers
        self.nodes = [
            twin(
                node.port, node.data_dir.with_suffix(".properties"), directory / f"kafka-{node.id}"
            )
            for node in cluster.nodes
        ]

    def start(self) -> None:
        start_together(self.nodes)

    def stop(self) -> None:
        """Stop one node, so that its leaders move, and then the last majority together."""
        first, *majority = reversed(self.nodes)
        first.stop()
        stop_together(majority)

    def kill(self) -> None:
        for node in self.nodes:
            if node.is_running:
                node.kill()


def twin(port: int, properties: Path, directory: Path) -> Node:
    """A node of Kafka with the properties of a node of Headrace."""
    node = Node(Kafka(), directory, parse(properties.read_text()))
    node.port = port
    return node


@contextmanager
def watched(request: pytest.FixtureRequest, nodes: Sequence[Node]) -> Iterator[None]:
    """Show the nodes' logs if the test fails, and let none outlive it."""
    for node in nodes:
        watch(request, node)
    try:
        yield
    finally:
        for node in nodes:
            if node.is_running:
                node.kill()


def start_together(nodes: Sequence[Node]) -> None:
    """A node is ready when it has met a majority, so none is waited for before all are begun."""
    seen = [len(node.log) for node in nodes]
    for node in nodes:
        node.launch()
    for node, position in zip(nodes, seen, strict=True):
        eventually(partial(node.is_ready_since, position), seconds=START_SECONDS_MAX)


def stop_together(nodes: Sequence[Node]) -> None:
    for node in nodes:
        assert node.process is not None
        node.process.send_signal(signal.SIGTERM)
    for node in nodes:
        assert node.process is not None
        try:
            node.process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            node.kill()
