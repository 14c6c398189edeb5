"""Several unit-test brokers with one controller, connected in memory.

A request to another broker is encoded, decoded, served by the handler of that broker, and answered
the same way. Followers acknowledge records only when `follow_up` is called.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, cast

import msgspec

from headrace.broker.api.records.fetch import fetch
from headrace.broker.api.records.produce import produce
from headrace.broker.coordinators import Coordinator
from headrace.broker.direct_call import DirectCall
from headrace.broker.fetch_sessions import FetchSessions
from headrace.broker.produce.shapes import ProduceShapes
from headrace.broker.registered_schemas import RegisteredSchemas
from headrace.broker.shares.coordinator import ShareCoordinator
from headrace.broker.shares.partitions import SharePartitions
from headrace.broker.shares.persister import SharePersister
from headrace.broker.transactions import TransactionCoordinator
from headrace.metadata.delta import ImageDelta
from headrace.metadata.image import BrokerImage, Endpoint, MetadataImage, TopicImage
from headrace.peers.unreachable import PeerUnreachable
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.codec import decode, encode
from headrace.protocol.framing import read_response_header
from headrace.protocol.message import Message
from headrace.protocol.schemas.fetch import FetchRequest, FetchResponse
from headrace.protocol.schemas.produce import ProduceRequest, ProduceResponse
from headrace.replication.delayed import WakeUps
from headrace.security.principals import ANONYMOUS
from headrace.settings.broker import BrokerSettings
from headrace.storage.reading import LogSlice
from tests.unit.broker.api.builders import (
    BROKER_EPOCH,
    LISTENER,
    InstantController,
    UnitBroker,
    ask,
    image_with,
)


class Wire:
    """The connection of a request whose handler answers it directly."""

    def __init__(self) -> None:
        self.host, self.listener = "10.0.0.9", LISTENER
        self.peer = "a broker"
        self.principal, self.access = ANONYMOUS, None
        self.closed = False
        self.produce_shape = None
        self.answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def answer_parts(self, parts: Iterable[Any]) -> None:
        frame = b"".join(one.read() if isinstance(one, LogSlice) else one for one in parts)
        self.answered.set_result(frame[4:])

    finish = answer_parts

    def wait(self, on_abandoned: object = None) -> None: ...

    def close(self) -> None:
        self.answered.set_exception(PeerUnreachable("the connection was closed"))

    fail = close


class Network:
    """The channels between some brokers, as `Peers`; a test cuts them."""

    def __init__(self) -> None:
        self.brokers: dict[int, NetworkBroker] = {}
        self.away: set[int] = set()
        self.asked: list[tuple[int, Message]] = []

    def requests(self, kind: type[Message]) -> list[tuple[int, Any]]:
        """Return the requests of one kind so far, each with its receiver."""
        return [one for one in self.asked if isinstance(one[1], kind)]

    async def ask(
        self,
        broker_id: int,
        request: Message,
        *,
        version: int | None = None,
        timeout_s: float = 30.0,
    ) -> Any:
        await asyncio.sleep(0)
        self.asked.append((broker_id, request))
        broker = self.brokers.get(broker_id)
        if broker is None or broker_id in self.away:
            raise PeerUnreachable(f"broker {broker_id} cannot be reached", is_refused=True)
        version = request.VERSIONS[-1] if version is None else version
        if isinstance(request, ProduceRequest):
            return await _direct(broker, request, ProduceResponse, version)
        if isinstance(request, FetchRequest):
            return await _direct(broker, request, FetchResponse, version)
        return await ask(broker, ApiKey(request.API_KEY), request, version)


async def _direct(
    broker: "NetworkBroker", request: Message, response_type: type[Message], version: int
) -> Any:
    wire = Wire()
    call = DirectCall(cast(Any, broker), cast(Any, wire), request.API_KEY, version, 7)
    body = bytes(encode(request, version))
    if isinstance(request, ProduceRequest):
        produce(memoryview(bytearray(body)), 0, call)
    else:
        fetch(decode(FetchRequest, version, body), call)
    frame = await wire.answered
    _, position = read_response_header(memoryview(frame), request.API_KEY, version)
    return decode(response_type, version, frame[position:])


class NetworkBroker(UnitBroker):
    """A broker with all coordinators."""

    def __init__(self, directory: Path, node_id: int, cluster: "Cluster") -> None:
        super().__init__(
            directory,
            cluster.settings,
            cluster.image,
            node_id=node_id,
            peers=cluster.network,
            controller=cluster.controller,
        )
        controller = cast(Any, self.controller)
        self._woken: WakeUps | None = None
        resources = self.coordinator_resources
        self.transactions = TransactionCoordinator(
            resources,
            self.groups,
            self.producer_ids,
            controller,
            self.configs,
            self.metrics.coordinators,
        )
        self.share_coordinator = ShareCoordinator(
            resources, controller, self.configs, self.metrics.coordinators
        )
        self.share_persister = SharePersister(self.share_coordinator, resources)
        self.registered_schemas = RegisteredSchemas(self.partitions, cluster.network)
        self.configs._schemas = self.registered_schemas
        self.produce_shapes = ProduceShapes()
        self.fetch_sessions = FetchSessions(10)
        self.share_partitions = SharePartitions(
            self.share_persister,
            self.leaders,
            controller,
            self.configs,
            self.clock,
            self.tasks,
            self.wake_ups,
        )

    @property
    def wake_ups(self) -> WakeUps:
        if self._woken is None:
            self._woken = WakeUps(self.loop)
        return self._woken

    @property
    def coordinators(self) -> tuple[Coordinator[Any], ...]:
        return (self.groups, self.transactions.coordinator, self.share_coordinator.coordinator)

    def take(self, delta: ImageDelta, image: MetadataImage) -> None:
        """Take a published image, as the node does."""
        self._follow(delta, image)
        self.share_partitions.forget_moved()


class Cluster:
    """Brokers 1 to n and the metadata that they share."""

    def __init__(
        self, directory: Path, *topics: TopicImage, brokers: int = 2, **settings: Any
    ) -> None:
        few = {
            "offsets_topic_num_partitions": 1,
            "transaction_state_log_num_partitions": 1,
            "share_coordinator_state_topic_num_partitions": 1,
        }
        self.settings = BrokerSettings(**(few | settings))
        self.network = Network()
        self.image = image_with(
            brokers={number: _registered(number) for number in range(1, brokers + 1)}
        )
        self.controller: InstantController | None = None
        for number in range(1, brokers + 1):
            broker = NetworkBroker(directory / str(number), number, self)
            self.network.brokers[number] = broker
            self.controller = broker.controller
        self.published.on_published = self._published
        for topic in topics:
            self.put(topic)

    @property
    def published(self) -> InstantController:
        """The controller, with the image that all brokers have."""
        assert self.controller is not None
        return self.controller

    def __getitem__(self, number: int) -> NetworkBroker:
        return self.network.brokers[number]

    def put(self, topic: TopicImage) -> TopicImage:
        """Publish a topic, new or changed."""
        before = self.published.image
        image = msgspec.structs.replace(
            before,
            topics={**before.topics, topic.name: topic},
            topics_by_id={**before.topics_by_id, topic.id: topic},
        )
        self.published.image = image
        delta = ImageDelta(before)
        for broker in self.network.brokers.values():
            broker._host(topic)
            broker.take(delta, image)
        return topic

    def move(self, name: str, leader: int, index: int = 0) -> None:
        """Make another replica the leader of a partition, in a new epoch."""
        topic = self.published.image.topics[name]
        partitions = list(topic.partitions)
        old = partitions[index]
        partitions[index] = msgspec.structs.replace(
            old,
            leader=leader,
            leader_epoch=old.leader_epoch + 1,
            partition_epoch=old.partition_epoch + 1,
        )
        self.put(msgspec.structs.replace(topic, partitions=tuple(partitions)))

    def follow_up(self, name: str, index: int = 0) -> None:
        """Let all followers of a partition fetch up to its end."""
        for broker in self.network.brokers.values():
            topic = broker.partitions.by_wire_name.get(name.encode())
            partition = topic.partitions[index] if topic is not None else None
            if partition is None or partition.in_sync is None:
                continue
            log = partition.online_log()
            for follower in list(partition.in_sync.followers):
                partition.acknowledge(follower, log.log_end_offset, broker.clock.monotonic_ms())

    def _published(self, delta: ImageDelta, image: MetadataImage) -> None:
        for broker in self.network.brokers.values():
            broker.take(delta, image)


def _registered(number: int) -> BrokerImage:
    return BrokerImage(
        id=number,
        epoch=BROKER_EPOCH,
        incarnation_id=bytes(15) + bytes([number]),
        endpoints=(Endpoint(LISTENER, f"broker{number}.example", 9092),),
        fenced=False,
    )


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until a condition holds."""
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)


async def while_following(cluster: Cluster, name: str, work: Awaitable[Any]) -> Any:
    """Return the result of some work while the followers of a partition keep up."""
    task = asyncio.ensure_future(work)
    async with asyncio.timeout(10):
        while not task.done():
            await asyncio.sleep(0.001)
            cluster.follow_up(name)
    return await task
