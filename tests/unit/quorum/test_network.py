"""The network of a replica over loopback sockets: answers, failures, processes that are gone."""

import asyncio
from typing import Any

import pytest

from headrace.protocol.message import Message
from headrace.protocol.schemas.vote import VoteResponse
from headrace.quorum.listener import ControllerListener, api_versions
from headrace.quorum.network import QuorumNetwork
from headrace.raft import messages
from headrace.raft.effects import Request
from headrace.raft.log import OffsetAndEpoch
from headrace.raft.messages import Leadership
from headrace.raft.replicas import Node, ReplicaKey
from headrace.security.principals import Caller
from tests.builders.quorum_nodes import HOST, bound, port_of, until


def vote_from(node_id: int) -> Message:
    last = OffsetAndEpoch(0, 0)
    return messages.vote_request("c", ReplicaKey(node_id), ReplicaKey(2), 1, last, pre_vote=False)


def fetch_from(node_id: int) -> Message:
    return messages.fetch_request("c", ReplicaKey(node_id), 1, OffsetAndEpoch(0, 0), -1, 100)


class Peer:
    """A process that grants votes, and lets fetches wait."""

    def __init__(self) -> None:
        self.port = 0
        self.asked: list[Message] = []
        self.never = asyncio.Event()
        self._listener = ControllerListener(self.serve)

    async def start(self) -> None:
        sock = bound()
        self.port = port_of(sock)
        await self._listener.listen([sock])

    async def serve(self, request: Message, version: int, caller: Caller) -> Message:
        if request.API_KEY == 18:
            return api_versions(0, {})
        self.asked.append(request)
        if request.API_KEY == 1:
            await self.never.wait()
        return messages.vote_answer(0, Leadership(1), granted=True)

    def disconnect(self) -> None:
        """Lose the connections, and accept new ones."""
        for connection in list(self._listener._connections):
            connection.close()

    def end(self) -> None:
        self._listener.close()


class Replica:
    """The callbacks of a replica."""

    def __init__(self, timeout_ms: int = 5000) -> None:
        self.answered: dict[int, Any] = {}
        self.failed: list[int] = []
        self.refused: list[int] = []
        self.network = QuorumNetwork(
            1, request_timeout_ms=timeout_ms, on_refused=self.refused.append
        )

    def send(self, token: int, port: int, message: Message, node_id: int = 2) -> None:
        request = Request(token, Node(node_id, HOST, port), message)
        self.network.send(request, self.answered.__setitem__, self.failed.append)


@pytest.fixture
async def peer() -> Any:
    peer = Peer()
    await peer.start()
    yield peer
    peer.end()


@pytest.fixture
async def replica() -> Any:
    replica = Replica()
    yield replica
    await replica.network.close()


async def test_answers_come_with_the_tokens_of_their_requests(peer: Peer, replica: Replica) -> None:
    for token in range(5):
        replica.send(token, peer.port, vote_from(token))
    await until(lambda: len(replica.answered) == 5)
    assert {type(one) for one in replica.answered.values()} == {VoteResponse}
    assert replica.failed == []


async def test_a_vote_does_not_wait_for_a_parked_fetch(peer: Peer, replica: Replica) -> None:
    replica.send(1, peer.port, fetch_from(1))
    await until(lambda: len(peer.asked) == 1)
    replica.send(2, peer.port, vote_from(1))
    await until(lambda: 2 in replica.answered)
    assert 1 not in replica.answered


async def test_a_request_fails_when_its_time_is_up(peer: Peer) -> None:
    replica = Replica(timeout_ms=50)
    replica.send(1, peer.port, fetch_from(1))
    await until(lambda: replica.failed == [1])
    await replica.network.close()
    assert replica.refused == []


async def test_a_process_that_is_gone_is_noticed_at_once(peer: Peer, replica: Replica) -> None:
    replica.send(1, peer.port, fetch_from(1))
    await until(lambda: len(peer.asked) == 1)
    peer.end()
    await until(lambda: replica.failed == [1])
    await until(lambda: replica.refused == [2], timeout_s=2)


async def test_a_lost_connection_alone_proves_nothing(peer: Peer, replica: Replica) -> None:
    replica.send(1, peer.port, fetch_from(1))
    await until(lambda: len(peer.asked) == 1)
    peer.disconnect()
    await until(lambda: replica.failed == [1])
    replica.send(2, peer.port, vote_from(1))
    await until(lambda: 2 in replica.answered)
    await asyncio.sleep(0.3)
    assert replica.refused == []


async def test_a_process_that_was_never_reached_is_not_taken_for_gone(replica: Replica) -> None:
    """It may start at any time."""
    with bound() as sock:
        port = port_of(sock)
    replica.send(1, port, vote_from(1))
    await until(lambda: replica.failed == [1])
    await asyncio.sleep(0.3)
    assert replica.refused == []


async def test_nothing_is_called_back_after_the_end(peer: Peer, replica: Replica) -> None:
    replica.send(1, peer.port, fetch_from(1))
    await until(lambda: len(peer.asked) == 1)
    await replica.network.close()
    replica.send(2, peer.port, vote_from(1))
    await asyncio.sleep(0.1)
    assert (replica.answered, replica.failed, replica.refused) == ({}, [], [])
