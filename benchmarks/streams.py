"""Cost of pushing the same records to many clients by Server-Sent Events.

Part of `make bench-http`. All clients listen at the end of one topic, so the proxy reads it once;
only the sending grows with them. One thread plays all clients and counts their events.
"""

import selectors
import socket
import time
from contextlib import ExitStack
from typing import NamedTuple
from urllib.parse import urlsplit

from confluent_kafka import Producer

from benchmarks.processes import CpuMeter, resident_megabytes
from tests.clients.librdkafka import create_topic
from tests.processes.nodes import Node
from tests.processes.rest_proxies import Proxy

CLIENTS = 500
_RATE = 40
"""Records a second, each for all clients."""
_VALUE = b'{"id":123456,"name":"ada lovelace","amount":12.5,"note":"' + b"x" * 40 + b'"}'
_OPEN_S_MAX = 60


class FanOut(NamedTuple):
    clients: int
    events: int
    expected: int
    seconds: float
    proxy_cpu_s: float
    megabytes_before: float
    megabytes_after: float

    def __str__(self) -> str:
        each = self.proxy_cpu_s / self.events * 1e6
        grown = (self.megabytes_after - self.megabytes_before) / self.clients * 1024
        return (
            f"{self.clients} clients of one topic got {self.events:,} of {self.expected:,} events"
            f" in {self.seconds:.1f} s ({self.events / self.seconds:,.0f}/s):"
            f" {each:.1f} µs of the proxy's CPU each; it holds {self.megabytes_after:.0f} MB,"
            f" {self.megabytes_before:.0f} MB before them ({grown:.0f} KB a client)."
        )


def fan_out(node: Node, server: Proxy, seconds: float, clients: int = CLIENTS) -> FanOut:
    """Push to so many clients for so long."""
    topic = create_topic(node)
    before = resident_megabytes(server.pid)
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        for _ in range(clients):
            opened = stack.enter_context(_opened(server.url, topic))
            selector.register(opened, selectors.EVENT_READ)
        _count(selector, b"\r\n\r\n", clients, time.monotonic() + _OPEN_S_MAX)
        with CpuMeter(server.pid) as served:
            began = time.monotonic()
            sent, events = _produce_and_count(node, topic, selector, seconds, clients)
            elapsed = time.monotonic() - began
        after = resident_megabytes(server.pid)
    return FanOut(clients, events, sent * clients, elapsed, served.seconds, before, after)


def _opened(url: str, topic: str) -> socket.socket:
    where = urlsplit(url)
    client = socket.create_connection((where.hostname or "", where.port or 0))
    path = f"/topics/{topic}/stream?format=json"
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: {where.netloc}\r\n\r\n".encode())
    client.setblocking(False)
    return client


def _produce_and_count(
    node: Node, topic: str, selector: selectors.DefaultSelector, seconds: float, clients: int
) -> tuple[int, int]:
    producer = Producer({"bootstrap.servers": node.address, "linger.ms": 0})
    began = time.monotonic()
    sent = events = 0
    while (elapsed := time.monotonic() - began) < seconds:
        while sent < elapsed * _RATE:
            producer.produce(topic, _VALUE)
            sent += 1
        producer.poll(0)
        events += _count(selector, b"\ndata: ", clients * sent - events, time.monotonic() + 0.02)
    producer.flush(10)
    missing = clients * sent - events
    return sent, events + _count(selector, b"\ndata: ", missing, time.monotonic() + 10)


def _count(selector: selectors.DefaultSelector, mark: bytes, wanted: int, deadline: float) -> int:
    """Count marks until `wanted` have arrived or the deadline has passed."""
    found = 0
    while found < wanted and (left_s := deadline - time.monotonic()) > 0:
        for key, _events in selector.select(left_s):
            client = key.fileobj
            assert isinstance(client, socket.socket)
            data = client.recv(1 << 16)
            assert data, "the proxy closed a stream"
            found += data.count(mark)
    return found
