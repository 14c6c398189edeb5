"""The parent of a cluster on one machine, with trivial programs in place of nodes."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

import pytest

from headrace.cli.cluster_parent import (
    ClusterParent,
    NodeEnded,
    Options,
    announced_lines,
    format_nodes,
    marked,
    node_command,
)
from headrace.cli.local_cluster import LocalCluster, Shape, new_plan
from headrace.cli.up_cluster import ClusterOptions, node_options
from headrace.errors import InvalidConfig
from headrace.metadata.log.formatting import read_identity
from headrace.protocol.uuids import random_uuid, to_text
from headrace.settings.broker import BrokerSettings

OPTIONS = Options(settings=BrokerSettings())
SERVING = """
import os, signal, sys, time
name, log = sys.argv[1:]
def end(*_):
    open(log, "a").write(name + " stops\\n")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
open(log, "a").write(f"{name} starts {os.getpid()}\\n")
while True:
    time.sleep(600)
"""


def plan_in(directory: Path, shape: Shape | None = None) -> LocalCluster:
    ports = count(20_000)
    return new_plan(
        str(directory),
        shape or Shape.of_nodes(3),
        "127.0.0.1:9092",
        lambda taken: next(ports),
        lambda: to_text(random_uuid()),
    )


def program(source: str, log: Path) -> Callable[[str], Sequence[str]]:
    """The command of a node: the program gets the name of its properties file, and the log."""
    return lambda path: [sys.executable, "-c", source, Path(path).stem, str(log)]


def started(log: Path) -> dict[str, int]:
    """The process ids of the nodes' last starts."""
    lines = log.read_text().splitlines() if log.exists() else []
    words = [line.split() for line in lines]
    return {word[0]: int(word[2]) for word in words if word[1] == "starts"}


def ready_when_started(log: Path) -> Callable[[LocalCluster], frozenset[int]]:
    return lambda _: frozenset(int(name.removeprefix("node-")) for name in started(log))


class Announced:
    """Remembers that the cluster was announced."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    def __call__(self, cluster: LocalCluster, options: Options) -> None:
        self.event.set()


async def running(
    cluster: LocalCluster, log: Path, options: Options = OPTIONS
) -> tuple[ClusterParent, "asyncio.Task[int]"]:
    parent = ClusterParent(
        cluster, options, probe=ready_when_started(log), command=program(SERVING, log)
    )
    announced = Announced()
    task = asyncio.create_task(parent.run(announced))
    async with asyncio.timeout(60):
        await announced.event.wait()
    return parent, task


async def test_nodes_start_together_and_stop_in_order(tmp_path: Path) -> None:
    """OPS-8."""
    log = tmp_path / "log"
    parent, task = await running(plan_in(tmp_path), log)
    assert set(started(log)) == {"node-1", "node-2", "node-3"}
    parent.request_stop()
    assert await asyncio.wait_for(task, 60) == 0
    stops = [line.split()[0] for line in log.read_text().splitlines() if line.endswith("stops")]
    assert (stops[0], set(stops[1:])) == ("node-3", {"node-1", "node-2"})


async def test_a_second_signal_stops_all_at_once(tmp_path: Path) -> None:
    parent, task = await running(plan_in(tmp_path, Shape.of_brokers(4)), tmp_path / "log")
    parent.request_stop()
    parent.request_stop()
    assert await asyncio.wait_for(task, 60) == 0
    assert parent.nodes.pids == {}


async def test_a_killed_node_is_started_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    parent, task = await running(plan_in(tmp_path), log)
    killed = parent.nodes.pids["node-2"]
    os.kill(killed, signal.SIGKILL)
    async with asyncio.timeout(60):
        while started(log)["node-2"] == killed:
            await asyncio.sleep(0.05)
    parent.request_stop()
    assert await asyncio.wait_for(task, 60) == 0


async def test_in_a_drill_a_killed_node_stays_dead_until_all_are(tmp_path: Path) -> None:
    log = tmp_path / "log"
    options = Options(settings=BrokerSettings(), restarts=False)
    parent, task = await running(plan_in(tmp_path), log, options)
    for pid in list(parent.nodes.pids.values()):
        assert not task.done()
        os.kill(pid, signal.SIGKILL)
    assert await asyncio.wait_for(task, 60) == 1
    assert len(log.read_text().splitlines()) == 3


async def test_a_node_that_ends_before_the_cluster_is_ready_is_reported(tmp_path: Path) -> None:
    failing = "import sys; sys.exit('no disk' if sys.argv[1] == 'node-2' else 0)"
    parent = ClusterParent(
        plan_in(tmp_path),
        Options(settings=BrokerSettings(), restarts=False),
        probe=lambda _: frozenset(),
        command=program(failing, tmp_path / "log"),
    )
    with pytest.raises(NodeEnded, match="ended before the cluster was ready"):
        await asyncio.wait_for(parent.run(Announced()), 60)
    assert parent.nodes.pids == {}


async def test_a_signal_during_the_start_ends_it(tmp_path: Path) -> None:
    parent = ClusterParent(
        plan_in(tmp_path),
        OPTIONS,
        probe=lambda _: frozenset(),
        command=program(SERVING, tmp_path / "log"),
    )
    task = asyncio.create_task(parent.run(Announced()))
    await asyncio.sleep(0)
    parent.request_stop()
    assert await asyncio.wait_for(task, 60) == 0


def test_nodes_are_formatted_as_one_cluster_once(tmp_path: Path) -> None:
    cluster = plan_in(tmp_path, Shape.of_nodes(4))
    format_nodes(cluster)
    identities = [read_identity(cluster.directory_of(node)) for node in cluster.nodes]
    assert {one.cluster_id for one in identities if one} == {cluster.cluster_id}
    assert [one.node_id for one in identities if one] == [1, 2, 3, 4]
    for node, identity in zip(cluster.controllers, identities, strict=False):
        assert identity is not None
        assert to_text(identity.directory_id) == node.directory_id
    format_nodes(cluster)
    assert [read_identity(cluster.directory_of(node)) for node in cluster.nodes] == identities


def test_lines_of_logs_carry_their_node() -> None:
    assert marked("stopping", "node-2", is_json=False) == "node-2  stopping"
    assert marked('{"level": "INFO"}', "node-2", is_json=True) == (
        '{"node": "node-2", "level": "INFO"}'
    )
    assert marked("Traceback", "node-2", is_json=True) == "node-2  Traceback"


def test_people_see_what_was_set(tmp_path: Path) -> None:
    options = Options(
        settings=BrokerSettings(), shared={"min.insync.replicas": "1"}, metrics_port=9644
    )
    lines = "\n".join(announced_lines(plan_in(tmp_path), options))
    assert "default.replication.factor=3, min.insync.replicas=1" in lines
    assert "http://127.0.0.1:9644/metrics, up to port 9646" in lines
    assert "headrace cluster health\n" in lines


def test_a_node_could_be_started_by_hand() -> None:
    assert node_command("data/node-1.properties")[1:] == [
        *("-m", "headrace.cli.main", "up"),
        *("--config", "data/node-1.properties"),
    ]


def test_the_parent_starts_registry_and_proxy_for_all_nodes(tmp_path: Path) -> None:
    given = ClusterOptions(nodes=3, rest="127.0.0.1:8082", restarts=False)
    properties = {"headrace.registry.listeners": "127.0.0.1:8081", "num.partitions": "3"}
    options = node_options(plan_in(tmp_path), given, properties)
    assert options.shared == {"num.partitions": "3"}
    assert options.settings.headrace_registry_listeners == "127.0.0.1:8081"
    assert options.settings.headrace_rest_listeners == "127.0.0.1:8082"
    assert not options.restarts


def test_mistakes_in_shared_properties_are_found_before_a_node_starts(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match=r"num\.partitions"):
        node_options(plan_in(tmp_path), ClusterOptions(nodes=3), {"num.partitions": "0"})
