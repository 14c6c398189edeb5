"""`make bench`: every load by turns on Headrace and on Apache Kafka, medians over the rounds.

Kafka comes from Maven, as for `make interop`; without it Headrace is measured alone. Wall time on
a shared machine is noise, so most figures are CPU seconds of the broker's process. Between two
runs the clients are the same, the data lie in memory where there is a memory file system, and the
first round of every load warms both up and is not counted.
"""

import argparse
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks import client, coordination, workloads
from benchmarks.report import collect, table, with_figures
from benchmarks.share_groups import shared
from benchmarks.startup import started
from benchmarks.workloads import Workload
from tests.processes.kafka import VERSION, KafkaMissing, find_kafka
from tests.processes.nodes import Flavour, Headrace, Kafka, Node

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "internals" / "performance.md"

# As Kafka's own start script has it.
STOCK_FLAGS = (
    *("-server", "-Xmx1G", "-Xms1G", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"),
)
SETTINGS = {
    "log.segment.delete.delay.ms": "1000",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "500",
    "offsets.topic.num.partitions": str(coordination.OFFSETS_PARTITIONS),
}

COMPARED: Mapping[str, Workload] = {
    "produce-1k": partial(workloads.produced, size=1_000, acks=1),
    "produce-1k-all": partial(workloads.produced, size=1_000, acks=-1),
    "produce-100": partial(workloads.produced, size=100, acks=1),
    "consume-1k": partial(workloads.consumed, size=1_000),
    "small-50": partial(workloads.small_requests, connections=50),
    "small-200": partial(workloads.small_requests, connections=200),
    "in-flight": workloads.one_in_flight,
    "share-100": partial(shared, size=100),
    "partitions": workloads.many_partitions,
    "commits": coordination.commits,
    "heartbeats": coordination.heartbeats,
    "rebalance-classic": partial(coordination.rebalance, protocol="classic"),
    "rebalance-consumer": partial(coordination.rebalance, protocol="consumer"),
    "transactions": coordination.transactions,
    "groups": coordination.many_groups,
}
# Growth of Headrace's own cost; Kafka would take too long for these.
GROWTH: Mapping[str, Workload] = {
    "beside-10-partitions": partial(workloads.beside_partitions, count=10),
    "beside-5000-partitions": partial(workloads.beside_partitions, count=5_000),
    "beside-10-idle": partial(workloads.beside_idle_connections, count=10),
    "beside-2000-idle": partial(workloads.beside_idle_connections, count=2_000),
}
STARTUP, CLIENT = "startup", "client"
Measured = dict[str, dict[tuple[str, str], list[float]]]


def main() -> int:
    arguments = parse_arguments()
    flavours = targets(arguments)
    wants_client = CLIENT in arguments.only
    with data_directory() as root:
        compared = measure(COMPARED, flavours, arguments, root)
        grown = measure(GROWTH, flavours[:1], arguments, root)
        clients = client.measure(root / "client", arguments.rounds) if wants_client else {}
    text = document(compared, grown, clients, arguments)
    print(text)
    if arguments.write:
        write(text)
    return 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how often each load is measured")
    parser.add_argument("--seconds", type=float, default=4, help="how long a load lasts")
    names = [STARTUP, *COMPARED, *GROWTH, CLIENT]
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="LOAD")
    parser.add_argument("--alone", action="store_true", help="do not run Apache Kafka")
    parser.add_argument(
        "--write", action="store_true", help=f"put the figures into {DOCUMENT.name}"
    )
    return parser.parse_args()


def targets(arguments: argparse.Namespace) -> list[Flavour]:
    try:
        if not arguments.alone:
            find_kafka()
            return [Headrace(), Kafka(STOCK_FLAGS)]
    except KafkaMissing as error:
        print(f"Apache Kafka is left out: {error}", file=sys.stderr)
    return [Headrace()]


@contextmanager
def data_directory() -> Iterator[Path]:
    """In memory if possible: writing to a disk in the background would slow the next load."""
    memory = Path("/dev/shm")
    parent = memory if os.access(memory, os.W_OK) else None
    root = Path(tempfile.mkdtemp(prefix="headrace-bench-", dir=parent))
    try:
        yield root
    finally:
        shutil.rmtree(root)


def measure(
    loads: Mapping[str, Workload],
    flavours: list[Flavour],
    arguments: argparse.Namespace,
    root: Path,
) -> Measured:
    """All loads on all targets, by turns; the first round is not counted."""
    wanted = {name: load for name, load in loads.items() if name in arguments.only}
    measured: Measured = {flavour.name: {} for flavour in flavours}
    nodes = [Node(flavour, root / flavour.name, SETTINGS) for flavour in flavours]
    try:
        if loads is COMPARED and STARTUP in arguments.only:
            measure_startup(nodes, arguments, measured)
        if wanted:
            for node in nodes:
                node.start()
        for name, load in wanted.items():
            for number in range(arguments.rounds + 1):
                for node in nodes:
                    progress(f"{name}, round {number} of {arguments.rounds}, {node.flavour.name}")
                    figures = load(node, arguments.seconds)
                    if number:
                        collect(figures, measured[node.flavour.name])
    finally:
        progress("")
        for node in nodes:
            if node.is_running:
                node.stop()
    return measured


def measure_startup(nodes: list[Node], arguments: argparse.Namespace, measured: Measured) -> None:
    for number in range(arguments.rounds + 1):
        for node in nodes:
            progress(f"{STARTUP}, round {number} of {arguments.rounds}, {node.flavour.name}")
            figures = started(node)
            if number:
                collect(figures, measured[node.flavour.name])


def progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def document(
    compared: Measured, grown: Measured, clients: Measured, arguments: argparse.Namespace
) -> str:
    """The tables, and what a reader needs to judge them."""
    python = platform.python_version()
    rounds = f"medians of {arguments.rounds} runs of {arguments.seconds:g} s"
    parts = [f"{os.cpu_count()} cores, Python {python}, {platform.system()}; {rounds}.\n"]
    if any(compared.values()):
        kafka = f" Apache Kafka is {VERSION}; a ratio below 1 is less than Kafka's."
        parts.append(f"Lower is better.{kafka if len(compared) > 1 else ''}\n")
        parts.append(table(compared))
    if any(grown.values()):
        parts.append("A small request of 50 connections with others on the node:\n")
        parts.append(table(grown))
    if clients:
        parts.append("The Python client beside bare confluent-kafka, the least of the rounds:\n")
        parts.append(table(clients))
    return "\n".join(parts)


def write(text: str) -> None:
    try:
        DOCUMENT.write_text(with_figures(DOCUMENT.read_text(), text))
    except ValueError as error:
        raise SystemExit(f"{DOCUMENT}: {error}") from error


if __name__ == "__main__":
    sys.exit(main())
