"""Fixtures: one node that most tests share, and separate nodes for tests that damage them."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.clients.librdkafka import create_topic
from tests.conftest import watch
from tests.processes.nodes import Flavour, Node, flavour_under_test

# Background work comes soon, so that tests of retention and compaction are short.
SOON = {
    "log.initial.task.delay.ms": "100",
    "log.retention.check.interval.ms": "200",
    "log.cleaner.backoff.ms": "200",
    "log.segment.delete.delay.ms": "200",
    "group.initial.rebalance.delay.ms": "0",
}


@pytest.fixture(scope="session")
def flavour() -> Flavour:
    return flavour_under_test()


@pytest.fixture(scope="session")
def shared_node(flavour: Flavour, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    node = Node(flavour, tmp_path_factory.mktemp("shared"), SOON)
    node.start()
    yield node
    if node.is_running:
        node.stop()


@pytest.fixture
def node(shared_node: Node, request: pytest.FixtureRequest) -> Node:
    """A running node that is shared: tests use topics of their own and leave it running."""
    if not shared_node.is_running:
        shared_node.start()
    watch(request, shared_node)
    return shared_node


@pytest.fixture
def topic(node: Node) -> str:
    """A topic of one partition with the default settings."""
    return create_topic(node)


StartNode = Callable[..., Node]


@pytest.fixture
def start_node(
    flavour: Flavour, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[StartNode]:
    """Start a node for one test: `start_node(**settings)` with underscores for dots."""
    nodes: list[Node] = []
    numbers = itertools.count(1)

    def start(**settings: object) -> Node:
        given = {name.replace("_", "."): str(value) for name, value in settings.items()}
        node = Node(flavour, tmp_path / f"node-{next(numbers)}", {**SOON, **given})
        nodes.append(node)
        watch(request, node)
        node.start()
        return node

    yield start
    for node in nodes:
        if node.is_running:
            node.kill()


@pytest.fixture
def only_headrace(flavour: Flavour) -> None:
    """For promises that go beyond Kafka's."""
    if flavour.name != "headrace":
        pytest.skip("Kafka promises less here")
