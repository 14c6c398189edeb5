"""`headrace size` from options, and from the records of a real topic."""

import time

import pytest

from tests.clients.librdkafka import Sent, create_topic, produce
from tests.integration.cli.commands import headrace, ok
from tests.processes.nodes import Node


def produce_at_once(node: Node, topic: str) -> None:
    """Produce records with one timestamp, which is too young for retention."""
    now_ms = int(time.time() * 1000)
    produce(node, topic, [Sent(b"x", timestamp=now_ms) for _ in range(100)])


def test_a_load_is_measured_on_a_topic(node: Node) -> None:
    """OPS-5: rate, record size, retention and replicas of a live topic."""
    now_ms = int(time.time() * 1000)
    topic = create_topic(node, partitions=2, retention_ms="3600000")
    produce(
        node, topic, [Sent(b"x" * 500, timestamp=now_ms - 10 * (1000 - n)) for n in range(1000)]
    )
    found = ok(node, "size", "--from", topic, "--members", "4", "--json").document
    assert found["load"]["records_per_s"] == pytest.approx(100, rel=0.02)
    assert found["load"]["record_bytes"] == 500
    assert found["load"]["retention_h"] == 1
    assert found["load"]["replication_factor"] == 1
    assert found["load"]["consumers"] == 0
    assert found["size"]["partitions"] == 4


def test_options_replace_measured_values(node: Node) -> None:
    topic = create_topic(node)
    produce_at_once(node, topic)
    found = ok(node, "size", "--from", topic, "--rate", "7", "--rf", "3", "--json").document
    assert (found["load"]["records_per_s"], found["load"]["replication_factor"]) == (7, 3)
    assert found["load"]["record_bytes"] == 1


def test_records_of_one_time_need_a_rate(node: Node) -> None:
    topic = create_topic(node)
    produce_at_once(node, topic)
    done = headrace(node, "size", "--from", topic)
    assert done.code == 1
    assert "have one timestamp, so their rate is unknown; give --rate" in done.err


def test_an_empty_topic_needs_a_rate_and_a_size(node: Node) -> None:
    topic = create_topic(node, retention_ms="7200000")
    assert headrace(node, "size", "--from", topic, "--rate", "7").code == 1
    given = ("--rate", "7", "--record-size", "1KB")
    assert ok(node, "size", "--from", topic, *given, "--json").document["load"]["retention_h"] == 2


@pytest.mark.parametrize(
    ("policy", "retention_ms", "reason"),
    [
        ("delete", "-1", "keeps its records for ever; give --retention"),
        ("compact", "7200000", "not limited by time; give --retention"),
    ],
)
def test_a_topic_without_a_limit_of_time_needs_a_retention(
    node: Node, policy: str, retention_ms: str, reason: str
) -> None:
    """OPS-5: disk space follows from retention, so it is never guessed."""
    topic = create_topic(node, cleanup_policy=policy, retention_ms=retention_ms)
    given = ("size", "--from", topic, "--rate", "7", "--record-size", "1KB")
    done = headrace(node, *given)
    assert done.code == 1
    assert reason in done.err
    assert ok(node, *given, "--retention", "3d", "--json").document["load"]["retention_h"] == 72


def test_a_missing_topic_is_an_error(node: Node) -> None:
    done = headrace(node, "size", "--from", "no-such-topic")
    assert done.code == 1
    assert "no-such-topic" in done.err


def test_without_a_rate_the_error_names_the_options(node: Node) -> None:
    done = headrace(node, "size", "--record-size", "1KB")
    assert done.code == 2
    assert "--rate is missing; or measure a topic with --from TOPIC" in done.err
