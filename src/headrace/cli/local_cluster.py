"""The plan of a cluster on one machine: its nodes, their ports, properties and order of stopping.

`headrace up --nodes 3` and the tests' cluster build on it. The plan is made once and stored as
`cluster.properties` in the data directory, before anything is formatted: a start that was
interrupted continues with the same ids and ports. The properties of each node are written again at
every start, because options may have changed.

This module decides, and writes nothing but these files.
"""

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple, Protocol

import msgspec

from headrace.cli.defaults import PLAN_FILE, SECURITY_FOLDER
from headrace.errors import HeadraceError, InvalidConfig
from headrace.runtime import files
from headrace.runtime.addresses import address_text
from headrace.settings.properties import parse, render
from headrace.settings.quorum_addresses import ControllerAddress, parse_address

CONTROLLERS_MAX = 5
REPLICATION_FACTOR = 3
LOOPBACK = "127.0.0.1"
OPEN, CLIENTS, BROKERS, CONTROLLERS = "PLAINTEXT", "SASL_SSL", "INTERNAL", "CONTROLLER"
"""Listeners: of open nodes; of secured ones for clients and for other brokers; of the quorum."""

FreePort = Callable[[Collection[int]], int]


class NodeSecurity(Protocol):
    """The properties of secured nodes; making them needs a library that open nodes do not."""

    def node_properties(self, node: str, shared: Mapping[str, str]) -> dict[str, str]:
        """Return the properties of a node, besides its listeners."""
        ...


_PER_NODE = (
    "node.id",
    "broker.id",
    "process.roles",
    "listeners",
    "advertised.listeners",
    "log.dir",
    "log.dirs",
    "metadata.log.dir",
    "controller.listener.names",
    "controller.quorum.bootstrap.servers",
    "controller.quorum.voters",
    "inter.broker.listener.name",
    "security.inter.broker.protocol",
    "headrace.metrics.port",
)
"""Properties that differ from node to node, or hold the nodes together."""


class Shape(NamedTuple):
    """The number of nodes, and how many of them are controllers, too."""

    nodes: int
    controllers: int

    @classmethod
    def of_nodes(cls, count: int) -> "Shape":
        """At least three nodes, which survive the death of any; controllers are three or five."""
        odd = count if count % 2 else count - 1
        return cls(count, min(odd, CONTROLLERS_MAX))

    @classmethod
    def of_brokers(cls, count: int) -> "Shape":
        """Brokers beside one node with both roles, to use several processor cores."""
        return cls(count, 1)

    def __str__(self) -> str:
        return f"{'--brokers' if self.controllers == 1 else '--nodes'} {self.nodes}"


class LocalNode(msgspec.Struct, frozen=True, kw_only=True):
    """One node of the plan; a pure broker has no controller port and directory id."""

    id: int
    port: int
    controller_port: int | None = None
    internal_port: int | None = None
    """The port for other brokers, if the cluster is secured."""
    directory_id: str | None = None
    host: str | None = None
    """The host of all its listeners, for a node in a network of its own; not stored."""

    @property
    def name(self) -> str:
        return f"node-{self.id}"

    @property
    def is_controller(self) -> bool:
        return self.controller_port is not None


class LocalCluster(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster below one data directory."""

    data: str
    cluster_id: str
    host: str
    """The host of the clients' listeners; empty is every interface."""
    nodes: tuple[LocalNode, ...]

    @property
    def shape(self) -> Shape:
        return Shape(len(self.nodes), len(self.controllers))

    @property
    def is_secured(self) -> bool:
        return self.nodes[0].internal_port is not None

    @property
    def controllers(self) -> tuple[LocalNode, ...]:
        return tuple(node for node in self.nodes if node.is_controller)

    @property
    def first_voters(self) -> str:
        """The controllers in the form of `headrace format --initial-controllers`."""
        return ",".join(
            f"{node.id}@{node.host or LOOPBACK}:{node.controller_port}:{node.directory_id}"
            for node in self.controllers
        )

    @property
    def local_addresses(self) -> str:
        """The nodes' addresses for clients on this machine."""
        host = self.host or LOOPBACK
        return ",".join(address_text(node.host or host, node.port) for node in self.nodes)

    def directory_of(self, node: LocalNode) -> str:
        return os.path.join(self.data, node.name)

    def properties_path(self, node: LocalNode) -> str:
        return os.path.join(self.data, f"{node.name}.properties")


class ShapeChanged(HeadraceError):
    """The data directory holds a cluster of another number of nodes, or a single node."""


class SecurityChanged(HeadraceError):
    """The data directory is of open nodes and secured ones would start, or the reverse."""


def planned(
    data: str,
    shape: Shape,
    listen: str | None,
    default_listen: str,
    free_port: FreePort,
    random_id: Callable[[], str],
    *,
    is_secured: bool = False,
) -> LocalCluster:
    """Return the cluster of a data directory, or a new plan for it, which is stored.

    `listen` is the address of the first node's clients, if it was given; the others follow it. Port
    0 takes any free ports, once.
    """
    stored = read_plan(data)
    if is_secured:
        check_secured(data)
    else:
        check_open(data)
    if stored is None:
        _check_unused(data)
        plan = new_plan(
            data,
            shape,
            listen or default_listen,
            free_port,
            random_id,
            is_secured=is_secured,
        )
    else:
        check_shape(stored, shape)
        plan = moved(stored, listen)
    if plan != stored:
        files.make_directories(data)
        files.replace_file(os.path.join(data, PLAN_FILE), plan_text(plan).encode())
    return plan


def new_plan(
    data: str,
    shape: Shape,
    listen: str,
    free_port: FreePort,
    random_id: Callable[[], str],
    *,
    is_secured: bool = False,
) -> LocalCluster:
    """Choose ports and ids for a new cluster."""
    address = _listen_address(listen)
    ports = _client_ports(address.port, shape.nodes, free_port)
    taken = set(ports)
    nodes = []
    for number, port in enumerate(ports, 1):
        is_controller = number <= shape.controllers
        controller_port = _taken_port(taken, free_port) if is_controller else None
        nodes.append(
            LocalNode(
                id=number,
                port=port,
                controller_port=controller_port,
                internal_port=_taken_port(taken, free_port) if is_secured else None,
                directory_id=random_id() if is_controller else None,
            )
        )
    return LocalCluster(data=data, cluster_id=random_id(), host=address.host, nodes=tuple(nodes))


def moved(cluster: LocalCluster, listen: str | None) -> LocalCluster:
    """Return the cluster at another address for clients; port 0 keeps the ports it has."""
    if listen is None:
        return cluster
    address = _listen_address(listen)
    nodes = cluster.nodes
    if address.port:
        ports = _client_ports(address.port, len(nodes), _no_port)
        nodes = tuple(
            msgspec.structs.replace(node, port=port)
            for node, port in zip(nodes, ports, strict=True)
        )
    return msgspec.structs.replace(cluster, host=address.host, nodes=nodes)


def check_shape(stored: LocalCluster, wanted: Shape) -> None:
    """Raise if the data directory holds a cluster of another shape."""
    if stored.shape != wanted:
        raise ShapeChanged(
            f"{stored.data} holds a cluster of {stored.shape.nodes} nodes, "
            f"{stored.shape.controllers} of them controllers: start it with {stored.shape}, or "
            "choose another --data for a new cluster"
        )


def check_single(data: str) -> None:
    """Raise if a single node would start on the data directory of a cluster."""
    stored = read_plan(data)
    if stored is not None:
        raise ShapeChanged(
            f"{data} holds a cluster of {stored.shape.nodes} nodes: start it with {stored.shape}, "
            "or choose another --data for a single node"
        )


def is_secured(data: str) -> bool:
    """Return whether `headrace up --secure` has made a data directory."""
    return os.path.exists(os.path.join(data, SECURITY_FOLDER, "client.properties"))


def check_open(data: str) -> None:
    """Raise if open nodes would start on the data directory of secured ones."""
    if is_secured(data):
        raise SecurityChanged(
            f"{data} was made by --secure: start it with --secure, or its nodes one by one with"
            " --config"
        )


def check_secured(data: str) -> None:
    """Raise if secured nodes would start on a data directory of open ones."""
    names = ("meta.properties", PLAN_FILE)
    is_used = any(os.path.exists(os.path.join(data, name)) for name in names)
    if is_used and not is_secured(data):
        raise SecurityChanged(
            f"{data} was made without --secure: choose another --data, or close its listeners step"
            " by step (guide: docs/guides/security.md)"
        )


def plan_text(cluster: LocalCluster) -> str:
    """Return the stored form of a plan."""
    internal = ",".join(str(node.internal_port) for node in cluster.nodes)
    return render(
        {
            "cluster.id": cluster.cluster_id,
            "host": cluster.host,
            "ports": ",".join(str(node.port) for node in cluster.nodes),
            "controllers": cluster.first_voters,
            **({"internal.ports": internal} if cluster.is_secured else {}),
        },
        comment="The nodes of this cluster, written by `headrace up`; do not change it.",
    )


def read_plan(data: str) -> LocalCluster | None:
    """Return the stored plan of a data directory; None if it holds no cluster."""
    path = os.path.join(data, PLAN_FILE)
    try:
        stored = parse(files.read(path).decode())
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        controllers = dict(_stored_controllers(stored["controllers"]))
        ports = stored["ports"].split(",")
        internal = stored.get("internal.ports", "," * (len(ports) - 1)).split(",")
        nodes = tuple(
            LocalNode(
                id=number,
                port=int(port),
                controller_port=controllers[number][0] if number in controllers else None,
                internal_port=int(internal_port) if internal_port else None,
                directory_id=controllers[number][1] if number in controllers else None,
            )
            for number, (port, internal_port) in enumerate(zip(ports, internal, strict=True), 1)
        )
        return LocalCluster(
            data=data, cluster_id=stored["cluster.id"], host=stored["host"], nodes=nodes
        )
    except (KeyError, ValueError) as error:
        raise HeadraceError(f"{path} is damaged; restore it from a copy") from error


def replication_defaults(shape: Shape) -> dict[str, str]:
    """Return the settings by which topics survive the death of a node.

    Brokers beside a single controller share the work of one machine: they have no copies, as a
    single node has none.
    """
    copies = REPLICATION_FACTOR if shape.controllers > 1 else 1
    in_sync = max(copies - 1, 1)
    return {
        "default.replication.factor": str(copies),
        "min.insync.replicas": str(in_sync),
        "offsets.topic.replication.factor": str(copies),
        "transaction.state.log.replication.factor": str(copies),
        "transaction.state.log.min.isr": str(in_sync),
        "share.coordinator.state.topic.replication.factor": str(copies),
        "share.coordinator.state.topic.min.isr": str(in_sync),
    }


def node_properties(
    cluster: LocalCluster,
    node: LocalNode,
    shared: Mapping[str, str],
    metrics_port: int | None = None,
    security: NodeSecurity | None = None,
) -> dict[str, str]:
    """Return the properties of one node; `shared` are those given for all of them."""
    own = [name for name in _PER_NODE if name in shared]
    if own:
        raise InvalidConfig(
            f"{own[0]} is chosen for each node of the cluster; remove it, or write a file for each "
            "node and start it with --config"
        )
    properties = {
        "node.id": str(node.id),
        "process.roles": "broker,controller" if node.is_controller else "broker",
        "listeners": ",".join(_listeners(cluster, node)),
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": ",".join(
            f"{one.host or LOOPBACK}:{one.controller_port}" for one in cluster.controllers
        ),
        "inter.broker.listener.name": BROKERS if cluster.is_secured else OPEN,
        "log.dirs": cluster.directory_of(node),
        **replication_defaults(cluster.shape),
        **(shared if security is None else security.node_properties(node.name, shared)),
    }
    if metrics_port is not None:
        port = metrics_port and metrics_port + node.id - 1
        properties["headrace.metrics.port"] = str(port)
    return properties


def write_properties(
    cluster: LocalCluster,
    shared: Mapping[str, str],
    metrics_port: int | None = None,
    security: NodeSecurity | None = None,
) -> None:
    """Write the properties file of each node; those of secured nodes have secrets."""
    comment = "Written by `headrace up` at each start: change the options there instead."
    for node in cluster.nodes:
        properties = node_properties(cluster, node, shared, metrics_port, security)
        text = render(properties, comment).encode()
        if security is None:
            files.replace_file(cluster.properties_path(node), text, sync=False)
        else:
            files.replace_secret(cluster.properties_path(node), text)


def stop_order(cluster: LocalCluster) -> list[list[int]]:
    """Return the node ids in the order of stopping, in groups that stop together.

    One node after the other, so that leaders move: first brokers, then controllers while the
    others keep a majority. The last majority stops together, because the rest of it could commit
    nothing.
    """
    controllers = [node.id for node in cluster.controllers]
    brokers = [node.id for node in cluster.nodes if not node.is_controller]
    majority = len(controllers) // 2 + 1
    single = [*reversed(brokers), *reversed(controllers[majority:])]
    return [*([one] for one in single), controllers[:majority]]


def _listeners(cluster: LocalCluster, node: LocalNode) -> Iterator[str]:
    clients = CLIENTS if cluster.is_secured else OPEN
    yield f"{clients}://{address_text(node.host or cluster.host, node.port)}"
    if node.internal_port is not None:
        yield f"{BROKERS}://{node.host or LOOPBACK}:{node.internal_port}"
    if node.controller_port is not None:
        yield f"{CONTROLLERS}://{node.host or LOOPBACK}:{node.controller_port}"


def _client_ports(first: int, count: int, free_port: FreePort) -> list[int]:
    if first:
        if first + count - 1 > 65535:
            raise InvalidConfig(f"the ports from {first} on do not suffice for {count} nodes")
        return list(range(first, first + count))
    ports: list[int] = []
    for _ in range(count):
        ports.append(free_port(ports))
    return ports


def _taken_port(taken: set[int], free_port: FreePort) -> int:
    port = free_port(taken)
    taken.add(port)
    return port


def _listen_address(text: str) -> ControllerAddress:
    """Parse `host:port`; the host of every interface becomes empty, and port 0 is any."""
    host, _, port = text.rpartition(":")
    if host in ("", "0.0.0.0", "[::]"):
        return ControllerAddress("", int(port))
    return ControllerAddress(host.removeprefix("[").removesuffix("]"), int(port))


def _no_port(taken: Collection[int]) -> int:
    raise AssertionError("the ports are given")


def _stored_controllers(text: str) -> Iterator[tuple[int, tuple[int, str]]]:
    for part in text.split(","):
        address, _, directory_id = part.rpartition(":")
        node_id, _, rest = address.partition("@")
        found = parse_address(rest)
        if found is None or not directory_id:
            raise ValueError(text)
        yield int(node_id), (found.port, directory_id)


def _check_unused(data: str) -> None:
    if os.path.exists(os.path.join(data, "meta.properties")) or is_secured(data):
        raise ShapeChanged(
            f"{data} holds a single node: start it without --nodes and --brokers, or choose "
            "another --data for a cluster (make run: DATA=DIR)"
        )
