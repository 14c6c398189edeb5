"""The metadata image: the committed metadata of the cluster up to one offset of its log.

An image never changes. `ImageDelta` builds the next one from an image and records, and both share
the unchanged parts. So any thread may read an image at any time and sees one consistent state.
"""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

import msgspec

from headrace.metadata.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    METADATA_VERSION,
    VersionRange,
)
from headrace.protocol.schemas.records.metadata import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    UserScramCredentialRecord,
)
from headrace.protocol.uuids import Uuid

NO_LEADER = -1
_UNUSED_PORT = 9093

MIGRATING_DIRECTORY: Uuid = bytes(16)
UNASSIGNED_DIRECTORY: Uuid = bytes(15) + b"\x01"
LOST_DIRECTORY: Uuid = bytes(15) + b"\x02"

Entity = tuple[tuple[str, str | None], ...]
"""The entity of a client quota: sorted (type, name) pairs; a null name is the type's default."""


class ResourceType(IntEnum):
    """Kinds of owners of dynamic configs, with Kafka's ids."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    """The owner of dynamic configs; a broker named "" means all brokers."""

    type: int
    name: str


class PartitionImage(msgspec.Struct, frozen=True, gc=False):
    """The replicas and the leader of a partition, with their epochs."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    directories: tuple[Uuid, ...] = ()
    removing: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    leader_recovery_state: int = 0
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    @property
    def preferred_leader(self) -> int:
        return self.replicas[0]

    def directory_of(self, replica: int) -> Uuid | None:
        """Return the log directory of a replica, if the metadata has it."""
        for holder, directory in zip(self.replicas, self.directories, strict=False):
            if holder == replica:
                return directory
        return None


class TopicImage(msgspec.Struct, frozen=True):
    """A topic, with each partition at its index."""

    name: str
    id: Uuid
    partitions: tuple[PartitionImage, ...]


class Endpoint(msgspec.Struct, frozen=True, gc=False):
    """The address of one listener of a node."""

    name: str
    host: str
    port: int
    security_protocol: int = 0


def unused_endpoint(listener: str) -> Endpoint:
    """Return the endpoint of the controller of a single node, to which no other one connects."""
    return Endpoint(listener, "localhost", _UNUSED_PORT)


class BrokerImage(msgspec.Struct, frozen=True):
    """A registered broker; only one that is neither fenced nor leaving may lead partitions."""

    id: int
    epoch: int
    incarnation_id: Uuid
    endpoints: tuple[Endpoint, ...] = ()
    features: Mapping[str, VersionRange] = {}
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    directories: tuple[Uuid, ...] = ()
    cordoned_directories: tuple[Uuid, ...] | None = None

    @property
    def is_active(self) -> bool:
        return not self.fenced and not self.in_controlled_shutdown


class ControllerImage(msgspec.Struct, frozen=True):
    """A registered controller."""

    id: int
    incarnation_id: Uuid
    endpoints: tuple[Endpoint, ...] = ()
    features: Mapping[str, VersionRange] = {}
    zk_migration_ready: bool = False


class MetadataImage(msgspec.Struct, frozen=True, kw_only=True):
    """The metadata of the cluster after the record at `offset` of `epoch`.

    ACLs, credentials and delegation tokens are kept as records.
    """

    topics: Mapping[str, TopicImage] = {}
    topics_by_id: Mapping[Uuid, TopicImage] = {}
    configs: Mapping[ConfigResource, Mapping[str, str]] = {}
    brokers: Mapping[int, BrokerImage] = {}
    controllers: Mapping[int, ControllerImage] = {}
    features: Mapping[str, int] = {}
    next_producer_id: int = 0
    client_quotas: Mapping[Entity, Mapping[str, float]] = {}
    acls: Mapping[Uuid, AccessControlEntryRecord] = {}
    scram_credentials: Mapping[tuple[int, str], UserScramCredentialRecord] = {}
    delegation_tokens: Mapping[str, DelegationTokenRecord] = {}
    offset: int = -1
    epoch: int = 0
    timestamp_ms: int = 0

    @property
    def is_empty(self) -> bool:
        """True while the log has no metadata, so that bootstrap records are due."""
        return METADATA_VERSION not in self.features

    @property
    def metadata_version(self) -> int:
        return self.features.get(METADATA_VERSION, 0)

    @property
    def uses_elr(self) -> bool:
        """True if replicas that left the ISR with all committed data stay eligible to lead."""
        return self.features.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0

    def configs_of(self, resource_type: int, name: str) -> Mapping[str, str]:
        """Return the configs that are set for a resource, without defaults."""
        return self.configs.get(ConfigResource(resource_type, name), {})

    def is_active(self, broker_id: int) -> bool:
        """Return whether a broker is registered, unfenced and not shutting down."""
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.is_active

    def partitions(self) -> Iterator[tuple[TopicImage, int, PartitionImage]]:
        """Every partition of the cluster, with its topic and index."""
        for topic in self.topics.values():
            for index, partition in enumerate(topic.partitions):
                yield topic, index, partition


EMPTY = MetadataImage()
"""The image of an empty log."""
