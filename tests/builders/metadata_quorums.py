"""Replicas of a metadata quorum in directories, with controllers and a network in memory.

Everything runs in virtual time. Messages pass through their encoding.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from headrace.controller.controller import Controller
from headrace.controller.decision import Decision
from headrace.errors import KafkaError
from headrace.metadata.delta import ImageDelta
from headrace.metadata.image import EMPTY, Endpoint, MetadataImage
from headrace.metadata.log.formatting import NewNode, Voter, format_directories
from headrace.metadata.log.metadata_log import MetadataLog, MetadataLogSettings
from headrace.metadata.records import VersionedRecord
from headrace.protocol.message import Message
from headrace.protocol.schemas.records.metadata import ConfigRecord
from headrace.quorum.metadata_quorum import MetadataQuorum
from headrace.raft import replicas as raft
from headrace.raft.effects import LocalReplica, Request, Timeouts
from headrace.settings.broker import BrokerSettings
from tests.builders.metadata_nodes import Background, at_once
from tests.builders.quorums import over_the_wire
from tests.builders.virtual_time import START_MS, LoopClock

CLUSTER_ID = "c" * 22
LISTENER = "CONTROLLER"
_PORT = 9000
_LATENCY_S = 0.001
_TIMEOUT_S = 0.5


def directory_id(node_id: int) -> bytes:
    return bytes([node_id]) * 16


def setting(name: str, value: str = "x") -> Callable[[MetadataImage], Decision[None]]:
    """A decision to set a config of all brokers."""
    return writing(ConfigRecord(4, "", name, value))


def writing(*records: Message) -> Callable[[MetadataImage], Decision[None]]:
    return lambda image: Decision([VersionedRecord(one) for one in records], None)


class Member:
    """One node: its replica, and its controller."""

    def __init__(self, cluster: "Cluster", node_id: int, *, is_controller: bool) -> None:
        self.id = node_id
        self.published: list[tuple[ImageDelta, MetadataImage]] = []
        self.checked = EMPTY
        """The last image that a test has checked."""
        self.is_up = True
        self.failures: list[KafkaError] = []
        self._cluster = cluster
        clock = LoopClock()
        endpoint = raft.Endpoint(LISTENER, f"host{node_id}", _PORT + node_id)
        local = LocalReplica(
            key=raft.ReplicaKey(node_id, directory_id(node_id)),
            cluster_id=CLUSTER_ID,
            listener=LISTENER,
            endpoints=(endpoint,) if is_controller else (),
            bootstrap=tuple(
                raft.Node(-1 - one, f"host{one}", _PORT + one) for one in cluster.voters
            ),
            is_controller=is_controller,
        )
        self.quorum = MetadataQuorum(
            local,
            MetadataLog.open(str(cluster.path(node_id)), settings=cluster.settings, clock=clock),
            raft.VoterSet(),
            Timeouts(),
            clock=clock,
            background=cluster.background,
            network=self,
            chance=Random(node_id),
        )
        self.controller = Controller(
            self.quorum, clock, at_once, BrokerSettings(), may_lead=is_controller
        )
        self.controller.on_published(lambda delta, image: self.published.append((delta, image)))
        self.quorum.on_leadership = self.controller.led_by
        self.quorum.on_committed = self.controller.committed
        self.quorum.on_failure = self._failed

    @property
    def image(self) -> MetadataImage:
        return self.controller.image

    @property
    def leads(self) -> bool:
        return self.is_up and self.controller.is_leading

    def _failed(self, error: KafkaError) -> None:
        self.failures.append(error)
        self.controller.failed(error)  # type: ignore[arg-type]

    async def stop(self) -> None:
        """Leave the quorum as a node does that stops."""
        self.quorum.resign()
        await asyncio.sleep(2 * _LATENCY_S)
        await self.kill()

    async def kill(self) -> None:
        """End without a word to the others."""
        self.is_up = False
        await self.controller.close()
        await self.quorum.close()

    # The network of the replica.

    def send(
        self,
        request: Request,
        answered: Callable[[int, Any], None],
        failed: Callable[[int], None],
    ) -> None:
        self._cluster.start(self._deliver(request, answered, failed))

    async def _deliver(
        self,
        request: Request,
        answered: Callable[[int, Any], None],
        failed: Callable[[int], None],
    ) -> None:
        await asyncio.sleep(_LATENCY_S)
        to = self._cluster.at(request.to.port)
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                answer = await self._cluster.carry(self, to, request.message)
            await asyncio.sleep(_LATENCY_S)
        except (KafkaError, TimeoutError):
            failed(request.token)
        else:
            answered(request.token, over_the_wire(answer))


class Cluster:
    """Members, and the connections between them."""

    def __init__(
        self,
        directory: Path,
        voters: Sequence[int] = (1, 2, 3),
        *,
        settings: MetadataLogSettings | None = None,
        background: Background = at_once,
    ) -> None:
        self.directory = directory
        self.voters = voters
        self.settings = settings
        self.background = background
        self.members: dict[int, Member] = {}
        self.cut_off: set[int] = set()
        self.loss = 0.0
        """The part of the messages that is lost."""
        self._chance = Random(0)
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "Cluster":
        for node_id in self.voters:
            self.launch(node_id)
        return self

    async def __aexit__(self, *_: object) -> None:
        for member in self.members.values():
            if member.is_up:
                await member.kill()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def path(self, node_id: int) -> Path:
        return self.directory / str(node_id)

    def launch(self, node_id: int) -> Member:
        """Start a node in its directory, which is formatted if it is new."""
        is_voter = node_id in self.voters
        voters = [
            Voter(one, directory_id(one), Endpoint(LISTENER, f"host{one}", _PORT + one))
            for one in self.voters
        ]
        node = NewNode(node_id=node_id, voters=voters if is_voter else (), cluster_id=CLUSTER_ID)
        path = str(self.path(node_id))
        format_directories([path], path, node, START_MS)
        member = self.members[node_id] = Member(self, node_id, is_controller=is_voter)
        member.quorum.start()
        return member

    async def active(self) -> Member:
        """The member whose controller decides; all others that are up follow it."""
        await self.until(lambda: sum(one.leads for one in self.up()) == 1)
        return next(one for one in self.up() if one.leads)

    async def level(self) -> Member:
        """Wait until every member that is up has published all committed changes."""
        leader = await self.active()
        await self.until(lambda: all(one.image.offset >= leader.image.offset for one in self.up()))
        return leader

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await asyncio.sleep(0.01)

    def up(self) -> list[Member]:
        return [one for one in self.members.values() if one.is_up and one.id not in self.cut_off]

    # The network.

    def start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def at(self, port: int) -> int:
        return port - _PORT

    async def carry(self, sender: Member, to: int, message: Message) -> Message:
        """Deliver a request; the time is up for one that cannot arrive, or whose answer cannot."""
        receiver = self.members.get(to)
        if receiver is None or not receiver.is_up or self._is_lost(sender.id, to):
            await asyncio.sleep(_TIMEOUT_S * 2)
        assert receiver is not None
        answer: Message = await receiver.quorum.ask(over_the_wire(message))
        if self._is_lost(sender.id, to):
            await asyncio.sleep(_TIMEOUT_S * 2)
        return answer

    def _is_lost(self, one: int, other: int) -> bool:
        return bool(self.cut_off & {one, other}) or self._chance.random() < self.loss
