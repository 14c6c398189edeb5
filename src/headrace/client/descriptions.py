"""Descriptions of a cluster as typed values, which encode to JSON as they are."""

from collections.abc import Mapping

import msgspec

CONFIG_SOURCES: dict[int, str] = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "DYNAMIC_CLIENT_METRICS_CONFIG",
    8: "DYNAMIC_GROUP_CONFIG",
}
CONFIG_TYPES: dict[int, str] = {
    1: "BOOLEAN",
    2: "STRING",
    3: "INT",
    4: "SHORT",
    5: "LONG",
    6: "DOUBLE",
    7: "LIST",
    8: "CLASS",
    9: "PASSWORD",
}
RESOURCE_TYPES: dict[str, int] = {
    "topic": 2,
    "broker": 4,
    "broker-logger": 8,
    "client-metrics": 16,
    "group": 32,
}
CONFIG_OPERATIONS: dict[str, int] = {"set": 0, "delete": 1, "append": 2, "subtract": 3}


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a change to one resource."""

    name: str
    error: str | None = None
    message: str | None = None

    def __str__(self) -> str:
        return f"{self.name}: {self.error}: {self.message}" if self.error else self.name


class PartitionOutcome(msgspec.Struct, frozen=True, order=True):
    """The outcome of a change to one partition."""

    topic: str
    partition: int
    error: str | None = None
    message: str | None = None


class NewTopic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic to create; -1 is the broker's default."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    assignments: tuple[tuple[int, ...], ...] = ()
    """The replicas of each partition; if given, the two numbers are -1."""
    configs: Mapping[str, str] = {}


class TopicCreated(Outcome, frozen=True, kw_only=True):
    """A created topic, or the error of its creation."""

    topic_id: str | None = None
    partitions: int | None = None
    replication_factor: int | None = None


class PartitionDescription(msgspec.Struct, frozen=True, kw_only=True):
    """One partition with its leader and replicas."""

    partition: int
    leader: int | None
    leader_epoch: int
    replicas: list[int]
    isr: list[int]
    offline_replicas: list[int]

    @property
    def is_under_replicated(self) -> bool:
        return len(self.isr) < len(self.replicas)


class TopicDescription(msgspec.Struct, frozen=True, kw_only=True):
    """One topic with its partitions."""

    name: str
    topic_id: str | None
    is_internal: bool
    partitions: list[PartitionDescription]

    @property
    def replication_factor(self) -> int:
        return max((len(part.replicas) for part in self.partitions), default=0)


class ConfigSynonym(msgspec.Struct, frozen=True, kw_only=True):
    """A source of a value, in order of precedence."""

    name: str
    value: str | None
    source: str


class ConfigEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A setting with its effective value."""

    name: str
    value: str | None
    source: str
    type: str
    is_sensitive: bool
    is_read_only: bool
    synonyms: list[ConfigSynonym]
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        return self.source == "DEFAULT_CONFIG"


class ConfigChange(msgspec.Struct, frozen=True, kw_only=True):
    """One step of an incremental change: set, delete, append to or subtract from a list."""

    name: str
    operation: str
    value: str | None = None


class PartitionOffset(msgspec.Struct, frozen=True, kw_only=True):
    """An offset of a partition; -1 if no record matches."""

    partition: int
    offset: int
    timestamp: int
    leader_epoch: int


class ReplicaSize(msgspec.Struct, frozen=True, kw_only=True):
    """The size of one replica on a disk."""

    topic: str
    partition: int
    size_bytes: int
    offset_lag: int
    is_future: bool


class LogDirectory(msgspec.Struct, frozen=True, kw_only=True):
    """One log directory of a broker."""

    broker: int
    path: str
    error: str | None
    total_bytes: int | None
    usable_bytes: int | None
    replicas: list[ReplicaSize]


class ActiveProducer(msgspec.Struct, frozen=True, kw_only=True):
    """A producer that a partition remembers."""

    partition: int
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    transaction_start_offset: int | None


class BrokerDescription(msgspec.Struct, frozen=True, kw_only=True):
    """One broker of a cluster."""

    id: int
    host: str
    port: int
    rack: str | None
    is_controller: bool
    is_fenced: bool


class QuorumReplica(msgspec.Struct, frozen=True, kw_only=True):
    """The position of one node in the metadata log."""

    id: int
    role: str
    log_end_offset: int
    lag: int
    directory_id: str | None = None
    behind_ms: int | None = None
    """Time since the node had all records of the leader; None if the broker does not report it."""


class QuorumDescription(msgspec.Struct, frozen=True, kw_only=True):
    """The metadata quorum."""

    leader: int
    leader_epoch: int
    high_watermark: int
    replicas: list[QuorumReplica]


class FeatureDescription(msgspec.Struct, frozen=True, kw_only=True):
    """A feature: the versions that a broker supports, and the level of the cluster."""

    name: str
    min_version: int
    max_version: int
    finalized: int | None


class ClusterDescription(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster in brief."""

    cluster_id: str | None
    brokers: list[BrokerDescription]
    quorum: QuorumDescription | None
    features: list[FeatureDescription]
