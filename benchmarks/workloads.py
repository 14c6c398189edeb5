"""The loads, each on a node that runs: what it did, and what that cost the broker.

A figure is always lower-is-better, so that a ratio reads the same everywhere.
"""

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from benchmarks.processes import CpuMeter, settle
from benchmarks.small_requests import idle_connections, produce_on_connections
from tests.clients.librdkafka import (
    SECONDS_MAX,
    admin,
    create_topic,
    delete_topic,
    unique_name,
    watermarks,
)
from tests.processes.nodes import Node, eventually

PARTITIONS = 6
QUIET = {"log_level": 0, "enable.metrics.push": False}
FAST_PRODUCER = {
    **QUIET,
    "linger.ms": 5,
    "batch.size": 1_000_000,
    "batch.num.messages": 100_000,
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": 1_048_576,
}
FAST_CONSUMER = {
    **QUIET,
    "group.id": "benchmark",
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "fetch.wait.max.ms": 100,
    "queued.min.messages": 1_000_000,
    "queued.max.messages.kbytes": 131_072,
    "fetch.queue.backoff.ms": 2,
}
UNACKNOWLEDGED_BYTES_MAX = 64_000_000


class Figure(NamedTuple):
    """One measured number."""

    name: str
    unit: str
    value: float


Workload = Callable[[Node, float], list[Figure]]


def produced(node: Node, seconds: float, *, size: int, acks: int) -> list[Figure]:
    topic = create_topic(node, partitions=PARTITIONS)
    settle(node.pid)
    with CpuMeter(node.pid) as cpu:
        count = feed(node, topic, seconds, size=size, acks=acks)
    kept = sum(watermarks(node, topic, partition)[1] for partition in range(PARTITIONS))
    assert kept == count, f"{count} records were acknowledged and {kept} are there"
    delete_topic(node, topic)
    name = f"produce {size} B records, acks={'all' if acks == -1 else acks}"
    if size < 1_000:
        return [Figure(name, "CPU s per million", cpu.seconds / count * 1e6)]
    return [Figure(name, "CPU s per GB", cpu.seconds / (count * size) * 1e9)]


def feed(node: Node, topic: str, seconds: float, *, size: int, acks: int) -> int:
    """Produce as fast as the client can; how many records, all of them acknowledged."""
    client = Producer({"bootstrap.servers": node.address, "acks": acks, **FAST_PRODUCER})
    messages = [{"value": b"x" * size}] * 500
    count = turn = 0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        if len(client) * size > UNACKNOWLEDGED_BYTES_MAX:
            client.poll(0.002)
            continue
        count += client.produce_batch(topic, messages, partition=turn % PARTITIONS)
        turn += 1
    assert client.flush(SECONDS_MAX) == 0
    return count


def consumed(node: Node, seconds: float, *, size: int) -> list[Figure]:
    topic = create_topic(node, partitions=PARTITIONS)
    count = feed(node, topic, seconds, size=size, acks=1)
    client = Consumer({"bootstrap.servers": node.address, **FAST_CONSUMER})
    settle(node.pid)
    with CpuMeter(node.pid) as cpu:
        client.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
        received = receive(client, count)
    client.close()
    assert received == count, f"{received} of {count} records arrived"
    delete_topic(node, topic)
    return [Figure(f"consume {size} B records", "CPU s per GB", cpu.seconds / (count * size) * 1e9)]


def receive(client: Consumer, count: int) -> int:
    """Take records as they come, up to a number or for a bounded time."""
    received = 0
    end = time.perf_counter() + SECONDS_MAX
    while received < count and time.perf_counter() < end:
        # Waits for a full bunch, so the last one would wait for ever.
        received += len(client.consume(10_000, 0.1))
    return received


def small_requests(node: Node, seconds: float, *, connections: int) -> list[Figure]:
    topic = create_topic(node)
    settle(node.pid)
    with CpuMeter(node.pid) as cpu:
        done = produce_on_connections(node, topic, connections=connections, seconds=seconds)
    delete_topic(node, topic)
    cost = cpu.seconds / done.requests * 1e6
    return [Figure(f"small request, {connections} connections", "CPU µs", cost)]


def one_in_flight(node: Node, seconds: float) -> list[Figure]:
    """Produce one record, wait for its acknowledgement, then the next."""
    topic = create_topic(node)
    client = Producer({"bootstrap.servers": node.address, "acks": 1, "linger.ms": 0, **QUIET})
    took: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.perf_counter()
        client.produce(topic, b"x" * 100, partition=0)
        assert client.flush(SECONDS_MAX) == 0
        took.append((time.perf_counter() - began) * 1e3)
    delete_topic(node, topic)
    steady = sorted(took[100:])
    return [
        Figure("one record in flight, p50", "ms", statistics.median(steady)),
        Figure("one record in flight, p99", "ms", steady[int(len(steady) * 0.99)]),
    ]


def many_partitions(node: Node, _seconds: float) -> list[Figure]:
    """A topic of 1,000 partitions, until every one of them has a leader."""
    topic = unique_name()
    client = admin(node)
    client.list_topics(timeout=SECONDS_MAX)
    began = time.perf_counter()
    client.create_topics([NewTopic(topic, 1_000, 1)], request_timeout=60)[topic].result()
    eventually(lambda: leaders(node, topic) == 1_000, seconds=60)
    took = time.perf_counter() - began
    delete_topic(node, topic)
    return [Figure("topic of 1,000 partitions created", "s", took)]


def leaders(node: Node, topic: str) -> int:
    described = admin(node).list_topics(topic, timeout=SECONDS_MAX).topics[topic]
    return sum(partition.leader >= 0 for partition in described.partitions.values())


def beside_partitions(node: Node, seconds: float, *, count: int) -> list[Figure]:
    """Cost of a small request on a node with many unused partitions."""
    crowd = create_topic(node, partitions=count)
    (figure,) = small_requests(node, seconds, connections=50)
    delete_topic(node, crowd)
    return [figure._replace(name=f"small request beside {count:,} partitions")]


def beside_idle_connections(node: Node, seconds: float, *, count: int) -> list[Figure]:
    """Cost of a small request on a node with many idle connections."""
    with idle_connections(node, count):
        (figure,) = small_requests(node, seconds, connections=50)
    return [figure._replace(name=f"small request beside {count:,} idle connections")]
