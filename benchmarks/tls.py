"""The cost of TLS on the data port: produce, consume and new connections.

`python -m benchmarks.tls` measures Headrace, and `--kafka` Apache Kafka beside it. The CPU time is
that of the broker's process; clients run in this one.
"""

import argparse
import socket
import ssl
import tempfile
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.processes import CpuMeter, settle
from tests.clients.wire import encode_request
from tests.processes.nodes import HOST, Flavour, Headrace, Kafka
from tests.processes.tls_nodes import TlsNode

TOPIC = "measured"
PARTITIONS = 3
SIZE = 1_000
SECONDS_MAX = 60
CONNECTIONS = 300


def produce(node: TlsNode, seconds: float) -> tuple[int, float]:
    """Return the number of records, and the CPU seconds per gigabyte."""
    client = Producer({**node.librdkafka(), "acks": 1, "linger.ms": 5})
    value = b"x" * SIZE
    count = 0
    with CpuMeter(node.pid) as cpu:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            try:
                for _ in range(500):
                    client.produce(TOPIC, value, partition=count % PARTITIONS)
                    count += 1
            except BufferError:
                client.poll(0.01)
            client.poll(0)
        assert client.flush(SECONDS_MAX) == 0
    return count, cpu.seconds / (count * SIZE) * 1e9


def consume(node: TlsNode, count: int) -> float:
    """Return the CPU seconds per gigabyte."""
    client = Consumer({**node.librdkafka(), "group.id": "readers", "enable.auto.commit": False})
    settle(node.pid)
    with CpuMeter(node.pid) as cpu:
        client.assign([TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)])
        received, end = 0, time.perf_counter() + SECONDS_MAX
        while received < count and time.perf_counter() < end:
            received += len(client.consume(10_000, 0.1))
    client.close()
    assert received >= count, f"{received} of {count} records arrived"
    return cpu.seconds / (count * SIZE) * 1e9


def connect(node: TlsNode, count: int) -> float:
    """Return the number of connections, with one request on each, per CPU second."""
    context = ssl.create_default_context(cafile=str(node.trusted))
    body = encode_request("api_versions", 0)
    frame = len(body).to_bytes(4) + body
    settle(node.pid)
    with CpuMeter(node.pid) as cpu:
        for _ in range(count):
            plain = socket.create_connection((HOST, node.port))
            with context.wrap_socket(plain, server_hostname=HOST) as secured:
                secured.sendall(frame)
                assert secured.recv(4)
    return count / max(cpu.seconds, 0.01)


def measure(node: TlsNode, seconds: float) -> dict[str, float]:
    admin = AdminClient(node.librdkafka())
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)
    connect(node, CONNECTIONS)  # A JVM compiles its code first.
    produce(node, seconds / 2)
    count, produced = produce(node, seconds)
    return {
        "produce 1 KB, CPU s per GB": produced,
        "consume 1 KB, CPU s per GB": consume(node, count),
        "new connections per CPU s": connect(node, CONNECTIONS),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--kafka", action="store_true", help="measure Apache Kafka as well")
    options = parser.parse_args()
    found: dict[str, dict[str, Any]] = {}
    flavours: list[Flavour] = [Headrace(), *([Kafka(())] if options.kafka else [])]
    for flavour in flavours:
        with tempfile.TemporaryDirectory() as directory:
            node = TlsNode(Path(directory), flavour)
            node.start()
            try:
                found[flavour.name] = measure(node, options.seconds)
            finally:
                node.stop()
    for name in next(iter(found.values())):
        figures = "".join(f"  {flavour} {rows[name]:8.2f}" for flavour, rows in found.items())
        print(f"{name:28}{figures}")


if __name__ == "__main__":
    main()
