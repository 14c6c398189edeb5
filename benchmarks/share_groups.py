"""Share consumption: four members of one group, who take records and accept them."""

import threading
import time

from confluent_kafka import ShareConsumer

import headrace
from benchmarks.processes import CpuMeter, settle
from benchmarks.workloads import PARTITIONS, QUIET, Figure, feed
from headrace.client.descriptions import ConfigChange
from tests.clients.librdkafka import create_topic, delete_topic, unique_name
from tests.processes.nodes import Node

MEMBERS = 4
SECONDS_MAX = 60


def shared(node: Node, seconds: float, *, size: int) -> list[Figure]:
    """All records of a topic, from the first one given out to the last one accepted."""
    topic = create_topic(node, partitions=PARTITIONS)
    count = feed(node, topic, seconds / 4, size=size, acks=1)
    group = new_group(node)
    settle(node.pid)
    crew = Crew(node, group, topic, count)
    with CpuMeter(node.pid) as cpu:
        took_s = crew.work()
    delete_topic(node, topic)
    name = f"share group of {MEMBERS} members, {size} B records"
    return [
        Figure(name, "s per million", took_s / count * 1e6),
        Figure(name, "CPU s per million", cpu.seconds / count * 1e6),
    ]


def new_group(node: Node) -> str:
    group = unique_name("share")
    change = ConfigChange(name="share.auto.offset.reset", operation="set", value="earliest")
    with headrace.Admin(node.address) as admin:
        assert admin.configs.alter("group", group, [change]).error is None
    return group


class Crew:
    """Members in threads of one process; the time counts from the first record on."""

    def __init__(self, node: Node, group: str, topic: str, count: int) -> None:
        self._node = node
        self._group = group
        self._topic = topic
        self._count = count
        self._taken = 0
        self._began = 0.0
        self._lock = threading.Lock()
        self._deadline = time.perf_counter() + SECONDS_MAX

    def work(self) -> float:
        threads = [threading.Thread(target=self._take) for _ in range(MEMBERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert self._taken == self._count, f"{self._taken} of {self._count} records arrived"
        return self._ended - self._began

    def _take(self) -> None:
        member = ShareConsumer(
            {"bootstrap.servers": self._node.address, "group.id": self._group, **QUIET}
        )
        member.subscribe([self._topic])
        while self._taken < self._count and time.perf_counter() < self._deadline:
            records = len(member.poll(0.1).records())
            with self._lock:
                if records and not self._began:
                    self._began = time.perf_counter()
                self._taken += records
                if records:
                    self._ended = time.perf_counter()
        member.commit_sync(10)
        member.close()
