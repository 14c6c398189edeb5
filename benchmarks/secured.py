"""The cost of a login and of 10,000 rules, against an open node: produce and small requests.

`python -m benchmarks.secured` runs both nodes, and alternates between them. The CPU time is that of
the broker's process; clients run in this one.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.processes import CpuMeter, settle
from headrace.client.admin import Admin
from headrace.client.descriptions import NewTopic
from headrace.security.acls import AclBinding, Operation, PatternType, Permission, ResourceType
from tests.processes.nodes import Headrace, Node
from tests.processes.sasl_nodes import PLAIN_MODULE, SaslNode

TOPIC = "measured"
USER, PASSWORD = "ada", "benchmark"
RULES = 10_000
SIZE = 1_000
SECONDS_MAX = 60
_RULES_PER_REQUEST = 500

SECURED = {
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl.plain.sasl.jaas.config": (
        f'{PLAIN_MODULE} required user_{USER}="{PASSWORD}";'
    ),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}

Client = Mapping[str, Any]


def rule(kind: ResourceType, name: str, operation: Operation, principal: str) -> AclBinding:
    return AclBinding(kind, name, PatternType.LITERAL, principal, "*", operation, Permission.ALLOW)


def add_rules(node: Node) -> None:
    """Add the rules of the client among thousands of others."""
    client = f"User:{USER}"
    rules = [
        rule(ResourceType.TOPIC, TOPIC, Operation.WRITE, client),
        rule(ResourceType.TOPIC, TOPIC, Operation.READ, client),
        rule(ResourceType.GROUP, "readers", Operation.READ, client),
    ]
    rules += [
        rule(ResourceType.TOPIC, f"topic-{number}", Operation.READ, f"User:user-{number % 500}")
        for number in range(RULES - len(rules))
    ]
    with Admin(node.address) as admin:
        for start in range(0, len(rules), _RULES_PER_REQUEST):
            admin.acls.create(rules[start : start + _RULES_PER_REQUEST])


def produce(pid: int, client: Client, seconds: float) -> float:
    """Return the CPU seconds per gigabyte of records of 1 KB."""
    producer = Producer({**client, "acks": 1, "linger.ms": 5})
    value, count = b"x" * SIZE, 0
    with CpuMeter(pid) as cpu:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            try:
                for _ in range(500):
                    producer.produce(TOPIC, value, partition=0)
                    count += 1
            except BufferError:
                producer.poll(0.01)
            producer.poll(0)
        assert producer.flush(SECONDS_MAX) == 0
    return cpu.seconds / (count * SIZE) * 1e9


def produce_singly(pid: int, client: Client, seconds: float) -> float:
    """Return the CPU microseconds of a request with one record."""
    producer = Producer({**client, "acks": 1, "linger.ms": 0, "batch.num.messages": 1})
    count = 0
    with CpuMeter(pid) as cpu:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            for _ in range(200):
                producer.produce(TOPIC, b"x" * 100, partition=0)
            count += 200
            assert producer.flush(SECONDS_MAX) == 0
    return cpu.seconds / count * 1e6


def commit(pid: int, client: Client, seconds: float) -> float:
    """Return the CPU microseconds of a commit of an offset."""
    with Consumer({**client, "group.id": "readers", "enable.auto.commit": False}) as consumer:
        offsets = [TopicPartition(TOPIC, 0, 1)]
        consumer.commit(offsets=offsets, asynchronous=False)
        settle(pid)
        count = 0
        with CpuMeter(pid) as cpu:
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                consumer.commit(offsets=offsets, asynchronous=False)
                count += 1
        return cpu.seconds / count * 1e6


ROWS: dict[str, Callable[[int, Client, float], float]] = {
    "produce 1 KB, CPU s per GB": produce,
    "produce one record, CPU us": produce_singly,
    "commit an offset, CPU us": commit,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        opened = Node(Headrace(), Path(directory, "open"), {})
        secured = SaslNode(Path(directory, "secured"), SECURED)
        opened.start()
        secured.start()
        try:
            add_rules(secured)
            clients: dict[str, tuple[Node, Client]] = {
                "open": (opened, {"bootstrap.servers": opened.address}),
                "secured": (
                    secured,
                    secured.client("PLAIN", sasl_username=USER, sasl_password=PASSWORD),
                ),
            }
            for node, _ in clients.values():
                with Admin(node.address) as admin:
                    admin.topics.create([NewTopic(name=TOPIC, partitions=1)])
            for name, row in ROWS.items():
                found: dict[str, list[float]] = {kind: [] for kind in clients}
                for number in range(options.rounds):
                    # The order alternates, because each run leaves work to the disk.
                    turns = list(clients.items())[:: 1 if number % 2 else -1]
                    for kind, (node, client) in turns:
                        settle(node.pid)
                        found[kind].append(row(node.pid, client, options.seconds))
                medians = {kind: statistics.median(values) for kind, values in found.items()}
                ratio = medians["secured"] / medians["open"]
                print(
                    f"{name:30} open {medians['open']:8.2f}  secured {medians['secured']:8.2f}"
                    f"  ratio {ratio:.3f}",
                    flush=True,
                )
        finally:
            opened.stop()
            secured.stop()


if __name__ == "__main__":
    main()
