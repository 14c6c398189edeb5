"""Requests that a controller decides: one table for the node itself, its clients and other nodes.

A row names the function `(image, request, context) -> Decision[response]`. Its module is imported
by the first request that needs it. A function raises a `KafkaError` that fails the whole request;
errors of single items are part of the response.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from headrace.controller.config_rules import SettingsRules
from headrace.controller.decision import ClusterDefaults, Decision
from headrace.errors import InvalidRequest, KafkaError, error_for
from headrace.metadata.image import MetadataImage, ResourceType
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.message import Message
from headrace.security.access import OPEN, Access
from headrace.security.acls import Operation
from headrace.settings.broker import BrokerSettings
from headrace.settings.broker_layers import BrokerLayers

if TYPE_CHECKING:
    from headrace.controller.sessions import SessionsView
    from headrace.quotas.throttling import Mutations


class Outcome(Protocol):
    """The result for one item of a request."""

    error_code: int
    error_message: str | None


def error_in(outcome: Outcome) -> KafkaError | None:
    """Return the error of one result, or None."""
    code, message = outcome.error_code, outcome.error_message
    return error_for(code, message or "") if code else None


class Context(NamedTuple):
    """The facts that a decision uses besides the image and the request."""

    node_id: int
    settings: BrokerSettings
    defaults: ClusterDefaults
    version: int
    next_offset: int
    kraft_version: int
    now_ms: int = 0
    """The monotonic time."""
    wall_ms: int = 0
    """The time of day, which records and clients use."""
    sessions: "SessionsView | None" = None
    """The sessions of brokers; None if this node has the only broker."""
    cluster_id: str | None = None
    """The cluster's id, which brokers must name; None accepts any."""
    access: Access = OPEN
    """The rights of the client; every right for a node's own requests."""
    mutations: "Mutations | None" = None
    """The quota of the client's mutations; None if it has none."""

    def charge(self, count: int) -> None:
        """Count partitions that are created or deleted; raise if the client's quota is exceeded."""
        if self.mutations is not None:
            self.mutations.record(count, self.now_ms)

    def layers(self, image: MetadataImage) -> BrokerLayers:
        """Return the layers of this node's configs, which are the defaults of topics."""
        return BrokerLayers(
            static=self.settings,
            dynamic_default=image.configs_of(ResourceType.BROKER, ""),
            dynamic=image.configs_of(ResourceType.BROKER, str(self.node_id)),
        )

    def rules(self, image: MetadataImage) -> SettingsRules:
        """Return the rules for dynamic configs, as this node's settings define them."""
        return SettingsRules(self.layers(image))


Handler = Callable[[MetadataImage, Any, Context], Decision[Any]]

_MODULES = {
    ApiKey.CREATE_TOPICS: "topic_requests",
    ApiKey.DELETE_TOPICS: "topic_requests",
    ApiKey.CREATE_PARTITIONS: "topic_requests",
    ApiKey.ALTER_CONFIGS: "cluster_requests",
    ApiKey.INCREMENTAL_ALTER_CONFIGS: "cluster_requests",
    ApiKey.UPDATE_FEATURES: "cluster_requests",
    ApiKey.UNREGISTER_BROKER: "cluster_requests",
    ApiKey.ELECT_LEADERS: "cluster_requests",
    ApiKey.CREATE_ACLS: "acl_requests",
    ApiKey.DELETE_ACLS: "acl_requests",
    ApiKey.ALTER_PARTITION: "partition_requests",
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: "partition_requests",
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: "scram_requests",
    ApiKey.ALTER_CLIENT_QUOTAS: "quota_requests",
    ApiKey.CREATE_DELEGATION_TOKEN: "token_requests",
    ApiKey.RENEW_DELEGATION_TOKEN: "token_requests",
    ApiKey.EXPIRE_DELEGATION_TOKEN: "token_requests",
    ApiKey.BROKER_REGISTRATION: "node_requests",
    ApiKey.CONTROLLER_REGISTRATION: "node_requests",
    ApiKey.BROKER_HEARTBEAT: "node_requests",
    ApiKey.ALLOCATE_PRODUCER_IDS: "node_requests",
}

DECIDED = frozenset(_MODULES)
"""Every request that a controller decides."""

OF_NODES = frozenset(
    (
        ApiKey.BROKER_REGISTRATION,
        ApiKey.CONTROLLER_REGISTRATION,
        ApiKey.BROKER_HEARTBEAT,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        ApiKey.ALTER_PARTITION,
    )
)
"""The requests that nodes send for themselves. All others come from clients."""

RIGHTS_ON_CLUSTER: dict[int, Operation] = {
    # Requests of nodes.
    **dict.fromkeys(OF_NODES, Operation.CLUSTER_ACTION),
    ApiKey.FETCH: Operation.CLUSTER_ACTION,
    ApiKey.FETCH_SNAPSHOT: Operation.CLUSTER_ACTION,
    ApiKey.VOTE: Operation.CLUSTER_ACTION,
    ApiKey.BEGIN_QUORUM_EPOCH: Operation.CLUSTER_ACTION,
    ApiKey.END_QUORUM_EPOCH: Operation.CLUSTER_ACTION,
    ApiKey.UPDATE_RAFT_VOTER: Operation.CLUSTER_ACTION,
    ApiKey.ENVELOPE: Operation.CLUSTER_ACTION,
    # Requests of clients.
    ApiKey.DESCRIBE_QUORUM: Operation.DESCRIBE,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: Operation.DESCRIBE,
    ApiKey.ADD_RAFT_VOTER: Operation.ALTER,
    ApiKey.REMOVE_RAFT_VOTER: Operation.ALTER,
    ApiKey.DESCRIBE_CLUSTER: Operation.ALTER,  # Only here: brokers grant it to everybody.
    ApiKey.UNREGISTER_BROKER: Operation.ALTER,
    ApiKey.ELECT_LEADERS: Operation.ALTER,
    ApiKey.UPDATE_FEATURES: Operation.ALTER,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Operation.ALTER,
    ApiKey.CREATE_ACLS: Operation.ALTER,
    ApiKey.DELETE_ACLS: Operation.ALTER,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: Operation.ALTER,
    ApiKey.ALTER_CLIENT_QUOTAS: Operation.ALTER_CONFIGS,
}
"""The right on the cluster that a controller requires for a request as a whole, as in Kafka.

Requests that are missing here check the rights on single topics, configs or tokens.
"""

_resolved: dict[int, Handler] = {}


def check_right(access: Access, api_key: int) -> None:
    """Raise unless a caller has the right on the cluster that a request needs."""
    operation = RIGHTS_ON_CLUSTER.get(api_key)
    if operation is not None:
        access.check_on_cluster(operation)


def decide(image: MetadataImage, request: Message, context: Context) -> Decision[Any]:
    """Check the caller's right, and decide a request by its row of the table."""
    check_right(context.access, request.API_KEY)
    handler = _resolved.get(request.API_KEY)
    if handler is None:
        handler = _resolved[request.API_KEY] = _resolve(request.API_KEY)
    return handler(image, request, context)


def _resolve(key: int) -> Handler:
    from importlib import import_module

    module = _MODULES.get(ApiKey(key))
    if module is None:
        raise InvalidRequest(f"the controller does not serve {ApiKey(key).name}")
    found: Handler = getattr(
        import_module(f"headrace.controller.{module}"), ApiKey(key).name.lower()
    )
    return found
