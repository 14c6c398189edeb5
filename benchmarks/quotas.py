"""Quotas: the latency of a small client beside a throttled one, and how well a rate is kept.

`python -m benchmarks.quotas` starts a node, and measures a client that produces one small record at
a time: alone, beside a greedy producer with a quota, and for comparison beside one without. The
greedy producer is a process of its own. It fails if the p99 beside the throttled one is more than
twice the p99 alone, or if the throttled rate misses its quota by more than 5 % over ten seconds.
"""

import argparse
import multiprocessing
import struct
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import quantiles
from typing import Any

import headrace
from tests.builders.record_batches import batch
from tests.clients.librdkafka import Sent, create_topic, producer
from tests.clients.wire import Connection, encode_request, produce_fields
from tests.processes.nodes import Headrace, Node

RATE = 5_000_000
RATIO_MAX = 2.0
MISS_MAX = 0.05
BURST_SECONDS = 12
"""After this time the burst of a quota is over, and its rate is steady."""
RATE_SECONDS = 10
GREEDY = "greedy"
PAUSE_S = 0.002


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10, help="length of each measurement")
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as root:
        node = Node(Headrace(), Path(root), {})
        node.start()
        try:
            return measure(node, seconds)
        finally:
            node.stop()


def measure(node: Node, seconds: float) -> int:
    topic = create_topic(node)
    latencies(node, topic, 1)  # Warms up.
    alone = p99(latencies(node, topic, seconds))
    with headrace.Admin(node.address) as admin:
        with Greedy(node) as greedy:
            free = p99(latencies(node, topic, seconds))
        admin.quotas.alter({"client-id": GREEDY}, {"producer_byte_rate": float(RATE)})
        with Greedy(node) as greedy:
            time.sleep(BURST_SECONDS)
            began, before = time.monotonic(), greedy.size
            beside = p99(latencies(node, topic, max(seconds, RATE_SECONDS)))
            rate = (greedy.size - before) / (time.monotonic() - began)
    return report(alone, free, beside, rate)


def report(alone: float, free: float, beside: float, rate: float) -> int:
    ratio, miss = beside / alone, abs(rate - RATE) / RATE
    print("| small client | p99, ms |\n|---|---|")
    print(f"| alone | {alone:.2f} |")
    print(f"| beside a greedy one with a quota | {beside:.2f} |")
    print(f"| beside a greedy one without | {free:.2f} |")
    print(f"\np99 beside a throttled client: {ratio:.2f} of alone, at most {RATIO_MAX}")
    print(f"rate: {rate / 1e6:.2f} MB/s of {RATE / 1e6:.2f}, {100 * miss:.1f} % off")
    return 0 if ratio <= RATIO_MAX and miss <= MISS_MAX else 1


def latencies(node: Node, topic: str, seconds: float) -> list[float]:
    """Send one record at a time for a while; the times to the answers in milliseconds."""
    body = encode_request("produce", 9, **produce_fields(topic, batch(Sent(b"v" * 100)), acks=1))
    frame = struct.pack(">i", len(body)) + body
    found = []
    with Connection(node.port) as client:
        end = time.perf_counter() + seconds
        while (began := time.perf_counter()) < end:
            client.socket.sendall(frame)
            client.receive_frame()
            found.append((time.perf_counter() - began) * 1000)
            time.sleep(PAUSE_S)
    return found


def p99(times: Sequence[float]) -> float:
    return quantiles(times, n=100)[98]


class Greedy:
    """A process that produces as fast as it can, and counts the acknowledged bytes."""

    def __init__(self, node: Node) -> None:
        context = multiprocessing.get_context("spawn")
        self._topic = create_topic(node)
        self._size: Any = context.Value("q", 0)
        self._stopped: Any = context.Event()
        self._process = context.Process(
            target=produce_all, args=(node.address, self._topic, self._size, self._stopped)
        )

    @property
    def size(self) -> int:
        return int(self._size.value)

    def __enter__(self) -> "Greedy":
        self._process.start()
        while not self.size:
            time.sleep(0.01)
        return self

    def __exit__(self, *_error: object) -> None:
        self._stopped.set()
        self._process.join(30)


class _Address:
    def __init__(self, address: str) -> None:
        self.address = address


def produce_all(address: str, topic: str, size: Any, stopped: Any) -> None:
    def note(error: object, message: Any) -> None:
        if error is None:
            size.value += len(message.value())

    settings = {"client_id": GREEDY, "queue_buffering_max_kbytes": 20_000, "batch_size": 100_000}
    client = producer(_Address(address), **settings)
    while not stopped.is_set():
        try:
            for _ in range(100):
                client.produce(topic, b"v" * 1000, on_delivery=note)
            client.poll(0)
        except BufferError:
            client.poll(0.02)
    client.purge()
    client.poll(0)


if __name__ == "__main__":
    sys.exit(main())
