"""Headrace and Apache Kafka by turns on one data directory."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import watch
from tests.processes.kafka import KafkaRelease
from tests.processes.nodes import Headrace, Kafka, Node

# Neither may tidy up between two looks at the same directory.
PATIENT = {"log.retention.check.interval.ms": "3600000"}


class Pair(NamedTuple):
    """Two brokers that live in the same directory, one at a time."""

    headrace: Node
    kafka: Node


class Everyone(NamedTuple):
    """All nodes of a cluster, for clients."""

    address: str


@pytest.fixture
def pair(
    kafka_release: KafkaRelease, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Pair]:
    nodes = Pair(Node(Headrace(), tmp_path, PATIENT), Node(Kafka(), tmp_path, PATIENT))
    for node in nodes:
        watch(request, node)
    yield nodes
    for node in nodes:
        if node.is_running:
            node.kill()
