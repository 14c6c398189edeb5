"""`headrace registry` over a node: its start, ten thousand schemas, and what a request costs.

The load is a process of its own with kept connections; costs are CPU seconds of the registry, which
do not depend on other load on the machine.
"""

import argparse
import json
import selectors
import socket
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.processes import CpuMeter, cpu_seconds, resident_megabytes
from benchmarks.workloads import Figure
from headrace.client.admin import Admin
from headrace.registry.log.topic import prepare_topic
from headrace.registry.log.writer import LogWriter
from headrace.registry.model.records import Change
from headrace.registry.settings import RegistrySettings
from headrace.serdes.schema_records import SchemaKey, SchemaValue
from tests.processes.nodes import Headrace, Node
from tests.processes.registries import RegistryProcess

SCHEMAS = 10_000
REQUESTS = 100_000
CONNECTIONS = 32
REGISTRATIONS = 500
_BATCH = 200
_QUESTION = b"/schemas/ids/1?fetchMaxId=false&subject=subject-0"
"""As Java's consumers ask."""
_FIELDS = 12


def run(schemas: int = SCHEMAS, requests: int = REQUESTS) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="headrace-registry-") as folder:
        quick = {"group.initial.rebalance.delay.ms": "0"}
        node = Node(Headrace(), Path(folder) / "node", quick)
        node.start()
        try:
            return [
                *measure_start(node, Path(folder), 0),
                *measure_start(node, Path(folder), schemas),
                *measure_requests(node, Path(folder), requests),
            ]
        finally:
            node.stop()


def measure_start(node: Node, folder: Path, schemas: int) -> list[Figure]:
    topic = f"_schemas-{schemas}"
    fill(node, topic, schemas)
    began = time.perf_counter()
    registry = RegistryProcess(node.address, folder / "log", own(topic))
    registry.get("/schemas/types")
    took = time.perf_counter() - began
    pid = registry.process.pid
    figures = [
        Figure(f"start to first answer, {schemas:,} schemas", "s", took),
        Figure(f"start to first answer, {schemas:,} schemas", "CPU s", cpu_seconds(pid)),
        Figure(f"memory after the start, {schemas:,} schemas", "MB", resident_megabytes(pid)),
    ]
    registry.end()
    return figures


def measure_requests(node: Node, folder: Path, requests: int) -> list[Figure]:
    registry = RegistryProcess(node.address, folder / "log", own("_schemas"))
    registry.wait_until_ready()
    with CpuMeter(registry.process.pid) as registering:
        for number in range(REGISTRATIONS):
            assert registry.register(f"subject-{number}", schema(number)).status_code == 200
    load = get_context("spawn").Process(
        target=ask, args=(registry.url, _QUESTION, requests, CONNECTIONS)
    )
    began = time.perf_counter()
    with CpuMeter(registry.process.pid) as asking:
        load.start()
        load.join()
    took = time.perf_counter() - began
    registry.end()
    assert load.exitcode == 0, "the load has failed"
    return [
        Figure("registrations of new schemas", "per CPU s", REGISTRATIONS / registering.seconds),
        Figure("GET by id", "per CPU s", requests / asking.seconds),
        Figure("GET by id, the load's own work included", "per s", requests / took),
    ]


def ask(url: str, path: bytes, requests: int, connections: int) -> None:
    """Ask over and over, one request at a time on each connection."""
    place = urlsplit(url)
    request = b"GET " + path + b" HTTP/1.1\r\nHost: registry\r\nAccept: application/json\r\n\r\n"
    with selectors.DefaultSelector() as selector:
        for _ in range(connections):
            opened = socket.create_connection((place.hostname, place.port))
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            opened.sendall(request)
            selector.register(opened, selectors.EVENT_READ)
        answered = 0
        while answered < requests:
            for key, _ in selector.select():
                connection = key.fileobj
                assert isinstance(connection, socket.socket)
                data = connection.recv(1 << 16)
                assert data, "the registry hung up"
                if data.endswith(b"}"):  # The body may come behind its headers.
                    answered += 1
                    connection.sendall(request)
        for key in list(selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()


def fill(node: Node, topic: str, count: int) -> None:
    settings = RegistrySettings(kafkastore_topic=topic)
    with Admin(node.address) as admin:
        prepare_topic(admin, settings)
    writer = LogWriter(node.address, settings)
    writer.claim()
    for first in range(0, count, _BATCH):
        writer.write([stored(number) for number in range(first, first + _BATCH)])
    writer.close()


def stored(number: int) -> Change:
    subject = f"topic-{number}-value"
    value = SchemaValue(subject, 1, number + 1, schema=schema(number))
    return Change(SchemaKey(subject, 1), value)


def schema(number: int) -> str:
    """About a kilobyte, as schemas usually are."""
    fields = [
        {"name": f"field_{place}", "type": ["null", "string"], "default": None, "doc": "some words"}
        for place in range(_FIELDS)
    ]
    record = {"type": "record", "name": f"R{number}", "namespace": "com.example", "fields": fields}
    return json.dumps(record, separators=(",", ":"))


def own(topic: str) -> dict[str, str]:
    return {"kafkastore.topic": topic, "schema.registry.group.id": topic}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schemas", type=int, default=SCHEMAS)
    parser.add_argument("--requests", type=int, default=REQUESTS)
    given = parser.parse_args()
    for figure in run(given.schemas, given.requests):
        print(f"{figure.name:45} {figure.value:12,.2f} {figure.unit}")


if __name__ == "__main__":
    main()
