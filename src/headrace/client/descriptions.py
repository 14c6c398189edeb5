"""What a cluster tells about itself, as typed values that print and encode to JSON as they are."""

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
    """How a change to one thing went."""

    name: str
    error: str | None = None
    message: str | None = None

    def __str__(self) -> str:
        return f"{self.name}: {self.error}: {self.message}" if self.error else self.name


class PartitionOutcome(msgspec.Struct, frozen=True, order=True):
    """How a change to one partition went."""

    topic: str
    partition: int
    error: str | None = None
    message: str | None = None


class NewTopic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic to create; -1 leaves a number to the broker's default."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    assignments: tuple[tuple[int, ...], ...] = ()
    """The replicas of each partition, chosen by hand; then the two numbers stay -1."""
    configs: Mapping[str, str] = {}


class TopicCreated(Outcome, frozen=True, kw_only=True):
    """A topic as it was made, or why it was not."""

    topic_id: str | None = None
    partitions: int | None = None
    replication_factor: int | None = None


class PartitionDescription(msgspec.Struct, frozen=True, kw_only=True):
    """One partition: who holds it, and who leads it."""

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
    """One of the places that a value may come from."""

    name: str
    value: str | None
    source: str


class ConfigEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A setting as it is in force."""

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
    """Where a partition stands; -1 where no record answers the question."""

    partition: int
    offset: int
    timestamp: int
    leader_epoch: int


class ReplicaSize(msgspec.Struct, frozen=True, kw_only=True):
    """What one replica takes on a disk."""

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
    """How far one node is in the metadata log."""

    id: int
    role: str
    log_end_offset: int
    lag: int


class QuorumDescription(msgspec.Struct, frozen=True, kw_only=True):
    """The metadata quorum."""

    leader: int
    leader_epoch: int
    high_watermark: int
    replicas: list[QuorumReplica]


class FeatureDescription(msgspec.Struct, frozen=True, kw_only=True):
    """A feature: what the asked broker supports, and the level that the cluster runs at."""

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
