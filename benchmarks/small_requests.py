"""Many connections with one small Produce request in flight on each.

The frames are made once, so the load costs little and the broker is what is measured.
"""

import selectors
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from tests.builders.record_batches import batch
from tests.clients.librdkafka import Sent
from tests.clients.wire import Connection, encode_request, produce_fields
from tests.processes.nodes import HOST, Node

VALUE = b"x" * 100


class Answered(NamedTuple):
    requests: int
    seconds: float


def produce_on_connections(node: Node, topic: str, *, connections: int, seconds: float) -> Answered:
    """Every connection sends as soon as it is answered; how many were answered in that time."""
    body = encode_request("produce", 9, **produce_fields(topic, batch(Sent(VALUE)), acks=1))
    frame = struct.pack(">i", len(body)) + body
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        for _ in range(connections):
            opened = stack.enter_context(socket.create_connection((HOST, node.port)))
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            selector.register(opened, selectors.EVENT_READ)
            opened.sendall(frame)
        return exchange(selector, frame, seconds)


def exchange(selector: selectors.DefaultSelector, frame: bytes, seconds: float) -> Answered:
    """An answer is smaller than one read, so a readable socket holds the whole of it."""
    requests = 0
    began = time.perf_counter()
    while (elapsed := time.perf_counter() - began) < seconds:
        for key, _events in selector.select(1):
            client = key.fileobj
            assert isinstance(client, socket.socket)
            check(client.recv(4_096))
            client.sendall(frame)
            requests += 1
    return Answered(requests, elapsed)


def check(answer: bytes) -> None:
    """A refusal is answered fast, too; it must not look like speed."""
    assert answer, "the broker closed a connection"
    (size,) = struct.unpack_from(">i", answer)
    assert size == len(answer) - 4, "an answer came in pieces"


@contextmanager
def idle_connections(node: Node, count: int) -> Iterator[None]:
    """Connections that asked for the versions once and are silent since."""
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(Connection(node.port)).call("api_versions", 0)
        yield
