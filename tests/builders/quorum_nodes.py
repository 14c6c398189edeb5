"""Quorum nodes over their directories, built from settings as a process builds them."""

import asyncio
import socket
from pathlib import Path
from typing import Any

from headrace.metadata.image import Endpoint
from headrace.metadata.log.formatting import NewNode, Voter, format_directories
from headrace.quorum.quorum_node import MetadataPlace, QuorumNode
from headrace.raft import replicas as raft
from headrace.runtime.clock import SystemClock
from headrace.settings.broker import BrokerSettings
from headrace.storage.checkpoints import decode_identity
from tests.builders.metadata_nodes import NOW_MS, at_once
from tests.builders.metadata_quorums import CLUSTER_ID, LISTENER, directory_id

HOST = "127.0.0.1"


def bound() -> socket.socket:
    """A listening port of its own."""
    return socket.create_server((HOST, 0))


def port_of(sock: socket.socket) -> int:
    port: int = sock.getsockname()[1]
    return port


def node_in(
    directory: Path, ports: dict[int, int], node_id: int = 1, **settings: Any
) -> QuorumNode:
    """A node among the voters whose controller listeners have these ports; others observe."""
    is_controller = node_id in ports
    voters = [
        Voter(one, directory_id(one), Endpoint(LISTENER, HOST, port)) for one, port in ports.items()
    ]
    node = NewNode(node_id=node_id, voters=voters if is_controller else (), cluster_id=CLUSTER_ID)
    format_directories([str(directory)], str(directory), node, NOW_MS)
    identity = decode_identity((directory / "meta.properties").read_bytes())
    listeners = ["PLAINTEXT://:0"]
    if is_controller:
        listeners.append(f"{LISTENER}://{HOST}:{ports[node_id]}")
    return QuorumNode(
        BrokerSettings(
            node_id=node_id,
            process_roles=("broker", "controller") if is_controller else ("broker",),
            controller_quorum_bootstrap_servers=tuple(f"{HOST}:{one}" for one in ports.values()),
            controller_listener_names=(LISTENER,),
            listeners=tuple(listeners),
            **settings,
        ),
        MetadataPlace(CLUSTER_ID, str(directory), identity.directory_id),
        [raft.Endpoint(LISTENER, HOST, ports[node_id])] if is_controller else [],
        clock=SystemClock(),
        background=at_once,
    )


async def until(holds: Any, timeout_s: float = 30.0) -> None:
    async with asyncio.timeout(timeout_s):
        while not holds():
            await asyncio.sleep(0.01)
