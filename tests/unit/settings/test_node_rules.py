"""Roles, listeners, quorums and timeouts of a node fit together as in Kafka."""

import pytest

from headrace.errors import InvalidConfig
from headrace.settings.broker import BrokerSettings
from headrace.settings.broker_loading import load
from headrace.settings.node_rules import RACK_AWARE_SELECTOR
from headrace.settings.quorum_addresses import ControllerAddress

COMBINED = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "listeners": "PLAINTEXT://a:9092,CONTROLLER://a:9093",
    "controller.quorum.bootstrap.servers": "a:9093,b:9093,c:9093",
}
BROKER = {
    "node.id": "4",
    "process.roles": "broker",
    "listeners": "PLAINTEXT://d:9092",
    "controller.quorum.bootstrap.servers": "a:9093",
}
CONTROLLER = {
    "node.id": "2",
    "process.roles": "controller",
    "listeners": "CONTROLLER://b:9093",
    "controller.quorum.voters": "1@a:9093,2@b:9093,3@c:9093",
}
SINGLE: dict[str, str] = {}


def settings_of(base: dict[str, str], **changes: str) -> BrokerSettings:
    return load(base | named(changes))[0]


def named(changes: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "."): value for name, value in changes.items()}


@pytest.mark.parametrize("base", [SINGLE, COMBINED, BROKER, CONTROLLER])
def test_nodes_with_every_role_are_accepted_without_warnings(base: dict[str, str]) -> None:
    """REP-14."""
    settings, warnings = load(base)
    assert warnings == []
    assert (settings.is_broker, settings.is_controller) == (
        "broker" in base.get("process.roles", "broker"),
        "controller" in base.get("process.roles", "controller"),
    )
    assert settings.is_single_node == (base is SINGLE)


@pytest.mark.parametrize(
    ("base", "servers", "may_begin"),
    [
        (SINGLE, "", True),
        (SINGLE, "localhost:9093", True),
        (COMBINED, "a:9093", True),
        (COMBINED, "localhost:9093", True),
        (COMBINED, "b:9093", False),
        (COMBINED, "localhost:9999", False),
        (COMBINED, "a:9093,b:9093", False),
        (BROKER, "a:9093", False),
        (CONTROLLER, "b:9093", False),
    ],
)
def test_a_new_node_begins_a_cluster_only_if_no_other_controller_is_named(
    base: dict[str, str], servers: str, may_begin: bool
) -> None:
    settings = settings_of(base, controller_quorum_bootstrap_servers=servers)
    assert settings.may_begin_cluster == may_begin


def test_a_static_quorum_is_found_by_its_voters() -> None:
    settings = settings_of(CONTROLLER)
    assert settings.quorum_voters[3] == ControllerAddress("c", 9093)
    assert settings.quorum_bootstrap_servers == tuple(settings.quorum_voters.values())


def test_bootstrap_servers_are_used_before_the_voters() -> None:
    settings = settings_of(CONTROLLER, controller_quorum_bootstrap_servers="[::1]:9093")
    assert settings.quorum_bootstrap_servers == (ControllerAddress("::1", 9093),)
    assert str(settings.quorum_bootstrap_servers[0]) == "[::1]:9093"


def test_listeners_of_controllers_are_advertised_as_they_are_unless_given() -> None:
    settings = settings_of(COMBINED, advertised_listeners="PLAINTEXT://public:9092")
    assert str(settings.advertised["CONTROLLER"]) == "CONTROLLER://a:9093"
    both = "PLAINTEXT://public:9092,CONTROLLER://inner:9093"
    assert settings_of(COMBINED, advertised_listeners=both).advertised["CONTROLLER"].host == "inner"


def test_brokers_use_the_named_listener_or_that_of_the_security_protocol() -> None:
    listeners = {
        "listeners": "INSIDE://a:9094,PLAINTEXT://a:9092,CONTROLLER://a:9093",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    }
    assert settings_of(COMBINED | listeners).inter_broker_listener == "PLAINTEXT"
    given = settings_of(COMBINED | listeners, inter_broker_listener_name="inside")
    assert given.inter_broker_listener == "INSIDE"


def test_the_listener_of_a_single_node_may_have_any_name() -> None:
    settings = settings_of(
        SINGLE, listeners="CLIENTS://:9092", listener_security_protocol_map="CLIENTS:PLAINTEXT"
    )
    assert settings.inter_broker_listener == "CLIENTS"


@pytest.mark.parametrize(
    ("base", "changes", "message"),
    [
        (COMBINED, {"process_roles": ""}, "process.roles must be broker, controller, or both"),
        (COMBINED, {"controller_quorum_bootstrap_servers": ""}, "such as localhost:9093"),
        (COMBINED, {"controller_quorum_bootstrap_servers": "a"}, "write it as host:9093"),
        (COMBINED, {"controller_quorum_voters": "2@b:9093"}, "must name node 1"),
        (COMBINED, {"controller_quorum_voters": "1@a"}, "write it as 1@host:9093"),
        (COMBINED, {"controller_quorum_voters": "1@a:1,1@b:1"}, "names node 1 more than once"),
        (COMBINED, {"controller_quorum_voters": "1@0.0.0.0:1"}, "cannot reach"),
        (COMBINED, {"listeners": "PLAINTEXT://a:9092"}, "add CONTROLLER://host:9093"),
        (COMBINED, {"listeners": "CONTROLLER://a:9093"}, "one for clients"),
        (
            COMBINED,
            {"controller_listener_names": "CONTROLLER,OTHER"},
            "OTHER is not in listeners; add OTHER://host:9093",
        ),
        (COMBINED, {"listener_security_protocol_map": "CONTROLLER:SSL"}, "PLAINTEXT"),
        (COMBINED, {"advertised_listeners": "CONTROLLER://a:9093"}, "must have one for clients"),
        (COMBINED, {"inter_broker_listener_name": "OTHER"}, "set it to PLAINTEXT"),
        (
            COMBINED,
            {"inter_broker_listener_name": "CONTROLLER"},
            "CONTROLLER is not in listeners and advertised.listeners; set it to PLAINTEXT",
        ),
        (
            COMBINED,
            {
                "inter_broker_listener_name": "PLAINTEXT",
                "security_inter_broker_protocol": "PLAINTEXT",
            },
            "exclude each other",
        ),
        (
            COMBINED,
            {
                "listeners": "CLIENTS://a:9092,CONTROLLER://a:9093",
                "listener_security_protocol_map": "CLIENTS:PLAINTEXT",
            },
            "inter.broker.listener.name: PLAINTEXT is not in listeners",
        ),
        (COMBINED, {"advertised_listeners": "PLAINTEXT://0.0.0.0:9092"}, "cannot be sent to"),
        (BROKER, {"controller_quorum_bootstrap_servers": ""}, "needs the addresses of controllers"),
        (BROKER, {"controller_quorum_voters": "4@d:9093"}, "which is no controller"),
        (BROKER, {"listeners": "PLAINTEXT://d:1,CONTROLLER://d:2"}, "has no listener CONTROLLER"),
        (BROKER, {"controller_quorum_auto_join_enable": "true"}, "is for controllers"),
        (COMBINED, {"listeners": "SSL://a:1,CONTROLLER://a:2"}, "add CONTROLLER:PLAINTEXT or"),
        (CONTROLLER, {"controller_quorum_voters": ""}, "needs the addresses of controllers"),
        (CONTROLLER, {"node_id": "7"}, "must name node 7"),
        (CONTROLLER, {"listeners": "PLAINTEXT://b:9092"}, "CONTROLLER is not in listeners"),
        (
            CONTROLLER,
            {"listeners": "CONTROLLER://b:9093,PLAINTEXT://b:9092"},
            "remove PLAINTEXT, or add broker to process.roles",
        ),
        (
            CONTROLLER,
            {"inter_broker_listener_name": "CONTROLLER"},
            "remove it from this controller",
        ),
        (
            SINGLE,
            {"controller_quorum_auto_join_enable": "true"},
            "needs a listener for controllers",
        ),
        (SINGLE, {"controller_quorum_voters": "7@a:9093"}, "add CONTROLLER://host:9093"),
        (SINGLE, {"replica_lag_time_max_ms": "100"}, "must not exceed replica.lag.time.max.ms"),
        (SINGLE, {"replica_socket_timeout_ms": "100"}, "must not exceed replica.socket.timeout.ms"),
    ],
)
def test_nodes_that_cannot_work_are_refused_with_advice(
    base: dict[str, str], changes: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidConfig) as caught:
        load(base | named(changes))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("base", "changes", "message"),
    [
        (BROKER, {"controller_listener_names": "CONTROLLER,OTHER"}, "only the first listener"),
        (COMBINED, {"broker_heartbeat_interval_ms": "5000"}, "at most half"),
        (COMBINED, {"replica_selector_class": "com.example.Nearest"}, "is a Java class"),
    ],
)
def test_settings_that_hardly_work_as_intended_are_warnings(
    base: dict[str, str], changes: dict[str, str], message: str
) -> None:
    _, warnings = load(base | named(changes))
    assert len(warnings) == 1
    assert message in warnings[0]


def test_the_selector_by_racks_is_known() -> None:
    assert load(BROKER | {"replica.selector.class": RACK_AWARE_SELECTOR})[1] == []
