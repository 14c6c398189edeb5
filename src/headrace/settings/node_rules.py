"""The rules between the roles, listeners and quorum of a node, which are Kafka's.

Two things are allowed that Kafka refuses, because no other node takes part in either. A combined
node without a listener for controllers is a cluster of its own, and needs no address of a quorum.
Its brokers' listener may have any name.
"""

from collections.abc import Iterator

from headrace.errors import InvalidConfig
from headrace.settings.broker import PLAINTEXT, STANDARD_AUTHORIZER, BrokerSettings
from headrace.settings.listener_logins import check_logins
from headrace.settings.listener_security import check_listener_security
from headrace.settings.listeners import Listener, check_protocols, parse_listeners
from headrace.settings.quorum_addresses import BOOTSTRAP_SERVERS, VOTERS

RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"

_INTER_BROKER = "inter.broker.listener.name"
_INTER_BROKER_PROTOCOL = "security.inter.broker.protocol"
_AUTO_JOIN = "controller.quorum.auto.join.enable"


def check_node(settings: BrokerSettings) -> None:
    """Raise unless roles, quorum, listeners and timeouts of the node fit together."""
    if settings.broker_id not in (-1, settings.node_id):
        raise InvalidConfig(
            f"node.id is {settings.node_id} and broker.id is {settings.broker_id}; "
            "give node.id alone"
        )
    if not settings.process_roles:
        raise InvalidConfig("process.roles must be broker, controller, or both")
    check_protocols(parse_listeners(settings.listeners), settings.protocols)
    if not settings.is_single_node:
        check_protocols(
            (Listener(name, "", 0) for name in settings.controller_listener_names),
            settings.protocols,
        )
    check_listener_security(settings)
    check_logins(settings)
    _check_controller_listeners(settings)
    _check_advertised(settings)
    if settings.is_broker:
        _check_broker_listeners(settings)
    _check_early_listeners(settings)
    _check_quorum(settings)
    _check_timeouts(settings)


def questionable(settings: BrokerSettings) -> Iterator[str]:
    """Warnings of settings that work, but probably not as intended."""
    names = settings.controller_listener_names
    if not settings.is_controller and len(names) > 1:
        yield (
            f"controller.listener.names: a broker uses only the first listener, {names[0]}; "
            "remove the others"
        )
    if settings.broker_heartbeat_interval_ms * 2 > settings.broker_session_timeout_ms:
        yield (
            f"broker.heartbeat.interval.ms ({settings.broker_heartbeat_interval_ms}) should be at "
            f"most half of broker.session.timeout.ms ({settings.broker_session_timeout_ms}), so "
            "that one lost heartbeat fences no broker"
        )
    if settings.authorizer_class_name and _has_anonymous_nodes(settings):
        yield (
            "super.users: other nodes connect without authentication, so they need "
            "User:ANONYMOUS here, and with it every client of a PLAINTEXT listener may do "
            "everything; give the listeners between nodes another protocol"
        )
    if settings.headrace_audit_topic and not settings.is_broker:
        yield "headrace.audit.topic: only brokers write to a topic; set headrace.audit.file here"
    if not settings.authorizer_class_name and settings.super_users:
        yield f"super.users has no effect without authorizer.class.name={STANDARD_AUTHORIZER}"
    if settings.replica_selector_class not in (None, "", RACK_AWARE_SELECTOR):
        yield (
            f"replica.selector.class: {settings.replica_selector_class} is a Java class, so "
            f"consumers read from leaders; use {RACK_AWARE_SELECTOR} or none"
        )


def _has_anonymous_nodes(settings: BrokerSettings) -> bool:
    """Return whether nodes of the cluster connect as a principal that is not a super user."""
    listener = settings.controller_listener_names[0]
    is_anonymous = settings.protocols.get(listener, PLAINTEXT) == PLAINTEXT
    super_users = [one.strip() for one in settings.super_users.split(";")]
    return is_anonymous and not settings.is_single_node and "User:ANONYMOUS" not in super_users


def _check_quorum(settings: BrokerSettings) -> None:
    voters, servers = settings.quorum_voters, settings.quorum_bootstrap_servers
    if settings.is_single_node:
        _check_alone(settings)
        return
    node_id, roles = settings.node_id, ",".join(settings.process_roles)
    if not voters and not servers:
        raise InvalidConfig(
            f"process.roles={roles} needs the addresses of controllers: set {BOOTSTRAP_SERVERS}, "
            "such as localhost:9093 if this node is the only controller"
        )
    if settings.is_controller and voters and node_id not in voters:
        raise InvalidConfig(
            f"{VOTERS} must name node {node_id}, because process.roles={roles} makes it a "
            "controller: add it on every node, or set process.roles=broker"
        )
    if not settings.is_controller and node_id in voters:
        raise InvalidConfig(
            f"{VOTERS} names node {node_id}, which is no controller: remove it there, or add "
            "controller to process.roles"
        )
    if settings.controller_quorum_auto_join_enable and not settings.is_controller:
        raise InvalidConfig(f"{_AUTO_JOIN} is for controllers; remove it, or change process.roles")


def _check_alone(settings: BrokerSettings) -> None:
    """A combined node that no other node can reach as a controller."""
    voters = settings.quorum_voters
    servers = settings.quorum_bootstrap_servers
    if set(voters) - {settings.node_id} or len(servers) > 1:
        raise InvalidConfig(
            "listeners has none for controllers, so this node can have no others beside it: add "
            f"{settings.controller_listener_names[0]}://host:9093 to listeners, or remove "
            f"{VOTERS if voters else BOOTSTRAP_SERVERS}"
        )
    if settings.controller_quorum_auto_join_enable:
        raise InvalidConfig(
            f"{_AUTO_JOIN} needs a listener for controllers: add "
            f"{settings.controller_listener_names[0]}://host:9093 to listeners"
        )


def _check_controller_listeners(settings: BrokerSettings) -> None:
    present = {listener.name for listener in parse_listeners(settings.listeners)}
    names = settings.controller_listener_names
    if not settings.is_controller:
        if forbidden := sorted(present & set(names)):
            raise InvalidConfig(
                f"listeners: a node with process.roles=broker has no listener {forbidden[0]}, "
                "which is in controller.listener.names; remove it from listeners"
            )
        return
    if settings.is_single_node:
        return
    if missing := [name for name in names if name not in present]:
        raise InvalidConfig(
            f"controller.listener.names: {missing[0]} is not in listeners; add "
            f"{missing[0]}://host:9093 there, or remove the name"
        )
    others = sorted(present - set(names))
    if not settings.is_broker and others:
        raise InvalidConfig(
            f"listeners: a node with process.roles=controller serves only controllers and brokers; "
            f"remove {others[0]}, or add broker to process.roles"
        )
    if not settings.is_broker and (settings.inter_broker_listener_name or "").upper() in names:
        raise InvalidConfig(
            f"{_INTER_BROKER} must not be a listener of controllers; remove it from this controller"
        )


def _check_broker_listeners(settings: BrokerSettings) -> None:
    names = {listener.name for listener in settings.broker_listeners}
    if not names:
        raise InvalidConfig("listeners must have one for clients, such as PLAINTEXT://:9092")
    if {_INTER_BROKER, _INTER_BROKER_PROTOCOL} <= settings.given.keys():
        raise InvalidConfig(
            f"{_INTER_BROKER} and {_INTER_BROKER_PROTOCOL} exclude each other; remove the second"
        )
    advertised = names & settings.advertised.keys()
    if not advertised:
        raise InvalidConfig(
            f"advertised.listeners must have one for clients: {', '.join(sorted(names))}"
        )
    wanted = settings.wanted_inter_broker_listener
    is_free = settings.is_single_node and settings.inter_broker_listener_name is None
    if wanted in advertised or is_free:
        return
    raise InvalidConfig(
        f"{_INTER_BROKER}: {wanted} is not in listeners and advertised.listeners; set it to "
        f"{' or '.join(sorted(advertised))}"
    )


def _check_advertised(settings: BrokerSettings) -> None:
    names = {listener.name for listener in parse_listeners(settings.listeners)}
    names |= set(settings.controller_listener_names)  # Kafka's brokers ignore them, too.
    for advertised in settings.advertised.values():
        if advertised.name not in names:
            raise InvalidConfig(f"advertised.listeners: {advertised} is not in listeners")
        if advertised.host == "0.0.0.0":
            raise InvalidConfig(
                f"advertised.listeners: clients cannot be sent to {advertised}; give a host name "
                "or address that they can reach"
            )


def _check_early_listeners(settings: BrokerSettings) -> None:
    names = {listener.name for listener in parse_listeners(settings.listeners)}
    for name in settings.early_start_listeners or ():
        if name.upper() not in names:
            raise InvalidConfig(f"early.start.listeners: {name} is not in listeners")


def _check_timeouts(settings: BrokerSettings) -> None:
    wait = settings.replica_fetch_wait_max_ms
    limits = {
        "replica.socket.timeout.ms": settings.replica_socket_timeout_ms,
        "replica.lag.time.max.ms": settings.replica_lag_time_max_ms,
    }
    for name, limit in limits.items():
        if wait > limit:
            raise InvalidConfig(
                f"replica.fetch.wait.max.ms ({wait}) must not exceed {name} ({limit}); lower the "
                "first or raise the second"
            )
