"""A sensible request for every API and version, made from the definitions of the messages.

Each request names the same topic, group, transactional id and broker, so that a test can call all
APIs and look at what happens to these.
"""

from collections.abc import Iterator
from typing import Any

from headrace.metadata.image import ResourceType
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.batches import Record, build_batch
from headrace.protocol.fields import AnyStructure, Field, fields_of
from headrace.protocol.message import Message
from headrace.protocol.metadata_topic import METADATA_TOPIC
from headrace.protocol.schemas.streams_group_heartbeat import Subtopology, TopicInfo, Topology
from headrace.protocol.uuids import ZERO, Uuid
from headrace.security.acls import Operation, PatternType, Permission
from headrace.security.acls import ResourceType as AclResourceType

TOPIC, NEW_TOPIC, CHANGELOG = "orders", "invoices", "app-changelog"
TRANSACTION = "tx"
GROUP, SHARE_GROUP, STREAMS_GROUP = "readers", "workers", "app"

Fields = dict[str, Any]

_VALUES: Fields = {
    "acks": 1,
    "acknowledge_types": [1],
    "assignments": [],
    "client_software_name": "unit",
    "client_software_version": "1",
    "cluster_id": None,
    "configs": [],
    "coordinator_keys": [GROUP],
    "count": 3,
    "forgotten_topics_data": [],
    "group_ids": [GROUP],
    "group_id": GROUP,
    "groups_names": [GROUP],
    "include_authorized_operations": True,
    "include_cluster_authorized_operations": True,
    "groups": [GROUP],
    "member_id": "m",
    "configuration_keys": None,
    "include_topic_authorized_operations": True,
    "key": GROUP,
    "max_bytes": 1000,
    "name": TOPIC,
    "num_partitions": 1,
    "partition_indexes": [0],
    "rebalance_timeout_ms": 1000,
    "replica_id": -1,
    "replication_factor": 1,
    "resource_name": TOPIC,
    "resource_type": int(ResourceType.TOPIC),
    "response_partition_limit": 10,
    "session_epoch": -1,
    "session_timeout_ms": 10_000,
    "session_id": 0,
    "source_topics": [TOPIC],
    "timeout_ms": 1000,
    "topic": TOPIC,
    "topic_name": TOPIC,
    "topic_names": [TOPIC],
    "transaction_timeout_ms": 60_000,
    "transactional_id": TRANSACTION,
    "transactional_ids": [TRANSACTION],
    "v3_and_below_transactional_id": TRANSACTION,
    "verify_only": False,
    "voter_id": 99,
}


def _records(*, is_transactional: bool = False) -> bytes:
    return bytes(
        build_batch(
            [Record(0, 1_700_000_000_000, None, b"value")],
            producer_id=7 if is_transactional else -1,
            producer_epoch=0 if is_transactional else -1,
            base_sequence=0 if is_transactional else -1,
            transactional=is_transactional,
        )
    )


_NO_PRODUCER: Fields = {"producer_id": -1, "producer_epoch": -1}
_FROM = "from version"
_ABSENT: Fields = {"topics": None}
_BY_NAME: Fields = {"topic_id": ZERO}
_BY_ID: Fields = {"name": None}


def _config(kind: ResourceType, name: str) -> Fields:
    return {"resource_type": int(kind), "resource_name": name}


_SHARE: Fields = {"group_id": SHARE_GROUP, "group_ids": [SHARE_GROUP]}
_STREAMS: Fields = {"group_id": STREAMS_GROUP, "group_ids": [STREAMS_GROUP]}
_RULES: Fields = {
    "host": "10.9.9.9",
    "operation": int(Operation.READ),
    "pattern_type_filter": int(PatternType.LITERAL),
    "permission_type": int(Permission.ALLOW),
    "principal": "User:nobody",
    "resource_pattern_type": int(PatternType.LITERAL),
    "resource_type_filter": int(AclResourceType.TOPIC),
}
_BROKER = _config(ResourceType.BROKER, "1")
_LOGGERS = _config(ResourceType.BROKER_LOGGER, "1")
_CONFIGS: tuple[Fields, ...] = ({}, _config(ResourceType.GROUP, GROUP), _BROKER)
_TOPOLOGY = Topology(1, [Subtopology("0", [TOPIC], [], [TopicInfo(CHANGELOG)])])

_VARIANTS: dict[ApiKey, tuple[Fields, ...]] = {
    ApiKey.PRODUCE: ({"records": _records()}, {"records": _records(is_transactional=True)}),
    ApiKey.FETCH: ({}, {"replica_id": 1}),
    ApiKey.METADATA: (
        _BY_NAME,
        {"name": NEW_TOPIC, **_BY_NAME},
        {**_BY_ID, _FROM: 12},
        {**_ABSENT, _FROM: 1},
    ),
    ApiKey.OFFSET_FETCH: ({}, {**_ABSENT, _FROM: 2}),
    ApiKey.FIND_COORDINATOR: (
        {},
        {"key_type": 1, "key": TRANSACTION, "coordinator_keys": [TRANSACTION], _FROM: 1},
        {"key_type": 2, _FROM: 6},
    ),
    ApiKey.JOIN_GROUP: ({"protocol_type": "consumer", "name": "range"},),
    ApiKey.SYNC_GROUP: ({"protocol_type": "consumer", "protocol_name": "range"},),
    ApiKey.CREATE_TOPICS: ({"name": NEW_TOPIC},),
    ApiKey.DELETE_TOPICS: (_BY_NAME, {**_BY_ID, _FROM: 6}),
    ApiKey.INIT_PRODUCER_ID: (_NO_PRODUCER, {**_NO_PRODUCER, "transactional_id": None}),
    ApiKey.DESCRIBE_CONFIGS: (*_CONFIGS, _LOGGERS, _config(ResourceType.CLIENT_METRICS, "all")),
    ApiKey.ALTER_CONFIGS: _CONFIGS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (*_CONFIGS, _LOGGERS),
    ApiKey.LIST_CONFIG_RESOURCES: ({"resource_types": []},),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: ({}, {"topics": []}),
    ApiKey.DESCRIBE_QUORUM: ({}, {"topic_name": METADATA_TOPIC}),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: (_SHARE, _SHARE | _ABSENT),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: (_SHARE,),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: (_SHARE,),
    ApiKey.LIST_TRANSACTIONS: ({"producer_id_filters": []},),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: (
        {"subscribed_topic_names": [TOPIC]},
        {"subscribed_topic_regex": "o.*", "topic_partitions": [], _FROM: 1},
    ),
    ApiKey.SHARE_GROUP_HEARTBEAT: (_SHARE | {"subscribed_topic_names": [TOPIC]},),
    ApiKey.SHARE_GROUP_DESCRIBE: (_SHARE,),
    ApiKey.SHARE_FETCH: (_SHARE | {"max_records": 1, "acknowledgement_batches": []},),
    ApiKey.SHARE_ACKNOWLEDGE: (_SHARE | {"share_session_epoch": 1},),
    ApiKey.STREAMS_GROUP_HEARTBEAT: (
        {
            **_STREAMS,
            "topology": _TOPOLOGY,
            "active_tasks": [],
            "standby_tasks": [],
            "warmup_tasks": [],
        },
    ),
    ApiKey.STREAMS_GROUP_DESCRIBE: (_STREAMS,),
    ApiKey.DESCRIBE_ACLS: (_RULES,),
    ApiKey.CREATE_ACLS: (_RULES,),
    ApiKey.DELETE_ACLS: (_RULES,),
    ApiKey.UNREGISTER_BROKER: ({"broker_id": 99},),
}


def requests_for(
    key: ApiKey, request_type: type[Message], version: int, topic_id: Uuid
) -> Iterator[Any]:
    """Yield the requests of an API: one for each way in which rights depend on its content."""
    for variant in _VARIANTS.get(key, ({},)):
        if version >= variant.get(_FROM, 0):
            yield _filled(request_type, version, {**_VALUES, "topic_id": topic_id, **variant})


def _filled(structure: AnyStructure, version: int, values: Fields) -> Any:
    fields = [one for one in fields_of(structure) if version in one.versions]
    return structure(**{one.name: _value(one, version, values) for one in fields})


def _value(field: Field, version: int, values: Fields) -> Any:
    value = values.get(field.name, _MISSING)
    if value is None:
        return None if version in field.nullable else field.default
    if isinstance(value, list):
        is_given = field.is_array and (field.structure is None or not value)
    else:
        is_given = value is not _MISSING and not field.is_array
    if is_given:
        return value
    if field.is_array and field.structure is not None:
        return [_filled(field.structure, version, values)]
    return [0] if field.is_array and field.kind.startswith("int") else field.default


_MISSING = object()
