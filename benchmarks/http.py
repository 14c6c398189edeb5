"""`make bench-http`: what requests to the HTTP products cost, in CPU seconds of each process.

Load, broker and proxy share the machine's cores. The load is one thread over prepared bytes, so
it costs little; each row names the CPU of all three, and the wall time of a busy machine is
worth what it is.
"""

import argparse
import os
import platform
import selectors
import socket
import sys
import time
from contextlib import ExitStack
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import urlopen

import msgspec

from benchmarks.__main__ import data_directory
from benchmarks.processes import CpuMeter, resident_megabytes, settle
from benchmarks.report import row, shown
from benchmarks.streams import fan_out
from tests.processes.nodes import Headrace, Node
from tests.processes.rest_proxies import JSON_V2, Proxy, proxy

_RECORD = {"id": 123456, "name": "ada lovelace", "amount": 12.5, "note": "x" * 40}


class Load(NamedTuple):
    """Requests of one kind, on so many connections, each with one request in flight."""

    name: str
    path: str
    headers: dict[str, str]
    body: bytes
    connections: int
    records: int


class Measured(NamedTuple):
    requests: int
    seconds: float


def _v2(name: str, records: int, connections: int) -> Load:
    body = msgspec.json.encode({"records": [{"value": _RECORD} for _ in range(records)]})
    return Load(name, "/topics/bench", {"Content-Type": JSON_V2}, body, connections, records)


def _v3(cluster_id: str, connections: int) -> Load:
    body = msgspec.json.encode({"value": {"type": "JSON", "data": _RECORD}})
    path = f"/v3/clusters/{cluster_id}/topics/bench/records"
    headers = {"Content-Type": "application/json"}
    return Load("v3, 1 record a request", path, headers, body, connections, 1)


def _cluster_id(server: Proxy) -> str:
    with urlopen(f"{server.url}/v3/clusters", timeout=30) as answer:
        found = msgspec.json.decode(answer.read())
    return str(found["data"][0]["cluster_id"])


def run(load: Load, url: str, seconds: float) -> Measured:
    """Every connection sends as soon as it is answered."""
    where = urlsplit(url)
    head = "".join(f"{name}: {value}\r\n" for name, value in load.headers.items())
    frame = (
        f"POST {load.path} HTTP/1.1\r\nHost: {where.netloc}\r\n{head}"
        f"Content-Length: {len(load.body)}\r\n\r\n"
    ).encode() + load.body
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        for _ in range(load.connections):
            opened = stack.enter_context(
                socket.create_connection((where.hostname or "", where.port or 0))
            )
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            selector.register(opened, selectors.EVENT_READ, bytearray())
            opened.sendall(frame)
        return _exchange(selector, frame, seconds)


def _exchange(selector: selectors.DefaultSelector, frame: bytes, seconds: float) -> Measured:
    requests = 0
    began = time.perf_counter()
    while (elapsed := time.perf_counter() - began) < seconds:
        for key, _events in selector.select(1):
            client, received = key.fileobj, key.data
            assert isinstance(client, socket.socket)
            received += client.recv(1 << 18)
            if _is_whole(received):
                received.clear()
                client.sendall(frame)
                requests += 1
    return Measured(requests, elapsed)


def _is_whole(answer: bytearray) -> bool:
    """Return whether an answer is complete; an error must not count as a fast answer."""
    assert answer, "the proxy closed a connection"
    end = answer.find(b"\r\n\r\n")
    if end < 0:
        return False
    assert answer.startswith(b"HTTP/1.1 200"), bytes(answer[:500])
    head = bytes(answer[:end]).lower()
    if b"transfer-encoding: chunked" in head:
        return answer.endswith(b"0\r\n\r\n")
    size = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
    return len(answer) >= end + 4 + size


def measured(load: Load, node: Node, server: Proxy, seconds: float) -> list[str]:
    """One row: throughput, and what each process paid."""
    run(load, server.url, min(1.0, seconds))
    settle(server.pid)
    assert node.process is not None
    with (
        CpuMeter(node.process.pid) as broker,
        CpuMeter(server.pid) as served,
        CpuMeter(os.getpid()) as own,
    ):
        found = run(load, server.url, seconds)
    records = found.requests * load.records
    return [
        load.name,
        str(load.connections),
        shown(records / found.seconds),
        shown(found.requests / served.seconds),
        shown(served.seconds / records * 1e6),
        shown(broker.seconds / records * 1e6),
        shown(own.seconds / records * 1e6),
        shown(records / served.seconds),
    ]


HEADS = [
    "",
    "connections",
    "records/s",
    "requests per CPU s of the proxy",
    "proxy CPU µs/record",
    "broker",
    "load",
    "records per CPU s of the proxy",
]


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-http", description=__doc__)
    parser.add_argument("--seconds", type=float, default=4, help="how long a load lasts")
    arguments = parser.parse_args()
    with data_directory() as root, ExitStack() as stack:
        node = Node(Headrace(), root / "node", {})
        node.start()
        stack.callback(node.stop)
        server = stack.enter_context(proxy(node.address, root / "proxy.log"))
        loads = [
            _v2("v2 JSON, 100 records a request", 100, 16),
            _v2("v2 JSON, 1 record a request", 1, 64),
            _v3(_cluster_id(server), 64),
        ]
        lines = [row(HEADS), row(["---", *["---:"] * (len(HEADS) - 1)])]
        lines += [row(measured(load, node, server, arguments.seconds)) for load in loads]
        print(f"{os.cpu_count()} cores, Python {platform.python_version()}\n")
        print("\n".join(lines))
        print(f"\nThe proxy holds {resident_megabytes(server.pid):.0f} MB.")
        server = stack.enter_context(proxy(node.address, root / "streams.log"))
        print(fan_out(node, server, arguments.seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
