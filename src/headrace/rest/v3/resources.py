"""The resources of version 3 as typed values: each with its kind, its address and its relations."""

from typing import Generic, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from msgspec import field
from starlette.requests import Request

from headrace.client.descriptions import QuorumReplica, ReplicaSize

T = TypeVar("T")


class Metadata(msgspec.Struct, frozen=True):
    """Where a resource is, and its name among all resources."""

    self_: str = field(name="self")
    resource_name: str | None = None


class ListMetadata(msgspec.Struct, frozen=True):
    """Where a list is; all of it is in one answer, so there is never a next part."""

    self_: str = field(name="self")
    next: str | None = None


class Related(msgspec.Struct, frozen=True):
    """Where something else is that belongs to a resource."""

    related: str


class Collection(msgspec.Struct, Generic[T], frozen=True):
    """A list of resources."""

    kind: str
    metadata: ListMetadata
    data: list[T]


class ClusterData(msgspec.Struct, frozen=True, kw_only=True):
    kind: str = "KafkaCluster"
    metadata: Metadata
    cluster_id: str
    controller: Related | None
    acls: Related
    brokers: Related
    broker_configs: Related
    consumer_groups: Related
    topics: Related
    partition_reassignments: Related


class BrokerData(msgspec.Struct, frozen=True, kw_only=True):
    kind: str = "KafkaBroker"
    metadata: Metadata
    cluster_id: str
    broker_id: int
    host: str
    port: int
    rack: str | None
    configs: Related
    partition_replicas: Related


class FeatureData(msgspec.Struct, frozen=True, kw_only=True):
    kind: str = "KafkaFeature"
    metadata: Metadata
    cluster_id: str
    name: str
    min_version: int
    max_version: int
    finalized_version: int | None


class QuorumData(msgspec.Struct, frozen=True, kw_only=True):
    kind: str = "KafkaQuorum"
    metadata: Metadata
    cluster_id: str
    leader_id: int
    leader_epoch: int
    high_watermark: int
    replicas: list[QuorumReplica]


class LogDirectoryData(msgspec.Struct, frozen=True, kw_only=True):
    kind: str = "KafkaLogDir"
    metadata: Metadata
    cluster_id: str
    broker_id: int
    path: str
    error: str | None
    total_bytes: int | None
    usable_bytes: int | None
    replicas: list[ReplicaSize]


class Synonym(msgspec.Struct, frozen=True):
    name: str
    value: str | None
    source: str


class ConfigData(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A setting of a topic, a broker or all brokers; only the fields of its kind are there."""

    kind: str
    metadata: Metadata
    cluster_id: str
    topic_name: str | None = None
    broker_id: int | None = None
    config_type: str | None = None
    name: str
    value: str | None
    is_default: bool
    is_read_only: bool
    is_sensitive: bool
    source: str
    synonyms: list[Synonym]


class TopicData(msgspec.Struct, frozen=True, kw_only=True):
    kind: str = "KafkaTopic"
    metadata: Metadata
    cluster_id: str
    topic_name: str
    is_internal: bool
    replication_factor: int
    partitions_count: int
    partitions: Related
    configs: Related
    partition_reassignments: Related
    authorized_operations: list[str] = []


class PartitionData(msgspec.Struct, frozen=True, kw_only=True):
    kind: str = "KafkaPartition"
    metadata: Metadata
    cluster_id: str
    topic_name: str
    partition_id: int
    leader: Related | None
    replicas: Related
    reassignment: Related


class PartitionOffsetsData(msgspec.Struct, frozen=True, kw_only=True):
    kind: str = "KafkaPartitionOffsets"
    metadata: Metadata
    cluster_id: str
    topic_name: str
    partition_id: int
    earliest_offset: int
    latest_offset: int


class ReplicaData(msgspec.Struct, frozen=True, kw_only=True):
    kind: str = "KafkaReplica"
    metadata: Metadata
    cluster_id: str
    topic_name: str
    partition_id: int
    broker_id: int
    is_leader: bool
    is_in_sync: bool
    broker: Related


class ReassignmentData(msgspec.Struct, frozen=True, kw_only=True):
    kind: str = "KafkaReassignment"
    metadata: Metadata
    cluster_id: str
    topic_name: str
    partition_id: int
    adding_replicas: list[int]
    removing_replicas: list[int]
    replicas: Related


class GroupData(msgspec.Struct, frozen=True, kw_only=True):
    kind: str = "KafkaConsumerGroup"
    metadata: Metadata
    cluster_id: str
    consumer_group_id: str
    is_simple: bool
    partition_assignor: str
    state: str
    type: str
    is_mixed_consumer_group: bool = False
    coordinator: Related
    consumers: Related
    lag_summary: Related


class ConsumerData(msgspec.Struct, frozen=True, kw_only=True):
    kind: str = "KafkaConsumer"
    metadata: Metadata
    cluster_id: str
    consumer_group_id: str
    consumer_id: str
    instance_id: str | None
    client_id: str
    assignments: Related


class AssignmentData(msgspec.Struct, frozen=True, kw_only=True):
    kind: str = "KafkaConsumerAssignment"
    metadata: Metadata
    cluster_id: str
    consumer_group_id: str
    consumer_id: str
    topic_name: str
    partition_id: int
    partition: Related
    lag: Related


class LagData(msgspec.Struct, frozen=True, kw_only=True):
    kind: str = "KafkaConsumerLag"
    metadata: Metadata
    cluster_id: str
    consumer_group_id: str
    topic_name: str
    partition_id: int
    consumer_id: str
    instance_id: str | None
    client_id: str
    current_offset: int
    log_end_offset: int
    lag: int


class LagSummaryData(msgspec.Struct, frozen=True, kw_only=True):
    kind: str = "KafkaConsumerGroupLagSummary"
    metadata: Metadata
    cluster_id: str
    consumer_group_id: str
    max_lag_consumer_id: str
    max_lag_instance_id: str | None
    max_lag_client_id: str
    max_lag_topic_name: str
    max_lag_partition_id: int
    max_lag: int
    total_lag: int
    max_lag_consumer: Related
    max_lag_partition: Related


class GroupOffsetData(msgspec.Struct, frozen=True, kw_only=True):
    """What a group has committed for a partition; Confluent's proxy shows this only with lags."""

    kind: str = "KafkaConsumerGroupOffset"
    metadata: Metadata
    cluster_id: str
    consumer_group_id: str
    topic_name: str
    partition_id: int
    offset: int
    offset_metadata: str


class AclData(msgspec.Struct, frozen=True, kw_only=True):
    kind: str = "KafkaAcl"
    metadata: Metadata
    cluster_id: str
    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission: str


class AclList(msgspec.Struct, frozen=True):
    """What was deleted."""

    data: list[AclData]


class Links:
    """Addresses of resources, as the caller reaches them."""

    def __init__(self, request: Request, cluster_id: str, host_name: str = "") -> None:
        base = request.base_url
        if host_name:
            base = base.replace(hostname=host_name)
        self._base = f"{str(base).rstrip('/')}/v3/clusters"
        self.cluster_id = cluster_id

    @property
    def clusters(self) -> str:
        return self._base

    def url(self, *segments: str | int, **query: str) -> str:
        """The address of something in the cluster."""
        parts = [self._base, *(quote(str(one), safe="-:") for one in (self.cluster_id, *segments))]
        text = "/".join(parts)
        return f"{text}?{urlencode(query)}" if query else text

    def related(self, *segments: str | int) -> Related:
        return Related(self.url(*segments))

    def metadata(self, *segments: str | int, crn: str) -> Metadata:
        """Address and name of a resource; `crn` is the name's part after the cluster's."""
        name = f"crn:///kafka={self.cluster_id}"
        return Metadata(self.url(*segments), f"{name}/{crn}" if crn else name)

    def collection(self, kind: str, data: list[T], *segments: str | int) -> Collection[T]:
        return Collection(kind, ListMetadata(self.url(*segments)), data)
