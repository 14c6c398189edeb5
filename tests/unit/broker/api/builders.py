"""A broker small enough for unit tests: real decisions, images and logs, no socket and no quorum.

`InstantController` replays what is decided without writing it anywhere; everything else is what
the node itself is made of.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

from headrace.broker.api.registry import APIS, Call
from headrace.broker.configs.described_broker import DescribedBroker
from headrace.broker.coordinators import Coordinator, Timers
from headrace.broker.delayed import WakeUps
from headrace.broker.metrics.telemetry import Telemetry
from headrace.broker.partitions import Partitions
from headrace.broker.producer_ids import ProducerIds
from headrace.broker.topics.internal_topics import CONSUMER_OFFSETS
from headrace.broker.topics.metadata_answers import MetadataAnswers
from headrace.broker.topics.topic_creation import TopicCreation
from headrace.controller.decision import ClusterDefaults, Decide
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
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.codec import decode, encode
from headrace.protocol.message import Message
from headrace.protocol.uuids import random_uuid
from headrace.raft.formatting import voters_record
from headrace.runtime.metrics import Metrics, TopicMetrics
from headrace.runtime.tasks import Tasks
from headrace.settings.broker import BrokerSettings
from headrace.settings.topic import effective
from headrace.storage.config import LogConfig
from headrace.storage.directories import LogDirectories
from headrace.storage.log import Log
from headrace.storage.topic_partition import TopicPartition

T = TypeVar("T")
LISTENER = "PLAINTEXT"
NODE_ID = 1
DIRECTORY_ID = bytes(range(16))


class FixedPeer:
    """The other end of a connection that is none."""

    def __init__(self) -> None:
        self.host = "10.0.0.7"
        self.port = 40_000
        self.listener = LISTENER
        self.software = ("unknown", "unknown")


class HandClock:
    """A clock that moves when the test says so."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self.time_ms = now_ms

    def now_ms(self) -> int:
        return self.time_ms

    def monotonic_ms(self) -> int:
        return self.time_ms


class QuietLog:
    """What the metadata log tells of itself."""

    node_id = NODE_ID
    directory_id = DIRECTORY_ID
    kraft_version = 1
    leader_epoch = 3
    end_offset = 18
    high_watermark = 18
    voters = voters_record(NODE_ID, DIRECTORY_ID, Endpoint("CONTROLLER", "broker.example", 9093))


class InstantController:
    """Decides as the controller does and replays at once what it decided."""

    def __init__(self, image: MetadataImage, settings: BrokerSettings) -> None:
        self.image = image
        self.defaults = ClusterDefaults(
            num_partitions=settings.num_partitions,
            default_replication_factor=settings.default_replication_factor,
        )
        self.log = QuietLog()
        self.decisions = 0
        self.on_published: Callable[[ImageDelta, MetadataImage], None] = lambda delta, image: None

    async def submit(self, decide: Decide[T]) -> T:
        decision = decide(self.image)
        self.decisions += 1
        await asyncio.sleep(0)
        if decision.records:
            delta = ImageDelta(self.image)
            for record in decision.records:
                delta.replay(record.message)
            self.image = delta.image(self.image.offset + len(decision.records), 1, 0)
            self.on_published(delta, self.image)
        return decision.reply


class UnitBroker:
    """What handlers use of a broker."""

    def __init__(self, directory: Path, settings: BrokerSettings, image: MetadataImage) -> None:
        self.settings = settings
        self.node_id = NODE_ID
        self.cluster_id = "unit-test-cluster-id-0"
        self.controller = InstantController(image, settings)
        self.controller.on_published = self._follow
        self.partitions = Partitions()
        self.clock = HandClock()
        self.metrics = Metrics()
        self.telemetry = Telemetry(settings.telemetry_max_bytes)
        self.metadata_answers = MetadataAnswers()
        self.described_broker = DescribedBroker()
        self.topic_creation = TopicCreation(cast(Any, self))
        self.producer_ids = ProducerIds(cast(Any, self))
        self.directories = LogDirectories.open([str(directory)], {str(directory): DIRECTORY_ID})
        self.timers = Timers(cast(Any, self))
        self.groups = Coordinator(cast(Any, self), CONSUMER_OFFSETS, self._new_group_shard)

    def _new_group_shard(self, partition: int) -> GroupShard:
        return GroupShard(lambda: self.settings, lambda: self.image, self.metrics.coordinators)

    @property
    def coordinators(self) -> tuple[Coordinator[Any], ...]:
        return (self.groups,)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    @cached_property
    def tasks(self) -> Tasks:
        return Tasks(self.loop)

    @property
    def wake_ups(self) -> WakeUps:
        return WakeUps(self.loop)

    @property
    def image(self) -> MetadataImage:
        return self.controller.image

    async def background(self, function: Callable[..., T], *arguments: Any) -> T:
        return function(*arguments)

    def log(self, topic: str, index: int) -> Log:
        return self.partitions.find(topic, index).online_log()

    def _follow(self, delta: ImageDelta, image: MetadataImage) -> None:
        for gone in delta.topics_deleted:
            self.partitions.drop(gone.id)
        for topic_id in (*delta.topics_created, *delta.topics_changed):
            self._host(image.topics_by_id[topic_id])
        for coordinator in self.coordinators:
            coordinator.follow(image)

    def _host(self, topic: TopicImage) -> None:
        hosted = self.partitions.host(topic, NODE_ID, TopicMetrics())
        overrides = self.image.configs_of(ResourceType.TOPIC, topic.name)
        config = LogConfig(**effective(overrides, self.settings))
        for partition in hosted.partitions:
            if partition is not None and partition.log is None:
                name = TopicPartition(topic.name, partition.index)
                partition.log = self.directories.log_of(name, topic.id, config)


def a_broker(directory: Path, **settings: Any) -> UnitBroker:
    """A broker of one node without topics; keywords are settings."""
    return UnitBroker(directory, BrokerSettings(**settings), image_with())


def image_with(*topics: TopicImage, **changes: Any) -> MetadataImage:
    """The metadata of a single live node."""
    this = BrokerImage(
        id=NODE_ID,
        epoch=5,
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
