"""Whole quorum nodes over loopback sockets, as the processes of a cluster."""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from headrace.broker.registration import broker_registration, controller_registration
from headrace.metadata.image import Endpoint, MetadataImage
from headrace.protocol.schemas.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.quorum.lifecycle import NotRegistered
from headrace.quorum.quorum_node import QuorumNode
from tests.builders.metadata_quorums import CLUSTER_ID, LISTENER, directory_id
from tests.builders.quorum_nodes import HOST, bound, node_in, port_of, until

QUICK = {
    "controller_quorum_election_timeout_ms": 100,
    "controller_quorum_election_backoff_max_ms": 50,
    "controller_quorum_fetch_timeout_ms": 1000,
}


class Nodes:
    """Three controllers with brokers, and a broker alone."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._sockets: dict[int, socket.socket] = {one: bound() for one in (1, 2, 3)}
        self.ports = {one: port_of(sock) for one, sock in self._sockets.items()}
        self.up: dict[int, QuorumNode] = {}

    async def start(self, node_id: int, **settings: Any) -> QuorumNode:
        directory = self.directory / str(node_id)
        node = node_in(directory, self.ports, node_id, **QUICK, **settings)
        sock = self._sockets.pop(node_id, None)
        if sock is None and node_id in self.ports:
            sock = socket.create_server((HOST, self.ports[node_id]), reuse_port=False)
        await node.start([sock] if sock is not None else [])
        self.up[node_id] = node
        return node

    async def active(self) -> QuorumNode:
        await until(lambda: sum(one.controller.is_leading for one in self.up.values()) == 1)
        return next(one for one in self.up.values() if one.controller.is_leading)

    async def close(self, node: QuorumNode) -> None:
        del self.up[node.settings.node_id]
        await node.close()

    async def close_all(self) -> None:
        for node in list(self.up.values()):
            await self.close(node)
        for sock in self._sockets.values():
            sock.close()


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[Nodes]:
    nodes = Nodes(tmp_path)
    for node_id in (1, 2, 3, 4):
        await nodes.start(node_id)
    yield nodes
    await nodes.close_all()


async def joined(node: QuorumNode) -> int:
    """Register the node's broker, and have it unfenced."""
    node_id = node.settings.node_id
    node.controller.on_published(
        lambda _, image: setattr(node.lifecycle, "applied_offset", image.offset)
    )
    node.lifecycle.applied_offset = node.controller.image.offset
    request = broker_registration(
        node_id,
        CLUSTER_ID,
        [Endpoint("PLAINTEXT", HOST, 9092)],
        log_dirs=[directory_id(node_id)],
    )
    epoch = await node.register_broker(request, 20)
    await node.lifecycle.serve()
    return epoch


def is_active(node: QuorumNode, broker_id: int) -> bool:
    image: MetadataImage = node.controller.image
    return image.is_active(broker_id)


async def test_brokers_join_by_whichever_node_leads(nodes: Nodes) -> None:
    epochs = await asyncio.gather(*map(joined, nodes.up.values()))
    assert len(set(epochs)) == 4
    for node in nodes.up.values():
        await until(lambda node=node: all(is_active(node, one) for one in (1, 2, 3, 4)))


async def test_controllers_register(nodes: Nodes) -> None:
    for node_id in (1, 2, 3):
        endpoints = [Endpoint(LISTENER, HOST, nodes.ports[node_id])]
        await nodes.up[node_id].register_controller(controller_registration(node_id, endpoints))
    await until(lambda: sorted(nodes.up[4].controller.image.controllers) == [1, 2, 3])


async def test_another_node_leads_soon_after_the_leader_stops(nodes: Nodes) -> None:
    for node in nodes.up.values():
        await joined(node)
    first = await nodes.active()
    topics = CreateTopicsRequest([CreatableTopic("orders", 1, 1)])
    await nodes.up[4].ask(topics)
    loop = asyncio.get_running_loop()
    before = loop.time()
    await nodes.close(first)
    second = await nodes.active()
    assert loop.time() - before < 2
    assert list(second.controller.image.topics) == ["orders"]
    await nodes.up[4].ask(CreateTopicsRequest([CreatableTopic("more", 1, 1)]))
    again = await nodes.start(first.settings.node_id)
    await until(lambda: sorted(again.controller.image.topics) == ["more", "orders"])


async def test_a_request_outlives_the_leader_it_was_sent_to(nodes: Nodes) -> None:
    first = await nodes.active()
    await joined(nodes.up[4])
    asked = [
        asyncio.ensure_future(nodes.up[4].ask(CreateTopicsRequest([CreatableTopic(f"t{n}", 1, 1)])))
        for n in range(20)
    ]
    await asyncio.sleep(0)
    await nodes.close(first)
    await asyncio.gather(*asked)
    second = await nodes.active()
    assert len(second.controller.image.topics) == 20


async def test_the_process_of_a_broker_that_is_gone_is_fenced(nodes: Nodes) -> None:
    """Its port rejects connections, so the controller need not wait for the end of its session."""
    leader = await nodes.active()
    with bound() as port:
        endpoints = [Endpoint("PLAINTEXT", HOST, port_of(port))]
        node = nodes.up[4]
        request = broker_registration(4, CLUSTER_ID, endpoints, log_dirs=[directory_id(4)])
        node.lifecycle.applied_offset = 1 << 40
        await node.register_broker(request, 20)
        await node.lifecycle.serve()
        await until(lambda: is_active(leader, 4))
        port.setblocking(False)
        loop = asyncio.get_running_loop()
        # Each controller watches it.
        accepted = [(await loop.sock_accept(port))[0] for _ in range(3)]
    await node.lifecycle.close()
    for one in accepted:
        one.close()
    await until(lambda: not is_active(leader, 4), timeout_s=4)


async def test_a_broker_without_controllers_is_not_registered(tmp_path: Path) -> None:
    node = node_in(tmp_path, {1: 1}, 4)
    await node.start()
    request = broker_registration(4, CLUSTER_ID, [], log_dirs=[directory_id(4)])
    with pytest.raises(NotRegistered, match="Are a majority"):
        await node.register_broker(request, 0.3)
    await node.close()
