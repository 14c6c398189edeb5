"""Quotas as clients meet them: throttle times, rates that are kept, and changes at once.

The windows are shorter than by default, so that a burst is over soon.
"""

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer, TopicPartition
from kio.schema.errors import ErrorCode

import headrace
from headrace.cli.usage import command as usage
from tests.builders.record_batches import batch
from tests.clients.librdkafka import Sent, create_topic, quiet, unique_name
from tests.clients.wire import SECOND, Connection, produce_fields
from tests.processes.kafka import KafkaRelease
from tests.processes.nodes import Node, free_port

WINDOWS = {
    f"{prefix}quota_window_{what}": value
    for prefix in ("", "controller_")
    for what, value in (("num", 3), ("size_seconds", 1))
}
BURST_SECONDS = 3
RATE = 1_000_000
RUN_SECONDS = 4
ROOM = 1.5
ANONYMOUS = {"user": "ANONYMOUS"}
ALL_TOPICS = {"topics": None, "include_topic_authorized_operations": False}

SetQuota = Callable[..., None]
StartNode = Callable[..., Node]


@pytest.fixture
def limited(start_node: StartNode) -> Node:
    return start_node(**WINDOWS)


@pytest.fixture
def set_quota(limited: Node) -> Iterator[SetQuota]:
    """Set or remove a quota: `set_quota({"client-id": "app"}, producer_byte_rate=1000)`."""
    with headrace.Admin(limited.address) as admin:

        def set_quota(entity: dict[str, str | None], **values: float | None) -> None:
            admin.quotas.alter(entity, values)

        yield set_quota


class Throttles:
    """The throttle times that the statistics of a client contain, in milliseconds."""

    def __init__(self) -> None:
        self.times: list[int] = []

    @property
    def config(self) -> dict[str, Any]:
        return {"statistics.interval.ms": 100, "stats_cb": self._note}

    def _note(self, text: str) -> None:
        brokers = json.loads(text)["brokers"].values()
        self.times += [one["throttle"]["max"] for one in brokers if one["throttle"]["max"]]


def produce_for(node: Node, topic: str, client_id: str, seconds: float = RUN_SECONDS) -> "Run":
    """Produce as fast as possible for a while."""
    throttles, acknowledged = Throttles(), [0]

    def note(error: object, message: Any) -> None:
        if error is None:
            acknowledged[0] += len(message.value())

    producer = Producer(
        {
            "bootstrap.servers": node.address,
            "client.id": client_id,
            "batch.size": 50_000,
            "queue.buffering.max.kbytes": 4_000,
            **throttles.config,
            **quiet(),
        }
    )
    began = time.monotonic()
    while time.monotonic() < began + seconds:
        try:
            producer.produce(topic, b"v" * 1000, on_delivery=note)
            producer.poll(0)
        except BufferError:
            producer.poll(0.05)
    elapsed = time.monotonic() - began
    producer.purge()
    producer.poll(0)
    return Run(acknowledged[0], elapsed, throttles.times)


class Run:
    """The outcome of a run: its bytes, its length, and the throttle times that the client saw."""

    def __init__(self, size: int, seconds: float, throttles: list[int]) -> None:
        self.size = size
        self.bound = RATE * (seconds + BURST_SECONDS) * ROOM
        self.throttles = throttles


def test_a_producer_is_held_to_its_rate(limited: Node, set_quota: SetQuota) -> None:
    """QUO-1, QUO-2: without logins, too, client ids have quotas; others are not touched."""
    topic = create_topic(limited)
    set_quota({"client-id": "greedy"}, producer_byte_rate=RATE)
    greedy = produce_for(limited, topic, "greedy")
    other = produce_for(limited, topic, "other", seconds=1)
    assert RATE < greedy.size < greedy.bound
    assert greedy.throttles
    assert other.size > greedy.size / RUN_SECONDS
    assert not other.throttles


def test_a_consumer_is_held_to_its_rate(limited: Node, set_quota: SetQuota) -> None:
    """QUO-1, QUO-2(b)."""
    topic = create_topic(limited)
    assert produce_for(limited, topic, "free", seconds=2).size > 12 * RATE
    set_quota(ANONYMOUS, consumer_byte_rate=RATE)
    throttles = Throttles()
    size = 0
    address = {"bootstrap.servers": limited.address, "group.id": topic}
    consumer = Consumer({**address, **throttles.config, **quiet()})
    consumer.assign([TopicPartition(topic, 0, 0)])
    began = time.monotonic()
    while time.monotonic() < began + RUN_SECONDS:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            size += len(message.value() or b"")
    elapsed = time.monotonic() - began
    consumer.close()
    assert RATE < size < RATE * (elapsed + BURST_SECONDS) * ROOM
    assert throttles.times


def test_a_removed_quota_is_out_of_force_at_once(limited: Node, set_quota: SetQuota) -> None:
    """QUO-2."""
    topic = create_topic(limited)
    set_quota(ANONYMOUS, producer_byte_rate=1000)
    with Connection(limited.port) as client:
        fields = produce_fields(topic, batch(Sent(b"v" * 4000)))
        assert client.call("produce", 9, **fields).throttle_time.total_seconds() > 0
    set_quota(ANONYMOUS, producer_byte_rate=None)
    assert not produce_for(limited, topic, "app", seconds=1).throttles


def test_request_time_is_throttled_for_one_window_at_most(
    limited: Node, set_quota: SetQuota
) -> None:
    """QUO-1: whatever the request is, its answer contains the throttle time."""
    set_quota({"client-id": None}, request_percentage=0.000001)
    for name, version, fields in (
        ("metadata", 12, ALL_TOPICS),
        ("list_groups", 3, {}),
        ("describe_cluster", 0, {"include_cluster_authorized_operations": False}),
    ):
        with Connection(limited.port) as client:
            answer = client.call(name, version, **fields)
            assert 0 < answer.throttle_time.total_seconds() <= 1


def test_a_muted_connection_is_served_again(limited: Node, set_quota: SetQuota) -> None:
    topic = create_topic(limited)
    set_quota(ANONYMOUS, producer_byte_rate=1000)
    fields = produce_fields(topic, batch(Sent(b"v" * 4000)))
    with Connection(limited.port) as client:
        first = client.call("produce", 9, **fields)
        client.send("metadata", 12, **ALL_TOPICS)
        assert first.throttle_time.total_seconds() > 0
        assert client.receive("metadata", 12).topics


def test_mutations_beyond_the_quota_are_rejected_or_throttled(
    limited: Node, set_quota: SetQuota
) -> None:
    """QUO-1: KIP-599. Versions without the error are throttled instead."""
    set_quota(ANONYMOUS, controller_mutation_rate=1)
    create(limited, 7, partitions=8)
    rejected = create(limited, 7)
    accepted = create(limited, 5)
    assert rejected.topics[0].error_code == ErrorCode.throttling_quota_exceeded
    assert accepted.topics[0].error_code == ErrorCode.none
    for answer in (rejected, accepted):
        assert answer.throttle_time.total_seconds() > 0


def create(node: Node, version: int, *, partitions: int = 1) -> Any:
    """Create a topic, and return the whole answer."""
    topic = {
        "name": unique_name(),
        "num_partitions": partitions,
        "replication_factor": 1,
        "assignments": (),
        "configs": (),
    }
    with Connection(node.port) as client:
        fields = {"topics": [topic], "timeout": 10 * SECOND, "validate_only": False}
        return client.call("create_topics", version, **fields)


def test_an_address_opens_connections_at_its_rate(limited: Node, set_quota: SetQuota) -> None:
    """QUO-1: KIP-612. Connections beyond the rate are closed unread."""
    set_quota({"ip": None}, connection_creation_rate=1)
    clients = [Connection(limited.port) for _ in range(8)]
    assert 0 < sum(map(is_answered, clients)) < 8


def is_answered(client: Connection) -> bool:
    try:
        client.call("api_versions", 0)
    except (AssertionError, ConnectionError):
        return False
    finally:
        client.socket.close()
    return True


def test_the_java_producer_reports_its_throttle_times(
    kafka_release: KafkaRelease, limited: Node, set_quota: SetQuota
) -> None:
    """QUO-1."""
    topic = create_topic(limited)
    set_quota({"client-id": "perf-producer-client"}, producer_byte_rate=RATE)
    text = kafka_release.run(
        "kafka-producer-perf-test",
        *("--topic", topic, "--num-records", "8000", "--record-size", "1000"),
        *("--throughput", "-1", "--print-metrics"),
        *("--command-property", f"bootstrap.servers={limited.address}"),
    )
    (line,) = (one for one in text.splitlines() if "produce-throttle-time-max" in one)
    assert float(line.rpartition(":")[2]) > 0


@pytest.mark.usefixtures("only_headrace")
def test_usage_and_quotas_are_on_the_metrics_port(start_node: StartNode) -> None:
    """CLD-2(b), QUO-1."""
    port = free_port()
    node = start_node(headrace_metrics_port=port, **WINDOWS)
    topic = create_topic(node)
    with headrace.Admin(node.address) as admin:
        admin.quotas.alter({"client-id": "app"}, {"producer_byte_rate": RATE})
    assert produce_for(node, topic, "app", seconds=1).size
    shown = CliRunner().invoke(usage, ["--metrics", f"127.0.0.1:{port}", "--json"])
    rows = [row for window in json.loads(shown.output) for row in window["rows"]]
    (row,) = (one for one in rows if one["client_id"] == "app")
    assert row["bytes_in"] > RATE > row["bytes_out"] > 0
    assert row["requests"] > 0
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as page:
        text = page.read().decode()
    assert 'headrace_usage_requests_total{user="ANONYMOUS",client_id="app"}' in text
    assert 'kafka_server_produce_byte_rate{user="",client_id="app"}' in text
