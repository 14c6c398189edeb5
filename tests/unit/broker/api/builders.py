"""A broker small enough for unit tests: real decisions, images and logs, no socket and no quorum.

`InstantController` replays what is decided without writing it anywhere; everything else is what
the node itself is made of.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar, cast

from headrace.broker.api.registry import APIS, Call
from headrace.broker.configs.topic_configs import TopicConfigs
from headrace.broker.connection import LoginState
from headrace.broker.coordinators import Coordinator, CoordinatorResources, shard_timers
from headrace.broker.fetch_sessions import FetchSessions
from headrace.broker.isr_changes import IsrChanges
from headrace.broker.leaders import Leaders
from headrace.broker.metrics.counters import Metrics
from headrace.broker.metrics.telemetry import Telemetry
from headrace.broker.producer_ids import ProducerIds
from headrace.broker.replication_throttles import ReplicationThrottles
from headrace.broker.topics.internal_topics import CONSUMER_OFFSETS, create_internal
from headrace.broker.topics.metadata_answers import MetadataAnswers
from headrace.broker.topics.topic_creation import TopicCreation
from headrace.controller.decision import ClusterDefaults
from headrace.controller.requests import Context, decide
from headrace.groups.shard import GroupShard
from headrace.metadata.delta import ImageDelta
from headrace.metadata.features import DEFAULT_LEVELS, SUPPORTED
from headrace.metadata.image import (
    BrokerImage,
    ConfigResource,
    Endpoint,
    MetadataImage,
    PartitionImage,
    ResourceType,
    TopicImage,
)
from headrace.peers.pool import Peers
from headrace.peers.unreachable import PeerUnreachable
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.codec import decode, encode
from headrace.protocol.message import Message
from headrace.protocol.metadata_topic import METADATA_TOPIC
from headrace.protocol.schemas import describe_quorum
from headrace.protocol.schemas.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    ReplicaState,
)
from headrace.protocol.uuids import random_uuid
from headrace.quorum.older_versions import in_version
from headrace.quotas.rates import Windows
from headrace.replication.delayed import WakeUps
from headrace.replication.metrics import TopicMetrics
from headrace.replication.partitions import Partitions
from headrace.runtime.tasks import Tasks
from headrace.security.access import OPEN, Access, Authorizer
from headrace.security.principals import ANONYMOUS, Caller, Principal
from headrace.settings.broker import BrokerSettings
from headrace.settings.topic import effective
from headrace.storage.config import LogConfig
from headrace.storage.directories import LogDirectories
from headrace.storage.log import Log
from headrace.storage.topic_partition import TopicPartition

T = TypeVar("T")
LISTENER = "PLAINTEXT"
NODE_ID = 1
BROKER_EPOCH = 5
DIRECTORY_ID = bytes(range(16))


class FixedPeer:
    """The peer of a call without a connection."""

    def __init__(self, principal: Principal = ANONYMOUS) -> None:
        self.host = "10.0.0.7"
        self.port = 40_000
        self.listener = LISTENER
        self.software = ("unknown", "unknown")
        self.principal = principal
        self.access: Access | None = None
        self.login: LoginState | None = None


class HandClock:
    """A clock that a test moves."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self.time_ms = now_ms

    def now_ms(self) -> int:
        return self.time_ms

    def monotonic_ms(self) -> int:
        return self.time_ms


def description_of_quorum() -> DescribeQuorumResponse:
    """The description of a quorum of one."""
    replica = ReplicaState(NODE_ID, DIRECTORY_ID, 18)
    partition = DescribeQuorumResponsePartitionData(0, 0, None, NODE_ID, 3, 18, [replica])
    topic = DescribeQuorumResponseTopicData(METADATA_TOPIC, [partition])
    address = describe_quorum.Listener("CONTROLLER", "broker.example", 9093)
    node = describe_quorum.Node(NODE_ID, [address])
    return DescribeQuorumResponse(topics=[topic], nodes=[node])


class InstantController:
    """Decides as the controller does and replays at once what it decided."""

    def __init__(self, image: MetadataImage, settings: BrokerSettings) -> None:
        self.image = image
        self.settings = settings
        self.defaults = ClusterDefaults.of(settings)
        self.kraft_version = 1
        self.decisions = 0
        self.wall_ms = 0
        self.authorizer: Authorizer | None = None
        self.on_published: Callable[[ImageDelta, MetadataImage], None] = lambda delta, image: None

    async def ask(
        self, request: Message, version: int | None = None, caller: Caller | None = None
    ) -> Any:
        await asyncio.sleep(0)
        if isinstance(request, DescribeQuorumRequest):
            return in_version(
                description_of_quorum(), request.VERSIONS[-1] if version is None else version
            )
        context = Context(
            node_id=NODE_ID,
            settings=self.settings,
            defaults=self.defaults,
            version=request.VERSIONS[-1] if version is None else version,
            next_offset=self.image.offset + 1,
            kraft_version=self.kraft_version,
            wall_ms=self.wall_ms,
            access=OPEN if caller is None else Access(self.authorizer, caller),
        )
        decision = decide(self.image, request, context)
        self.decisions += 1
        if decision.records:
            delta = ImageDelta(self.image)
            for record in decision.records:
                delta.replay(record.message)
            self.image = delta.image(self.image.offset + len(decision.records), 1, 0)
            self.on_published(delta, self.image)
        return decision.reply


class Alone:
    """The peers of a broker without any."""

    async def ask(
        self,
        broker_id: int,
        request: Message,
        *,
        version: int | None = None,
        timeout_s: float = 30.0,
    ) -> Any:
        raise PeerUnreachable(f"broker {broker_id} is not in this cluster")


class UnitBroker:
    """The parts of a broker that handlers use."""

    def __init__(
        self,
        directory: Path,
        settings: BrokerSettings,
        image: MetadataImage,
        *,
        node_id: int = NODE_ID,
        peers: Peers | None = None,
        controller: InstantController | None = None,
    ) -> None:
        self.node_id = node_id
        self.peers = peers or Alone()
        self.broker_epoch = BROKER_EPOCH
        self.cluster_id = "unit-test-cluster-id-0"
        self.controller = controller or InstantController(image, settings)
        self.controller.on_published = self._follow
        self.partitions = Partitions(lambda partition: self.wake_ups.changed(partition))
        self.clock = HandClock()
        self.metrics = Metrics()
        self.replication_throttles = ReplicationThrottles(self.clock, Windows())
        self.telemetry = Telemetry(settings.telemetry_max_bytes)
        self.tls = None  # It serves no encrypted listener.
        self.metadata_answers = MetadataAnswers()
        self.configs = TopicConfigs(settings, node_id, cast(Any, None))
        shared = cast(Any, self.controller)
        self.producer_ids = ProducerIds(shared, node_id, lambda: BROKER_EPOCH)
        self.directories = LogDirectories.open([str(directory)], {str(directory): DIRECTORY_ID})
        self.timers = shard_timers(self.clock)
        create = partial(create_internal, shared, self.configs)
        self.coordinator_resources = CoordinatorResources(
            node_id,
            self.partitions,
            self.clock,
            self.timers,
            create,
            lambda purpose: self.peers,
            cast(Any, self),
        )
        self.groups = Coordinator(
            self.coordinator_resources, CONSUMER_OFFSETS, self._new_group_shard
        )

    @property
    def settings(self) -> BrokerSettings:
        return self.configs.settings

    @property
    def authorizer(self) -> Authorizer | None:
        return self.controller.authorizer

    def _new_group_shard(self, partition: int) -> GroupShard:
        return GroupShard(lambda: self.settings, lambda: self.image, self.metrics.coordinators)

    @property
    def coordinators(self) -> tuple[Coordinator[Any], ...]:
        return (self.groups,)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    @cached_property
    def topic_creation(self) -> TopicCreation:
        return TopicCreation(cast(Any, self.controller), self.configs, self.tasks)

    @cached_property
    def tasks(self) -> Tasks:
        return Tasks(self.loop)

    @cached_property
    def fetch_sessions(self) -> FetchSessions:
        return FetchSessions(1000)

    @cached_property
    def isr_changes(self) -> IsrChanges:
        return IsrChanges(
            NODE_ID,
            self.partitions,
            self.controller.ask,
            self.clock,
            self.tasks,
            self.metrics.isr,
            image=lambda: self.image,
            broker_epoch=lambda: self.broker_epoch,
            settings=lambda: self.settings,
        )

    @cached_property
    def wake_ups(self) -> WakeUps:
        return WakeUps(self.loop)

    @property
    def image(self) -> MetadataImage:
        return self.controller.image

    def start(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Start a task by those that the broker has now; they need a loop that runs."""
        return self.tasks.start(work, name)

    @cached_property
    def leaders(self) -> Leaders:
        return Leaders(
            self.node_id,
            self.partitions,
            lambda: self.image,
            self.peers,
            self.clock,
            cast(Any, self),
        )

    async def background(self, function: Callable[..., T], *arguments: Any) -> T:
        return function(*arguments)

    def log(self, topic: str, index: int) -> Log:
        return self.partitions.led(topic, index).online_log()

    def _follow(self, delta: ImageDelta, image: MetadataImage) -> None:
        for gone in delta.topics_deleted:
            self.partitions.drop(gone.id)
        for topic_id in (*delta.topics_created, *delta.topics_changed):
            self._host(image.topics_by_id[topic_id])
        self.isr_changes.follow(delta, image)
        for coordinator in self.coordinators:
            coordinator.follow(image)

    def _host(self, topic: TopicImage) -> None:
        now_ms = self.clock.monotonic_ms()
        hosted = self.partitions.host(topic, self.node_id, TopicMetrics(), now_ms).topic
        overrides = self.image.configs_of(ResourceType.TOPIC, topic.name)
        config = LogConfig(**effective(overrides, self.settings))
        for partition in hosted.partitions:
            if partition is not None and partition.log is None:
                name = TopicPartition(topic.name, partition.index)
                partition.attach(self.directories.log_of(name, topic.id, config), now_ms)


def a_broker(directory: Path, **settings: Any) -> UnitBroker:
    """A broker of one node without topics; keywords are settings."""
    return UnitBroker(directory, BrokerSettings(**settings), image_with())


def image_with(*topics: TopicImage, **changes: Any) -> MetadataImage:
    """The metadata of a single live node."""
    this = BrokerImage(
        id=NODE_ID,
        epoch=BROKER_EPOCH,
        incarnation_id=random_uuid(),
        endpoints=(Endpoint(LISTENER, "broker.example", 9092),),
        features=SUPPORTED,
        fenced=False,
        directories=(DIRECTORY_ID,),
    )
    base: dict[str, Any] = {
        "topics": {topic.name: topic for topic in topics},
        "topics_by_id": {topic.id: topic for topic in topics},
        "brokers": {NODE_ID: this},
        "features": dict(DEFAULT_LEVELS),
        "offset": 17,
    }
    return MetadataImage(**{**base, **changes})


def a_topic(name: str, partitions: int = 1, **state: Any) -> TopicImage:
    """A topic on this node; keywords change all of its partitions."""
    defaults: dict[str, Any] = {
        "replicas": (NODE_ID,),
        "isr": (NODE_ID,),
        "leader": NODE_ID,
        "directories": (DIRECTORY_ID,),
    }
    partition = PartitionImage(**{**defaults, **state})
    return TopicImage(name, random_uuid(), (partition,) * partitions)


def with_configs(image: MetadataImage, kind: int, name: str, **configs: str) -> MetadataImage:
    """The image with configs set for a resource; underscores stand for dots."""
    named = {key.replace("_", "."): value for key, value in configs.items()}
    import msgspec

    changed = {**image.configs, ConfigResource(kind, name): named}
    return msgspec.structs.replace(image, configs=changed)


async def ask(
    broker: UnitBroker,
    key: ApiKey,
    request: Message,
    version: int | None = None,
    peer: FixedPeer | None = None,
    client_id: str | None = "unit",
) -> Any:
    """Send a request through its wire form and back, as dispatch does, and return the answer."""
    entry = APIS[key]
    version = entry.versions[-1] if version is None else version
    handler = entry.handler()
    decoded = decode(handler.request_type, version, encode(request, version))
    call = Call(cast(Any, broker), peer or FixedPeer(), version, client_id)
    from headrace.errors import KafkaError

    try:
        answer = handler.function(decoded, call)
        if isinstance(answer, Awaitable):
            answer = await answer
    except KafkaError as error:
        answer = handler.refuse(decoded, error, version)
    body = answer if isinstance(answer, bytes) else encode(answer, version)
    return decode(handler.response_type, version, body)
