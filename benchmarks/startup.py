"""From exec to the first answer, and what a node holds when it has nothing to do."""

import time

from benchmarks.processes import cpu_seconds, resident_megabytes
from benchmarks.workloads import Figure
from tests.clients.wire import Connection
from tests.processes.nodes import Node

IDLE_SECONDS = 3


def started(node: Node) -> list[Figure]:
    """Start a node that has run before, knock until it answers, let it rest, stop it."""
    began = time.perf_counter()
    node.launch()
    while not answers(node):
        time.sleep(0.002)
    took = time.perf_counter() - began
    cpu = cpu_seconds(node.pid)
    time.sleep(IDLE_SECONDS)
    held = resident_megabytes(node.pid)
    node.stop()
    return [
        Figure("start-up, exec to first answer", "s", took),
        Figure("start-up", "CPU s", cpu),
        Figure("idle memory", "MB RSS", held),
    ]


def answers(node: Node) -> bool:
    try:
        with Connection(node.port) as connection:
            return bool(connection.call("api_versions", 0).api_keys)
    except OSError:
        return False
