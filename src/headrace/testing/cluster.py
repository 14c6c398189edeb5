"""A cluster of nodes in their own processes, for tests of failover.

    with ClusterProcess(directory) as cluster:
        cluster.leader_of("orders").kill()

The nodes are those of `headrace up --nodes`, without a parent that restarts them: a node that a
test kills stays dead until the test starts it.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec

from headrace.cli.cluster_parent import format_nodes, node_command, unfenced_brokers
from headrace.cli.defaults import SECURITY_FOLDER
from headrace.cli.local_cluster import (
    LocalCluster,
    LocalNode,
    Shape,
    planned,
    stop_order,
    write_properties,
)
from headrace.client.admin import Admin
from headrace.client.descriptions import PartitionDescription
from headrace.client.health import Health, problems_of
from headrace.errors import HeadraceError
from headrace.protocol.uuids import random_uuid, to_text
from headrace.runtime.ports import free_port
from headrace.testing.process import HOST, BrokerFailed, NodeProcess, as_properties, with_login

_POLL_S = 0.05
_ADMIN_S = 5.0


class Network(msgspec.Struct, frozen=True):
    """The network of one node: its address, and the command that runs programs in it."""

    host: str
    command: Sequence[str] = ()


class ClusterNode:
    """One node of a cluster."""

    def __init__(
        self, cluster: LocalCluster, node: LocalNode, log_path: Path, command: Sequence[str] = ()
    ) -> None:
        self.id = node.id
        self.host = node.host or HOST
        self.port = node.port
        self.data_dir = Path(cluster.directory_of(node))
        self._properties_path = cluster.properties_path(node)
        self._process = NodeProcess(node.name, log_path)
        self._command = [*command, *node_command(self._properties_path)]

    @property
    def bootstrap_servers(self) -> str:
        """The address of this node alone."""
        return f"{self.host}:{self.port}"

    @property
    def is_running(self) -> bool:
        """The process exists; a paused one does."""
        return self._process.is_running

    @property
    def is_paused(self) -> bool:
        return self.is_running and self._process.is_paused

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        """Return the node's log of all starts so far."""
        return self._process.log

    def launch(self) -> None:
        """Start the node without waiting until it serves clients."""
        self._process.launch(self._command)

    def wait_until_ready(self) -> None:
        """Wait until the node serves clients."""
        self._process.wait_until_ready()

    def start(self) -> None:
        """Start the node on its data, and return when it serves clients."""
        self.launch()
        self.wait_until_ready()

    def request_stop(self) -> None:
        """Ask the node to stop, without waiting for its end."""
        self._process.request_stop()

    def stop(self) -> None:
        """Stop the node as Ctrl-C does: its leaders move first."""
        self._process.stop()

    def kill(self) -> None:
        """Kill the node as a crash would."""
        self._process.kill()

    def pause(self) -> None:
        """Freeze the node: it keeps its connections and answers nothing."""
        self._process.pause()

    def resume(self) -> None:
        """Continue a paused node."""
        self._process.resume()

    def restart(self) -> None:
        """Stop and start the node."""
        self.stop()
        self.start()


class ClusterProcess:
    """Nodes on this machine that are one cluster, with their data in a directory of the test."""

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, object] | None = None,
        nodes: int = 3,
        networks: Sequence[Network] = (),
        *,
        secure: bool = False,
    ) -> None:
        """`networks` has one entry for each node if the nodes have networks of their own.

        `secure` starts them with TLS, SCRAM and access rules; `client_config` logs in as admin.
        """
        self._directory = directory
        self._settings = as_properties(settings or {})
        self._plan = planned(
            str(directory / "data"),
            Shape.of_nodes(nodes),
            f"{HOST}:0",
            f"{HOST}:0",
            partial(free_port, HOST),
            lambda: to_text(random_uuid()),
            is_secured=secure,
        )
        own = list(networks) or [Network(HOST)] * nodes
        self._plan = msgspec.structs.replace(
            self._plan,
            nodes=tuple(
                msgspec.structs.replace(node, host=network.host)
                for node, network in zip(self._plan.nodes, own, strict=True)
            ),
        )
        self.nodes = tuple(
            ClusterNode(self._plan, node, directory / f"{node.name}.log", network.command)
            for node, network in zip(self._plan.nodes, own, strict=True)
        )

    @property
    def bootstrap_servers(self) -> str:
        """Value of `bootstrap.servers` for clients: all nodes, also those that are down."""
        return self._plan.local_addresses

    @property
    def security_dir(self) -> Path:
        """The folder with `ca.crt`, certificates and settings of clients, if it is secure."""
        return self._directory / "data" / SECURITY_FOLDER

    def client_config(
        self, username: str | None = None, password: str | None = None
    ) -> dict[str, str]:
        """Return settings of clients, by librdkafka's names; by default of the admin."""
        servers = {"bootstrap.servers": self.bootstrap_servers}
        if not self._plan.is_secured:
            return servers
        return with_login(self.security_dir, username, password) | servers

    @property
    def serving(self) -> tuple[ClusterNode, ...]:
        """The nodes that run and are not paused."""
        return tuple(node for node in self.nodes if node.is_running and not node.is_paused)

    def node(self, node_id: int) -> ClusterNode:
        """Return a node by its id; the first one is 1."""
        return self.nodes[node_id - 1]

    def start(self) -> None:
        """Start all nodes that do not run, and return when every one sees the others."""
        self._prepare()
        starting = [node for node in self.nodes if not node.is_running]
        for node in starting:
            node.launch()
        for node in starting:
            node.wait_until_ready()
        everyone = frozenset(node.id for node in self.nodes)
        self._wait_until(
            lambda: unfenced_brokers(self._plan, self.client_config()) == everyone,
            "all brokers are unfenced",
            30,
        )

    def stop(self) -> None:
        """Stop the nodes one after the other, so that leaders move."""
        for group in stop_order(self._plan):
            for node_id in group:
                self.node(node_id).request_stop()
            for node_id in group:
                self.node(node_id).stop()

    def kill(self) -> None:
        """Kill all nodes at once."""
        for node in self.nodes:
            node.kill()

    def leader_of(self, topic: str, partition: int = 0) -> ClusterNode:
        """Return the node that leads a partition now; wait up to ten seconds for one."""
        found: list[int] = []

        def has_leader() -> bool:
            part = self.partition(topic, partition)
            found[:] = [] if part is None or part.leader is None else [part.leader]
            return bool(found)

        self._wait_until(has_leader, f"{topic}-{partition} has a leader", 10)
        return self.node(found[0])

    def followers_of(self, topic: str, partition: int = 0) -> tuple[ClusterNode, ...]:
        """Return the nodes with other replicas of a partition."""
        leader = self.leader_of(topic, partition)
        part = self.partition(topic, partition)
        replicas = part.replicas if part is not None else []
        return tuple(self.node(one) for one in replicas if one != leader.id)

    def active_controller(self) -> ClusterNode:
        """Return the node whose controller is active now; wait up to ten seconds for one."""
        found: list[int] = []

        def is_elected() -> bool:
            with self._admin() as admin:
                quorum = admin.nodes.describe().quorum
            found[:] = [] if quorum is None or quorum.leader < 0 else [quorum.leader]
            return bool(found)

        self._wait_until(is_elected, "a controller is active", 10)
        return self.node(found[0])

    def partition(self, topic: str, partition: int = 0) -> PartitionDescription | None:
        """Describe a partition in the metadata of a serving node; None if it does not exist."""
        with self._admin() as admin:
            described, _ = admin.topics.describe([topic])
        parts = [part for one in described for part in one.partitions]
        return next((part for part in parts if part.partition == partition), None)

    def wait_until_in_sync(self, seconds_max: float = 60.0) -> None:
        """Wait until no broker is fenced, and every partition has all replicas in sync."""
        problems: list[str] = []

        def is_healthy() -> bool:
            with self._admin() as admin:
                found = problems_of(Health.read(admin))
            problems[:] = [f"{one.kind}: {one.subject}, {one.found}" for one in found]
            return not problems

        try:
            self._wait_until(is_healthy, "the cluster is healthy", seconds_max)
        except BrokerFailed as failure:
            raise BrokerFailed("\n".join([str(failure), *problems])) from failure

    def __enter__(self) -> "ClusterProcess":
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()  # Its data is thrown away.

    def _prepare(self) -> None:
        """Write properties, and format new nodes."""
        if not self._plan.is_secured:
            write_properties(self._plan, self._settings)
            format_nodes(self._plan)
            return
        from headrace.cli.local_security import prepare_cluster  # Needs the extra security.

        security = prepare_cluster(self._plan, datetime.now(UTC))
        write_properties(self._plan, self._settings, None, security)
        format_nodes(self._plan, [security.admin_record()])

    @contextmanager
    def _admin(self) -> Iterator[Admin]:
        addresses = ",".join(node.bootstrap_servers for node in self.serving)
        servers = addresses or self.bootstrap_servers
        with Admin(servers, self.client_config(), timeout_s=_ADMIN_S) as admin:
            yield admin

    def _wait_until(self, is_so: Callable[[], bool], what: str, seconds_max: float) -> None:
        """Poll; requests fail while nodes are down or paused, which is no answer yet."""
        deadline = time.monotonic() + seconds_max
        while True:
            try:
                if is_so():
                    return
            except HeadraceError as error:
                failure = f": {error}"
            else:
                failure = ""
            if time.monotonic() >= deadline:
                raise BrokerFailed(f"not within {seconds_max:.0f} s: {what}{failure}")
            time.sleep(_POLL_S)
