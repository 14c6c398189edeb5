"""The parent of a cluster on one machine: it formats, starts, watches and stops the nodes.

Each node is a child process, `headrace up --config DATA/node-1.properties`, which could as well be
started by hand. The parent holds no data and serves nothing, so it imports little. It passes on the
nodes' logs, each line with its node.
"""

import asyncio
import logging
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from headrace.cli.local_cluster import (
    LocalCluster,
    replication_defaults,
    stop_order,
    write_properties,
)
from headrace.cli.services import Services
from headrace.errors import HeadraceError
from headrace.runtime.addresses import address_text
from headrace.runtime.supervision import Service, Sleep, Supervisor
from headrace.settings.broker import BrokerSettings

if TYPE_CHECKING:
    from headrace.cli.local_security import LocalSecurity
    from headrace.protocol.message import Message

_log = logging.getLogger(__name__)

NODE_STOP_S_MAX = 90.0
"""A node may close thousands of logs; a killed one checks them at its next start."""
_EARLY_STOP_S_MAX = 15.0
_POLL_S = 0.1
_PROBE_S = 2.0
_REMINDER_S = 15.0
_LAST_LINES = 20

Probe = Callable[[LocalCluster], frozenset[int]]
"""Returns the brokers that are unfenced for every node; blocks, and raises nothing."""


class NodeEnded(HeadraceError):
    """A node ended before the cluster was ready."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The options for all nodes."""

    settings: BrokerSettings
    """The settings of the first node, which are those of all nodes but for its own ones."""
    shared: Mapping[str, str] = {}
    metrics_port: int | None = None
    restarts: bool = True
    security: "LocalSecurity | None" = None

    @property
    def client_settings(self) -> dict[str, str]:
        return {} if self.security is None else self.security.client_settings


class ClusterParent:
    """The nodes of one cluster as child processes."""

    def __init__(
        self,
        cluster: LocalCluster,
        options: Options,
        *,
        probe: Probe | None = None,
        command: Callable[[str], Sequence[str]] | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.cluster = cluster
        self._options = options
        self._probe = probe or partial(unfenced_brokers, settings=options.client_settings)
        self._sleep = sleep
        self._tails = {node.name: deque[str](maxlen=_LAST_LINES) for node in cluster.nodes}
        self._is_json = options.settings.headrace_log_format == "json"
        command = command or node_command
        services = [
            Service(
                node.name,
                command(cluster.properties_path(node)),
                on_line=partial(self._pass_on, node.name),
                stop_s_max=NODE_STOP_S_MAX,
            )
            for node in cluster.nodes
        ]
        self.nodes = Supervisor(services, restarts=options.restarts)
        security = options.security
        files = None if security is None else security.service_files()
        self._services = Services(options.settings, files)
        self._stopping = asyncio.Event()
        self._stopping_at_once = asyncio.Event()

    async def run(self, announce: Callable[[LocalCluster, Options], None]) -> int:
        """Run the cluster until a signal stops it; return the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.request_stop)
        self.nodes.start()
        try:
            if not await self._until_ready():
                return 0
            announce(self.cluster, self._options)
            self._services.start(self.cluster.local_addresses)
            code = await self._until_stopped()
            await self._services.stop()
            await self._stop_nodes()
            return code
        finally:
            await self._services.stop()
            # Before the cluster is ready, no leader has to move.
            await self.nodes.stop(seconds_max=_EARLY_STOP_S_MAX)

    def request_stop(self) -> None:
        """Stop the nodes one after the other; the second time, stop the rest at once."""
        if self._stopping.is_set():
            self._stopping_at_once.set()
        self._stopping.set()

    async def _until_ready(self) -> bool:
        """Wait until every node sees all brokers unfenced; false if a signal came before."""
        wanted = {node.id for node in self.cluster.nodes}
        loop = asyncio.get_running_loop()
        reminder_at = loop.time() + _REMINDER_S
        while not self._stopping.is_set():
            if not self.nodes.ended.empty():
                raise NodeEnded(self._explain(self.nodes.ended.get_nowait()))
            missing = wanted - await asyncio.to_thread(self._probe, self.cluster)
            if not missing:
                return True
            if loop.time() >= reminder_at:
                reminder_at = loop.time() + _REMINDER_S
                names = ",".join(f"node-{number}" for number in sorted(missing))
                _log.info("waiting for nodes", extra={"nodes": names})
            await self._sleep(_POLL_S)
        return False

    async def _until_stopped(self) -> int:
        """Wait for a signal; return 1 if all nodes ended for good before it came."""
        stopping = asyncio.create_task(self._stopping.wait())
        idle = asyncio.create_task(self.nodes.wait_until_idle())
        await asyncio.wait((stopping, idle), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        idle.cancel()
        return 0 if self._stopping.is_set() else 1

    async def _stop_nodes(self) -> None:
        at_once = asyncio.create_task(self._stopping_at_once.wait())
        in_order = asyncio.create_task(self._stop_in_order())
        await asyncio.wait((at_once, in_order), return_when=asyncio.FIRST_COMPLETED)
        if at_once.done():
            in_order.cancel()
            await asyncio.gather(in_order, return_exceptions=True)
        at_once.cancel()
        await self.nodes.stop()

    async def _stop_in_order(self) -> None:
        for group in stop_order(self.cluster):
            await self.nodes.stop([f"node-{number}" for number in group])

    def _pass_on(self, name: str, line: str) -> None:
        self._tails[name].append(line)
        sys.stderr.write(marked(line, name, is_json=self._is_json) + "\n")

    def _explain(self, name: str) -> str:
        lines = "\n".join(self._tails[name])
        return f"{name} ended before the cluster was ready; its log ends with:\n{lines}"


def run_cluster(cluster: LocalCluster, options: Options) -> int:
    """Format the nodes if they are new, and run them until Ctrl-C; return the exit code."""
    security = options.security
    write_properties(cluster, options.shared, options.metrics_port, security)
    format_nodes(cluster, () if security is None else [security.admin_record()])
    return asyncio.run(_run(cluster, options))


async def _run(cluster: LocalCluster, options: Options) -> int:
    return await ClusterParent(cluster, options).run(announce)


def format_nodes(cluster: LocalCluster, bootstrap: "Sequence[Message]" = ()) -> None:
    """Format the nodes that are not formatted yet; `bootstrap` are further first records."""
    unformatted = [
        node
        for node in cluster.nodes
        if not os.path.exists(os.path.join(cluster.directory_of(node), "meta.properties"))
    ]
    if not unformatted:
        return
    # Only needed once in the life of a cluster.
    from headrace.metadata.log.first_voters import parse_first_voters
    from headrace.metadata.log.formatting import NewNode, format_directories
    from headrace.metadata.log.release_levels import CLUSTER_LEVELS

    voters = parse_first_voters(cluster.first_voters, "CONTROLLER")
    now_ms = time.time_ns() // 1_000_000
    for node in unformatted:
        directory = cluster.directory_of(node)
        new = NewNode(
            node_id=node.id,
            voters=voters if node.is_controller else (),
            cluster_id=cluster.cluster_id,
            levels=CLUSTER_LEVELS,
            bootstrap=bootstrap,
        )
        format_directories([directory], directory, new, now_ms)


def node_command(properties_path: str) -> list[str]:
    """Return the command of one node."""
    return [sys.executable, "-m", "headrace.cli.main", "up", "--config", properties_path]


def unfenced_brokers(
    cluster: LocalCluster, settings: Mapping[str, str] | None = None
) -> frozenset[int]:
    """Ask every node for the brokers; return those that are unfenced for all of them."""
    from headrace.client.admin import Admin

    seen: list[set[int]] = []
    for address in cluster.local_addresses.split(","):
        try:
            with Admin(address, settings, timeout_s=_PROBE_S) as admin:
                brokers = admin.nodes.brokers()
        except HeadraceError:
            return frozenset()
        seen.append({broker.id for broker in brokers if not broker.is_fenced})
    return frozenset(set.intersection(*seen))


def marked(line: str, name: str, *, is_json: bool) -> str:
    """Return a line of a node's log with the node's name."""
    if is_json and line.startswith("{"):
        return f'{{"node": "{name}", {line[1:]}'
    return f"{name}  {line}"


def announce(cluster: LocalCluster, options: Options) -> None:
    """Print the addresses, the settings for topics and first commands."""
    ready = f"Headrace is ready on {cluster.local_addresses}"
    if options.settings.headrace_log_format == "json":
        from headrace.runtime.logging import JsonFormatter

        facts = {"data": cluster.data, "nodes": len(cluster.nodes)}
        record = _log.makeRecord(_log.name, logging.INFO, __file__, 0, ready, (), None, extra=facts)
        print(JsonFormatter().format(record), flush=True)
        return
    print("\n".join([ready, *announced_lines(cluster, options)]), flush=True)


def announced_lines(cluster: LocalCluster, options: Options) -> Iterator[str]:
    """Return the lines for people below the line with the addresses."""
    shape = cluster.shape
    defaults = replication_defaults(shape)
    replication = {name: options.shared.get(name, value) for name, value in defaults.items()}
    copies = replication["default.replication.factor"]
    in_sync = replication["min.insync.replicas"]
    yield f"  nodes     {shape.nodes}, of which {shape.controllers} are controllers as well"
    yield f"  data      {cluster.data}/node-1 to node-{shape.nodes}"
    yield f"  topics    default.replication.factor={copies}, min.insync.replicas={in_sync}"
    yield (
        f"  internal  replicas of offsets {replication['offsets.topic.replication.factor']},"
        f" transactions {replication['transaction.state.log.replication.factor']},"
        f" share states {replication['share.coordinator.state.topic.replication.factor']}"
    )
    if options.metrics_port:
        last = options.metrics_port + shape.nodes - 1
        yield f"  metrics   http://127.0.0.1:{options.metrics_port}/metrics, up to port {last}"
    if options.security is not None:
        yield from options.security.announced_lines(cluster.local_addresses)
    bootstrap = address_text(cluster.host or "127.0.0.1", cluster.nodes[0].port)
    option = "" if bootstrap == "127.0.0.1:9092" else f" --bootstrap {bootstrap}"
    yield f"  health    headrace cluster health{option}"
    yield f"  produce   echo hello | headrace produce greetings{option}"
    yield "  stop      Ctrl-C"
