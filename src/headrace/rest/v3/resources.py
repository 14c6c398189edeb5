"""The resources of version 3: their own fields, and one table of kinds, addresses and relations.

An answer shows a resource with its kind, its address, its name among all resources and the
addresses of related resources. These parts follow from the resource's own fields by `KINDS`.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Generic, NamedTuple, Self, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from msgspec import field
from starlette.requests import Request

from headrace.client.descriptions import QuorumReplica, ReplicaSize

T = TypeVar("T")


class Metadata(msgspec.Struct, frozen=True):
    """The address of a resource and its name among all resources."""

    self_: str = field(name="self")
    resource_name: str | None = None


class ListMetadata(msgspec.Struct, frozen=True):
    """The address of a list; `next` is always null, because lists are not paged."""

    self_: str = field(name="self")
    next: str | None = None


class Related(msgspec.Struct, frozen=True):
    """The address of a related resource."""

    related: str


class Collection(msgspec.Struct, Generic[T], frozen=True):
    """A list of resources."""

    kind: str
    metadata: ListMetadata
    data: list[T]


_CLIENT_NAMES = {
    "broker_id": "broker",
    "consumer_group_id": "group",
    "consumer_id": "member_id",
    "coordinator_id": "coordinator",
    "finalized_version": "finalized",
    "last_timestamp_ms": "last_timestamp",
    "leader_id": "leader",
    "partition_assignor": "assignor",
    "partition_id": "partition",
    "started_at_ms": "start_ms",
    "topic_name": "topic",
}
"""The client's names of fields, where they differ."""


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """The own fields of a resource."""

    @classmethod
    def of(cls, found: object, **given: Any) -> Self:
        """Take the fields from a value of the client, except for the given ones."""
        for name in cls.__struct_fields__:
            source = _CLIENT_NAMES.get(name, name)
            if name not in given and hasattr(found, source):
                given[name] = getattr(found, source)
        return cls(**given)


class ClusterData(Resource, frozen=True, kw_only=True):
    controller_id: int | None


class BrokerData(Resource, frozen=True, kw_only=True):
    broker_id: int
    host: str
    port: int
    rack: str | None


class FeatureData(Resource, frozen=True, kw_only=True):
    name: str
    min_version: int
    max_version: int
    finalized_version: int | None


class QuorumData(Resource, frozen=True, kw_only=True):
    leader_id: int
    leader_epoch: int
    high_watermark: int
    replicas: list[QuorumReplica]


class LogDirectoryData(Resource, frozen=True, kw_only=True):
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


class ConfigData(Resource, frozen=True, kw_only=True):
    """A setting of one of three kinds of owners."""

    name: str
    value: str | None
    is_default: bool
    is_read_only: bool
    is_sensitive: bool
    source: str
    synonyms: list[Synonym]


class TopicConfigData(ConfigData, frozen=True, kw_only=True):
    topic_name: str


class BrokerConfigData(ConfigData, frozen=True, kw_only=True):
    broker_id: int


class ClusterConfigData(ConfigData, frozen=True, kw_only=True):
    config_type: str = "BROKER"


class TopicData(Resource, frozen=True, kw_only=True):
    topic_name: str
    is_internal: bool
    replication_factor: int
    partitions_count: int
    authorized_operations: list[str] = []


class PartitionResource(Resource, frozen=True, kw_only=True):
    topic_name: str
    partition_id: int


class PartitionData(PartitionResource, frozen=True, kw_only=True):
    leader_id: int | None


class PartitionOffsetsData(PartitionResource, frozen=True, kw_only=True):
    earliest_offset: int
    latest_offset: int


class ReplicaData(PartitionResource, frozen=True, kw_only=True):
    broker_id: int
    is_leader: bool
    is_in_sync: bool


class ReassignmentData(PartitionResource, frozen=True, kw_only=True):
    adding_replicas: list[int]
    removing_replicas: list[int]


class GroupData(Resource, frozen=True, kw_only=True):
    consumer_group_id: str
    is_simple: bool
    partition_assignor: str
    state: str
    type: str
    is_mixed_consumer_group: bool = False
    coordinator_id: int


class ConsumerData(Resource, frozen=True, kw_only=True):
    consumer_group_id: str
    consumer_id: str
    instance_id: str | None
    client_id: str


class AssignmentData(Resource, frozen=True, kw_only=True):
    consumer_group_id: str
    consumer_id: str
    topic_name: str
    partition_id: int


class LagData(Resource, frozen=True, kw_only=True):
    consumer_group_id: str
    topic_name: str
    partition_id: int
    consumer_id: str
    instance_id: str | None
    client_id: str
    current_offset: int
    log_end_offset: int
    lag: int


class LagSummaryData(Resource, frozen=True, kw_only=True):
    consumer_group_id: str
    max_lag_consumer_id: str
    max_lag_instance_id: str | None
    max_lag_client_id: str
    max_lag_topic_name: str
    max_lag_partition_id: int
    max_lag: int
    total_lag: int


class GroupOffsetData(Resource, frozen=True, kw_only=True):
    """A committed offset; Confluent's proxy shows committed offsets only with lags."""

    consumer_group_id: str
    topic_name: str
    partition_id: int
    offset: int
    offset_metadata: str


class AclData(Resource, frozen=True, kw_only=True):
    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission: str


class TransactionData(Resource, frozen=True, kw_only=True):
    transactional_id: str
    coordinator_id: int
    producer_id: int
    state: str


class PartitionsData(msgspec.Struct, frozen=True):
    topic_name: str
    partition_ids: list[int]


class OpenTransactionData(TransactionData, frozen=True, kw_only=True):
    producer_epoch: int
    timeout_ms: int
    started_at_ms: int | None
    partitions: list[PartitionsData]


class ProducerData(PartitionResource, frozen=True, kw_only=True):
    """A producer that a partition remembers."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    transaction_start_offset: int | None


class QuotaEntity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The owner of a quota; an empty name is the default of its kind."""

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None


class QuotaData(Resource, frozen=True, kw_only=True):
    entity: QuotaEntity
    quotas: dict[str, float]


class Kind(NamedTuple):
    """A kind of resources; `{field}` in an address or a name is a field of the resource."""

    name: str
    address: str
    resource_name: str | None
    """The part after the name of the cluster; None for resources without a name."""
    related: Mapping[str, str] = {}
    """Addresses within the cluster, or below the resource if they begin with a slash."""
    hidden: tuple[str, ...] = ()
    """Fields that are shown only as a related address, which is null where the field is null."""
    is_query: bool = False
    """The address is a search for all fields of the resource."""


_TOPIC = "topics/{topic_name}"
_PARTITION = f"{_TOPIC}/partitions/{{partition_id}}"
_GROUP = "consumer-groups/{consumer_group_id}"
_CONSUMER = f"{_GROUP}/consumers/{{consumer_id}}"
_PARTITION_NAME = "topic={topic_name}/partition={partition_id}"
_GROUP_NAME = "consumer-group={consumer_group_id}"
_WORST_PARTITION = "topics/{max_lag_topic_name}/partitions/{max_lag_partition_id}"

_TRANSACTION = Kind(
    "KafkaTransaction", "transactions/{transactional_id}", "transactional-id={transactional_id}"
)

KINDS: Mapping[type[Resource], Kind] = {
    ClusterData: Kind(
        "KafkaCluster",
        "",
        "",
        {
            "controller": "brokers/{controller_id}",
            "acls": "acls",
            "brokers": "brokers",
            "broker_configs": "broker-configs",
            "consumer_groups": "consumer-groups",
            "topics": "topics",
            "partition_reassignments": "topics/-/partitions/-/reassignment",
        },
        hidden=("controller_id",),
    ),
    BrokerData: Kind(
        "KafkaBroker",
        "brokers/{broker_id}",
        "broker={broker_id}",
        {"configs": "/configs", "partition_replicas": "/partition-replicas"},
    ),
    FeatureData: Kind("KafkaFeature", "features", "feature={name}"),
    QuorumData: Kind("KafkaQuorum", "quorum", "quorum"),
    LogDirectoryData: Kind(
        "KafkaLogDir", "brokers/{broker_id}/log-dirs", "broker={broker_id}/log-dir={path}"
    ),
    TopicConfigData: Kind(
        "KafkaTopicConfig", f"{_TOPIC}/configs/{{name}}", "topic={topic_name}/config={name}"
    ),
    BrokerConfigData: Kind(
        "KafkaBrokerConfig",
        "brokers/{broker_id}/configs/{name}",
        "broker={broker_id}/config={name}",
    ),
    ClusterConfigData: Kind("KafkaClusterConfig", "broker-configs/{name}", "broker-config={name}"),
    TopicData: Kind(
        "KafkaTopic",
        _TOPIC,
        "topic={topic_name}",
        {
            "partitions": "/partitions",
            "configs": "/configs",
            "partition_reassignments": "/partitions/-/reassignment",
        },
    ),
    PartitionData: Kind(
        "KafkaPartition",
        _PARTITION,
        _PARTITION_NAME,
        {
            "leader": "/replicas/{leader_id}",
            "replicas": "/replicas",
            "reassignment": "/reassignment",
        },
        hidden=("leader_id",),
    ),
    PartitionOffsetsData: Kind(
        "KafkaPartitionOffsets",
        f"{_PARTITION}/offset",
        f"{_PARTITION_NAME}/offset_type=earliest_and_latest",
    ),
    ReplicaData: Kind(
        "KafkaReplica",
        f"{_PARTITION}/replicas/{{broker_id}}",
        f"{_PARTITION_NAME}/replica={{broker_id}}",
        {"broker": "brokers/{broker_id}"},
    ),
    ReassignmentData: Kind(
        "KafkaReassignment",
        f"{_PARTITION}/reassignment",
        f"{_PARTITION_NAME}/reassignment",
        {"replicas": f"{_PARTITION}/replicas"},
    ),
    GroupData: Kind(
        "KafkaConsumerGroup",
        _GROUP,
        _GROUP_NAME,
        {
            "coordinator": "brokers/{coordinator_id}",
            "consumers": "/consumers",
            "lag_summary": "/lag-summary",
        },
        hidden=("coordinator_id",),
    ),
    ConsumerData: Kind(
        "KafkaConsumer",
        _CONSUMER,
        f"{_GROUP_NAME}/consumer={{consumer_id}}",
        {"assignments": "/assignments"},
    ),
    AssignmentData: Kind(
        "KafkaConsumerAssignment",
        f"{_CONSUMER}/assignments/{{topic_name}}/partitions/{{partition_id}}",
        f"{_GROUP_NAME}/consumer={{consumer_id}}"
        "/assignment={topic_name}/partition={partition_id}",
        {
            "partition": _PARTITION,
            "lag": f"{_GROUP}/lags/{{topic_name}}/partitions/{{partition_id}}",
        },
    ),
    LagData: Kind(
        "KafkaConsumerLag",
        f"{_GROUP}/lags/{{topic_name}}/partitions/{{partition_id}}",
        f"{_GROUP_NAME}/lag={{topic_name}}/partition={{partition_id}}",
    ),
    LagSummaryData: Kind(
        "KafkaConsumerGroupLagSummary",
        f"{_GROUP}/lag-summary",
        f"{_GROUP_NAME}/lag-summary",
        {
            "max_lag_consumer": f"{_GROUP}/consumers/{{max_lag_consumer_id}}",
            "max_lag_partition": _WORST_PARTITION,
        },
    ),
    GroupOffsetData: Kind(
        "KafkaConsumerGroupOffset",
        f"{_GROUP}/offsets",
        f"{_GROUP_NAME}/offset={{topic_name}}/partition={{partition_id}}",
    ),
    AclData: Kind("KafkaAcl", "acls", None, is_query=True),
    TransactionData: _TRANSACTION,
    OpenTransactionData: _TRANSACTION,
    ProducerData: Kind(
        "KafkaProducer", f"{_PARTITION}/producers", f"{_PARTITION_NAME}/producer={{producer_id}}"
    ),
    QuotaData: Kind("KafkaClientQuota", "client-quotas", None),
}


@cache
def shown_type(data: type[Resource]) -> type[msgspec.Struct]:
    """Return the type of a resource as it is shown, for the description of the operations."""
    kind = KINDS[data]
    own = {one.name: one for one in msgspec.structs.fields(data)}
    nullable = [name for name in kind.hidden if isinstance(None, own[name].type)]
    related = [
        (name, Related | None if any(f"{{{one}}}" in address for one in nullable) else Related)
        for name, address in kind.related.items()
    ]
    return msgspec.defstruct(
        data.__name__,
        [
            ("kind", str, kind.name),
            ("metadata", Metadata),
            ("cluster_id", str),
            *(_field(one) for name, one in own.items() if name not in kind.hidden),
            *related,
        ],
        namespace={"__doc__": data.__doc__},
        kw_only=True,
    )


def _field(one: msgspec.structs.FieldInfo) -> tuple[str, Any] | tuple[str, Any, Any]:
    if one.default is not msgspec.NODEFAULT:
        return one.name, one.type, one.default
    if one.default_factory is not msgspec.NODEFAULT:
        return one.name, one.type, field(default_factory=one.default_factory)
    return one.name, one.type


class Links:
    """Addresses of resources, as the caller reaches them."""

    def __init__(self, request: Request, cluster_id: str, host_name: str = "") -> None:
        base = request.base_url
        if host_name:
            base = base.replace(hostname=host_name)
        self.clusters = f"{str(base).rstrip('/')}/v3/clusters"
        self.cluster_id = cluster_id
        self._cluster = f"{self.clusters}/{_quoted(cluster_id)}"

    def url(
        self,
        address: str,
        values: Mapping[str, object] | None = None,
        *,
        query: Mapping[str, str] | None = None,
    ) -> str:
        """Return an address within the cluster; `{name}` is replaced by a quoted value."""
        path = address.format_map({name: _quoted(one) for name, one in (values or {}).items()})
        url = f"{self._cluster}/{path}" if path else self._cluster
        return f"{url}?{urlencode(query)}" if query else url

    def shown(self, resource: Resource) -> dict[str, Any]:
        """Return a resource with its kind, its address, its name and related addresses."""
        kind = KINDS[type(resource)]
        fields = msgspec.structs.asdict(resource)
        values = {name: one for name, one in fields.items() if isinstance(one, str | int)}
        url = self.url(kind.address, values, query=fields if kind.is_query else None)
        related = {
            name: self._related(kind, address, values) for name, address in kind.related.items()
        }
        for name in kind.hidden:
            del fields[name]
        metadata = Metadata(url, self._name(kind, values))
        head = {"kind": kind.name, "metadata": metadata, "cluster_id": self.cluster_id}
        return head | fields | related

    def collection(self, kind: str, data: Iterable[Resource], url: str) -> Collection[Any]:
        return Collection(kind, ListMetadata(url), [self.shown(one) for one in data])

    def _related(self, kind: Kind, address: str, values: Mapping[str, object]) -> Related | None:
        if any(f"{{{name}}}" in address and name not in values for name in kind.hidden):
            return None
        if address.startswith("/"):
            address = kind.address + address
        return Related(self.url(address, values))

    def _name(self, kind: Kind, values: Mapping[str, object]) -> str | None:
        if kind.resource_name is None:
            return None
        parts = [f"crn:///kafka={self.cluster_id}", kind.resource_name.format_map(values)]
        return "/".join(filter(None, parts))


def _quoted(value: object) -> str:
    return quote(str(value), safe="-:")
