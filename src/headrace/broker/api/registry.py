"""The table of APIs that this broker speaks, and the words in which its handlers are written.

The table names every API, its versions and its handler without importing them: a start costs
only what the first clients ask for. A handler says the same facts again with `@api`, beside its
code, where a reader looks for them; a unit test keeps the two in step. What is not in the table
is not advertised.
"""

from collections.abc import Awaitable, Callable
from types import UnionType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, cast

import msgspec

from headrace.errors import KafkaError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCodes, error_codes_of

if TYPE_CHECKING:
    from headrace.broker.node import Broker

Message = Any  # Requests and responses share no base class: each is its own plain struct.
Answer = Any  # A response message, or its body when the handler has the bytes already.
HandlerFunction = Callable[..., Answer | Awaitable[Answer]]
Refusal = Callable[[Message, KafkaError, int], Message]

_Function = TypeVar("_Function", bound=HandlerFunction)
_PACKAGE = "headrace.broker.api."


class Peer(Protocol):
    """What a handler may know of the connection that its request came in on."""

    host: str
    port: int
    listener: str
    software: tuple[str, str]


class Call(msgspec.Struct, gc=False):
    """One request being served: by which broker, for whom, in which version."""

    broker: "Broker"
    peer: Peer
    version: int
    client_id: str | None = None

    @property
    def listener(self) -> str:
        return self.peer.listener


class Registration(msgspec.Struct, frozen=True):
    """What `@api` notes beside a handler."""

    key: ApiKey
    versions: range
    refuse: Refusal | None


def api(
    key: ApiKey, *, versions: range, refuse: Refusal | None = None
) -> Callable[[_Function], _Function]:
    """Mark a function as the handler of an API.

    `refuse` shapes the answer when the whole request fails, from the request, the error and the
    version, for responses that have no error code at the top and must repeat it for every item.
    """

    def register(function: _Function) -> _Function:
        function.__dict__["registration"] = Registration(key, versions, refuse)
        return function

    return register


class Handler(NamedTuple):
    """A handler with everything that dispatch needs to call it."""

    function: HandlerFunction
    request_type: type[Message]
    response_type: type[Message]
    refuse: Refusal
    error_codes: ErrorCodes


class Entry(msgspec.Struct):
    """One row of the table; the handler is imported by the first request that needs it."""

    key: ApiKey
    versions: range
    target: str  # "family.module:function", below this package.
    advertised_from: int = -1  # Where Kafka claims older versions than it serves.
    resolved: Handler | None = None

    @property
    def advertised(self) -> tuple[int, int]:
        """The lowest and the highest version that ApiVersions answers."""
        first = self.versions[0] if self.advertised_from < 0 else self.advertised_from
        return first, self.versions[-1]

    def handler(self) -> Handler:
        if self.resolved is None:
            self.resolved = _resolve(self.target)
        return self.resolved


def _resolve(target: str) -> Handler:
    from importlib import import_module

    module_name, function_name = target.split(":")
    function = cast(HandlerFunction, getattr(import_module(_PACKAGE + module_name), function_name))
    request_type = function.__annotations__["request"]
    returned = function.__annotations__["return"]
    response_type = returned.__args__[0] if isinstance(returned, UnionType) else returned
    refuse = registration_of(function).refuse or _refusal_at_the_top(response_type)
    return Handler(function, request_type, response_type, refuse, error_codes_of(response_type))


def registration_of(function: HandlerFunction) -> Registration:
    """What `@api` noted beside the function."""
    return cast(Registration, function.__dict__["registration"])


def _refusal_at_the_top(response_type: type[Message]) -> Refusal:
    """The refusal of the many responses that begin with one error code for everything."""
    fields = response_type.__struct_fields__
    assert "error_code" in fields, f"{response_type.__name__} needs a refusal of its own"
    if "error_message" in fields:
        return lambda request, error, version: response_type(
            error_code=error.code, error_message=str(error) or None
        )
    return lambda request, error, version: response_type(error_code=error.code)


def _table(*rows: Entry) -> dict[int, Entry]:
    return {int(row.key): row for row in rows}


# The ranges are those that Kafka 4.3 advertises.
APIS: dict[int, Entry] = _table(
    # Kafka claims Produce from v0 because librdkafka below 2.12 asks for it; it serves v3 up.
    Entry(ApiKey.PRODUCE, range(3, 14), "records.produce:produce", advertised_from=0),
    Entry(ApiKey.FETCH, range(4, 19), "records.fetch:fetch"),
    Entry(ApiKey.LIST_OFFSETS, range(1, 12), "records.list_offsets:list_offsets"),
    Entry(ApiKey.METADATA, range(14), "topics.metadata:metadata"),
    Entry(ApiKey.FIND_COORDINATOR, range(7), "groups.find_coordinator:find_coordinator"),
    Entry(ApiKey.JOIN_GROUP, range(10), "groups.join_group:join_group"),
    Entry(ApiKey.SYNC_GROUP, range(6), "groups.sync_group:sync_group"),
    Entry(ApiKey.HEARTBEAT, range(5), "groups.heartbeat:heartbeat"),
    Entry(ApiKey.LEAVE_GROUP, range(6), "groups.leave_group:leave_group"),
    Entry(ApiKey.OFFSET_COMMIT, range(2, 11), "groups.offset_commit:offset_commit"),
    Entry(ApiKey.OFFSET_FETCH, range(1, 11), "groups.offset_fetch:offset_fetch"),
    Entry(ApiKey.OFFSET_DELETE, range(1), "groups.offset_delete:offset_delete"),
    Entry(ApiKey.DESCRIBE_GROUPS, range(7), "groups.describe_groups:describe_groups"),
    Entry(ApiKey.LIST_GROUPS, range(6), "groups.list_groups:list_groups"),
    Entry(ApiKey.DELETE_GROUPS, range(3), "groups.delete_groups:delete_groups"),
    Entry(ApiKey.API_VERSIONS, range(5), "cluster.api_versions:api_versions"),
    Entry(ApiKey.CREATE_TOPICS, range(2, 8), "topics.create_topics:create_topics"),
    Entry(ApiKey.DELETE_TOPICS, range(1, 7), "topics.delete_topics:delete_topics"),
    Entry(ApiKey.DELETE_RECORDS, range(3), "records.delete_records:delete_records"),
    Entry(ApiKey.INIT_PRODUCER_ID, range(6), "transactions.init_producer_id:init_producer_id"),
    Entry(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        range(6),
        "transactions.add_partitions_to_txn:add_partitions_to_txn",
    ),
    Entry(
        ApiKey.ADD_OFFSETS_TO_TXN, range(5), "transactions.add_offsets_to_txn:add_offsets_to_txn"
    ),
    Entry(ApiKey.END_TXN, range(6), "transactions.end_txn:end_txn"),
    Entry(
        ApiKey.WRITE_TXN_MARKERS, range(1, 3), "transactions.write_txn_markers:write_txn_markers"
    ),
    Entry(ApiKey.TXN_OFFSET_COMMIT, range(6), "transactions.txn_offset_commit:txn_offset_commit"),
    Entry(
        ApiKey.DESCRIBE_TRANSACTIONS,
        range(1),
        "transactions.describe_transactions:describe_transactions",
    ),
    Entry(ApiKey.LIST_TRANSACTIONS, range(3), "transactions.list_transactions:list_transactions"),
    Entry(
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        range(2, 5),
        "records.offset_for_leader_epoch:offset_for_leader_epoch",
    ),
    Entry(ApiKey.DESCRIBE_CONFIGS, range(1, 5), "configs.describe_configs:describe_configs"),
    Entry(ApiKey.ALTER_CONFIGS, range(3), "configs.alter_configs:alter_configs"),
    Entry(ApiKey.DESCRIBE_LOG_DIRS, range(1, 6), "cluster.describe_log_dirs:describe_log_dirs"),
    Entry(ApiKey.CREATE_PARTITIONS, range(4), "topics.create_partitions:create_partitions"),
    Entry(ApiKey.ELECT_LEADERS, range(3), "cluster.elect_leaders:elect_leaders"),
    Entry(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        range(2),
        "configs.incremental_alter_configs:incremental_alter_configs",
    ),
    Entry(
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        range(1),
        "cluster.list_partition_reassignments:list_partition_reassignments",
    ),
    Entry(ApiKey.DESCRIBE_QUORUM, range(3), "quorum.describe_quorum:describe_quorum"),
    Entry(ApiKey.UPDATE_FEATURES, range(3), "cluster.update_features:update_features"),
    Entry(ApiKey.DESCRIBE_CLUSTER, range(3), "cluster.describe_cluster:describe_cluster"),
    Entry(ApiKey.DESCRIBE_PRODUCERS, range(1), "records.describe_producers:describe_producers"),
    Entry(ApiKey.UNREGISTER_BROKER, range(1), "cluster.unregister_broker:unregister_broker"),
    Entry(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        range(2),
        "groups.consumer_group_heartbeat:consumer_group_heartbeat",
    ),
    Entry(
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        range(2),
        "groups.consumer_group_describe:consumer_group_describe",
    ),
    Entry(
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        range(1),
        "groups.streams_group_heartbeat:streams_group_heartbeat",
    ),
    Entry(
        ApiKey.STREAMS_GROUP_DESCRIBE,
        range(1),
        "groups.streams_group_describe:streams_group_describe",
    ),
    Entry(
        ApiKey.SHARE_GROUP_HEARTBEAT,
        range(1, 2),
        "groups.share_group_heartbeat:share_group_heartbeat",
    ),
    Entry(
        ApiKey.SHARE_GROUP_DESCRIBE,
        range(1, 2),
        "groups.share_group_describe:share_group_describe",
    ),
    Entry(ApiKey.SHARE_FETCH, range(1, 3), "share.share_fetch:share_fetch"),
    Entry(
        ApiKey.SHARE_ACKNOWLEDGE,
        range(1, 3),
        "share.share_acknowledge:share_acknowledge",
    ),
    Entry(
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        range(1),
        "share.initialize_share_group_state:initialize_share_group_state",
    ),
    Entry(
        ApiKey.READ_SHARE_GROUP_STATE,
        range(1),
        "share.read_share_group_state:read_share_group_state",
    ),
    Entry(
        ApiKey.WRITE_SHARE_GROUP_STATE,
        range(2),
        "share.write_share_group_state:write_share_group_state",
    ),
    Entry(
        ApiKey.DELETE_SHARE_GROUP_STATE,
        range(1),
        "share.delete_share_group_state:delete_share_group_state",
    ),
    Entry(
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
        range(2),
        "share.read_share_group_state_summary:read_share_group_state_summary",
    ),
    Entry(
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        range(2),
        "share.describe_share_group_offsets:describe_share_group_offsets",
    ),
    Entry(
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        range(1),
        "share.alter_share_group_offsets:alter_share_group_offsets",
    ),
    Entry(
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        range(1),
        "share.delete_share_group_offsets:delete_share_group_offsets",
    ),
    Entry(
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
        range(1),
        "telemetry.get_telemetry_subscriptions:get_telemetry_subscriptions",
    ),
    Entry(ApiKey.PUSH_TELEMETRY, range(1), "telemetry.push_telemetry:push_telemetry"),
    Entry(
        ApiKey.LIST_CONFIG_RESOURCES,
        range(2),
        "configs.list_config_resources:list_config_resources",
    ),
    Entry(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        range(1),
        "topics.describe_topic_partitions:describe_topic_partitions",
    ),
)
