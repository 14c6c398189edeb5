"""Broker settings: Kafka's names and defaults, and a clear word on everything else."""

import inspect
import re
from pathlib import Path

import pytest

from headrace.errors import InvalidConfig
from headrace.settings import group, kafka_properties, listener_logins, topic
from headrace.settings.broker import BROKER_CONFIGS, BrokerSettings, field_name
from headrace.settings.broker_layers import BrokerLayers
from headrace.settings.broker_loading import load, with_dynamic
from headrace.settings.definitions import ConfigDefinition
from headrace.settings.describe import describe_broker
from headrace.settings.listener_security import TlsSettings
from headrace.settings.listeners import Listener
from headrace.settings.properties import parse
from headrace.settings.topic import TOPIC_CONFIGS

DATA = Path(__file__).resolve().parents[2] / "data"
SOURCE = Path(inspect.getfile(kafka_properties)).parents[1]
KAFKA = [
    line.split("\t")
    for line in (DATA / "kafka_configs.tsv").read_text().splitlines()
    if not line.startswith("#")
]
# Configs of Kafka from 4.4 on: dead letter topics of share groups (KIP-1191).
AHEAD = ("headrace.", "errors.deadletterqueue.")
OWN_DEFAULTS = {"node.id", "process.roles", "controller.listener.names"}  # Kafka requires them.

OF_AUTHORIZERS = {"super.users", "allow.everyone.if.no.acl.found"}  # Kafka's own has no list.

STOCK_FILE = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/var/lib/kafka/a,/var/lib/kafka/b
num.partitions=1
num.recovery.threads.per.data.dir=2
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def kafka_configs(resource: str) -> dict[str, tuple[str, str, bool]]:
    return {
        name: (kind, default, internal == "true")
        for owner, name, kind, default, internal in KAFKA
        if owner == resource
    }


def as_kafka_prints(definition: ConfigDefinition) -> str:
    text = definition.render(definition.default)
    if text is None:
        return ""
    return f"[{text}]" if definition.type.name == "LIST" else text


@pytest.mark.parametrize("resource", ["broker", "topic"])
def test_every_default_equals_that_of_kafka(resource: str) -> None:
    """RET-1, and all others: the facts come from Kafka's own definitions."""
    ours = BROKER_CONFIGS if resource == "broker" else TOPIC_CONFIGS
    theirs = kafka_configs(resource)
    compared = {
        name: (definition.type.name, as_kafka_prints(definition), definition.is_internal)
        for name, definition in ours.items()
        if not name.startswith(AHEAD) and name not in OWN_DEFAULTS | OF_AUTHORIZERS
    }
    assert compared == {name: theirs[name] for name in compared}


def test_every_topic_config_of_kafka_is_defined() -> None:
    ours = {name for name in TOPIC_CONFIGS if not name.startswith(AHEAD)}
    assert ours == kafka_configs("topic").keys()


def test_every_broker_property_of_kafka_is_defined() -> None:
    known = {*BROKER_CONFIGS, *kafka_properties.names()}
    assert kafka_configs("broker").keys() <= known


def test_no_property_is_both_honoured_and_not() -> None:
    assert not BROKER_CONFIGS.keys() & set(kafka_properties.names())


def test_every_property_has_a_field_and_a_sentence() -> None:
    fields = set(BrokerSettings.__struct_fields__) - {"listener_overrides", "given", "ignored"}
    assert {field_name(name) for name in BROKER_CONFIGS} == fields
    assert all(config.documentation.endswith(".") for config in BROKER_CONFIGS.values())
    assert all(config.documentation.endswith(".") for config in TOPIC_CONFIGS.values())


def test_every_supported_property_is_read_somewhere() -> None:
    """A setting without an effect must be reported as ignored, so that no user relies on it."""
    of_groups = [one.name for one in group.GROUP_CONFIGS.values() if one.synonyms]
    limits = {group._limit_name(name, end) for name in of_groups for end in ("min", "max")}
    defaults = {f"group.{name}" for name in of_groups}
    elsewhere = set(topic._SETTINGS.values()) | {field_name(one) for one in limits | defaults}
    checked_only = {
        "client_quota_callback_class",
        "broker_id",
        "config_providers",
        "early_start_listeners",
    }
    of_clusters = {  # Read by the parts of a cluster, which are being joined.
        "process_roles",
        "inter_broker_listener_name",
        "security_inter_broker_protocol",
        "controller_quorum_bootstrap_servers",
        "controller_quorum_voters",
        "controller_quorum_auto_join_enable",
        "controller_quorum_election_timeout_ms",
        "controller_quorum_election_backoff_max_ms",
        "controller_quorum_fetch_timeout_ms",
        "controller_quorum_request_timeout_ms",
        "controller_quorum_retry_backoff_ms",
        "controller_quorum_append_linger_ms",
        "controller_quorum_fetch_max_bytes",
        "controller_quorum_fetch_snapshot_max_bytes",
        "broker_heartbeat_interval_ms",
        "broker_session_timeout_ms",
        "initial_broker_registration_timeout_ms",
        "metadata_max_idle_interval_ms",
        "controlled_shutdown_enable",
        "auto_leader_rebalance_enable",
        "leader_imbalance_check_interval_seconds",
        "unclean_leader_election_interval_ms",
        "num_replica_fetchers",
        "replica_lag_time_max_ms",
        "replica_fetch_wait_max_ms",
        "replica_fetch_min_bytes",
        "replica_fetch_max_bytes",
        "replica_fetch_response_max_bytes",
        "replica_fetch_backoff_ms",
        "replica_selector_class",
        "replica_socket_timeout_ms",
        "replica_socket_receive_buffer_bytes",
    }
    reads = "".join(
        path.read_text() for path in SOURCE.rglob("*.py") if path.parent.name != "settings"
    )
    reads += inspect.getsource(BrokerSettings)
    unread = {
        field_name(name)
        for name in BROKER_CONFIGS
        if not re.search(rf"\.{field_name(name)}\b", reads)
    }
    of_tls = {
        f"headrace_ssl_{name}" if name == "crl_location" else f"ssl_{name}"
        for name in TlsSettings.__struct_fields__
    }
    reads += inspect.getsource(listener_logins)
    of_logins = {field_name(name) for name in BROKER_CONFIGS if f'"{name}"' in reads}
    of_logins.add("sasl_jaas_config")  # Its name has two prefixes.
    assert unread - elsewhere - checked_only - of_clusters - of_tls - of_logins == set()


def test_kafkas_stock_file_works_unchanged() -> None:
    settings, warnings = load(parse(STOCK_FILE))
    assert settings.directories == ("/var/lib/kafka/a", "/var/lib/kafka/b")
    assert settings.metadata_directory == "/var/lib/kafka/a"
    assert settings.broker_listeners == (Listener("PLAINTEXT", "", 9092),)
    assert settings.controller_listeners == (Listener("CONTROLLER", "", 9093),)
    assert settings.advertised["PLAINTEXT"].host == "localhost"
    assert {warning.split()[0] for warning in warnings} == {
        "num.network.threads",
        "num.io.threads",
    }


def test_an_empty_file_is_a_node() -> None:
    settings, warnings = load({})
    assert settings == BrokerSettings()
    assert warnings == []


def test_all_mistakes_are_reported_at_once_with_the_nearest_name() -> None:
    with pytest.raises(InvalidConfig) as caught:
        load({"log.segment.byte": "1", "num.partitions": "0", "group.min.sesion.timeout.ms": "1"})
    lines = str(caught.value).splitlines()
    assert lines[0].endswith("Did you mean log.segment.bytes?")
    assert lines[1] == "num.partitions must be at least 1, not 0"
    assert lines[2].endswith("Did you mean group.min.session.timeout.ms?")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("listener.name.internal.num.network.threads", "no listener has a value of its own"),
        ("ssl.provider", "of a JVM"),
        ("offsets.commit.timeout.ms", "when it is written"),
        ("zookeeper.connect", "ZooKeeper"),
        ("inter.broker.protocol.version", "Kafka 4 removed it"),
        ("rsm.config.bucket", "tiered storage"),
        ("alter.log.dirs.replication.quota.window.num", "between log directories"),
        ("num.io.threads", "one event loop"),
        ("cordoned.log.dirs", "does not support it yet"),
    ],
)
def test_an_ignored_property_of_kafka_is_a_warning_with_the_reason(name: str, reason: str) -> None:
    _, warnings = load({name: "1"})
    assert len(warnings) == 1
    assert warnings[0].startswith(f"{name} is ignored: ")
    assert reason in warnings[0]


def test_an_authorizer_of_another_class_is_refused() -> None:
    """SEC-7"""
    with pytest.raises(InvalidConfig, match="StandardAuthorizer or empty"):
        load({"authorizer.class.name": "com.example.Authorizer"})


def test_a_super_user_without_a_type_is_refused() -> None:
    """SEC-7"""
    with pytest.raises(InvalidConfig, match=r"separated by semicolons \(invalid: bob\)"):
        load({"super.users": "User:ada; bob"})


def test_super_users_without_an_authorizer_are_a_warning() -> None:
    """SEC-7"""
    _, warnings = load({"super.users": "User:ada"})
    assert "super.users has no effect without authorizer.class.name" in warnings[0]


def test_an_early_listener_must_exist() -> None:
    with pytest.raises(InvalidConfig, match="OTHER is not in listeners"):
        load({"early.start.listeners": "OTHER"})


def test_a_value_of_the_wrong_type_is_invalid_even_if_ignored() -> None:
    with pytest.raises(InvalidConfig, match=r"num\.io\.threads must be a whole number"):
        load({"num.io.threads": "many"})


def test_addresses_may_have_limits_of_their_own() -> None:
    settings, _ = load({"max.connections.per.ip.overrides": "10.0.0.7:5, [::1]:3,host.example:1"})
    assert settings.connections_per_ip == {"10.0.0.7": 5, "::1": 3, "host.example": 1}
    with pytest.raises(InvalidConfig, match="address:count"):
        load({"max.connections.per.ip.overrides": "10.0.0.7"})


def test_timeouts_of_groups_must_be_within_their_bounds() -> None:
    with pytest.raises(InvalidConfig, match=r"between group\.consumer\.min\.session"):
        load({"group.consumer.session.timeout.ms": "10000"})


def test_settings_of_the_file_are_kept_apart_from_the_defaults() -> None:
    settings, _ = load({"num.partitions": "3", "num.io.threads": "8"})
    assert settings.given == {"num.partitions": "3"}
    assert settings.ignored == {"num.io.threads": "8"}


SECRETS = [name for owner, name, kind, *_ in KAFKA if owner == "broker" and kind == "PASSWORD"]


@pytest.mark.parametrize(
    "name", [*(name for name in SECRETS if name not in BROKER_CONFIGS), "rsm.config.access.key"]
)
def test_secrets_that_are_not_needed_are_not_kept(name: str) -> None:
    """SEC-1."""
    settings, warnings = load({name: "hunter2"})
    assert settings.ignored == {name: None}
    assert "hunter2" not in repr(settings) + "".join(warnings)


@pytest.mark.parametrize(
    "properties",
    [
        *({name: "hunter2"} for name in SECRETS if name in BROKER_CONFIGS),
        {"listener.name.internal.ssl.key.password": "hunter2"},
    ],
)
def test_secrets_are_never_shown(properties: dict[str, str]) -> None:
    """SEC-9."""
    settings, warnings = load(properties)
    layers = BrokerLayers(settings, dynamic=properties)
    shown = [(one.value, one.synonyms) for one in describe_broker(layers)]
    assert "hunter2" not in repr(settings) + repr(shown) + "".join(warnings)


@pytest.mark.parametrize(
    ("properties", "retention_ms"),
    [
        ({}, 168 * 3_600_000),
        ({"log.retention.hours": "1"}, 3_600_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "2"}, 120_000),
        ({"log.retention.minutes": "2", "log.retention.ms": "5"}, 5),
        ({"log.retention.ms": "-1"}, -1),
        ({"log.retention.hours": "-7"}, -1),
    ],
)
def test_the_finest_unit_of_retention_counts(properties: dict[str, str], retention_ms: int) -> None:
    """RET-1: hours by default, minutes and milliseconds where given, any negative is for ever."""
    assert load(properties)[0].retention_ms == retention_ms


def test_the_finest_unit_of_rolling_and_flushing_counts() -> None:
    settings, _ = load(
        {
            "log.roll.hours": "2",
            "log.roll.jitter.hours": "1",
            "log.flush.scheduler.interval.ms": "7",
        }
    )
    assert (settings.roll_ms, settings.roll_jitter_ms) == (7_200_000, 3_600_000)
    assert settings.flush_interval_ms == 7
    finer, _ = load({"log.roll.ms": "5", "log.roll.jitter.ms": "4", "log.flush.interval.ms": "3"})
    assert (finer.roll_ms, finer.roll_jitter_ms, finer.flush_interval_ms) == (5, 4, 3)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"node.id": "1", "broker.id": "2"}, "give node.id alone"),
        ({"listeners": "PLAINTEXT//:9092"}, "write it as PLAINTEXT://host:port"),
        ({"listeners": "SSL://:9093"}, "set ssl.keystore.location to a file"),
        ({"listeners": "INSIDE://:9093"}, "add INSIDE:PLAINTEXT"),
        ({"listeners": "CONTROLLER://:9093"}, "one for clients"),
        ({"listeners": "PLAINTEXT://a:1,PLAINTEXT://b:2"}, "more than once"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "cannot be sent to"),
        ({"advertised.listeners": "OTHER://h:9092"}, "is not in listeners"),
        ({"inter.broker.listener.name": "OTHER"}, "not in listeners"),
        ({"listener.security.protocol.map": "A:B"}, "a colon and one of"),
        ({"log.retention.ms": "0"}, "-1 (unlimited)"),
        (
            {"log.cleaner.min.compaction.lag.ms": "5", "log.cleaner.max.compaction.lag.ms": "4"},
            "must not exceed",
        ),
        ({"log.cleaner.dedupe.buffer.size": "1000"}, "log.cleaner.dedupe.buffer.size"),
        ({"headrace.log.level": "LOUD"}, "must be one of DEBUG"),
        ({"group.share.max.share.sessions": "100"}, "must be at least group.share.max.size"),
        ({"headrace.metrics.port": "70000"}, "must be between 0 and 65535 or -1"),
        ({"log.segment.bytes": "1000"}, "must be at least 1048576, not 1000"),
        ({"log.dirs": ""}, "must not be empty"),
        ({"log.dirs": "/a,s3://x/y"}, "log.dirs: s3://x/y is not a directory; mount other"),
        ({"log.dir": "s3://x/y"}, "log.dir: s3://x/y is not a directory"),
        ({"metadata.log.dir": "s3://x/y"}, "metadata.log.dir: s3://x/y is not a directory"),
    ],
)
def test_settings_that_cannot_work_are_refused_with_advice(
    properties: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidConfig) as caught:
        load(properties)
    assert message in str(caught.value)


def test_broker_id_alone_is_the_node_id() -> None:
    assert load({"broker.id": "7"})[0].node_id == 7


def test_dynamic_configs_of_the_broker_win_over_those_of_the_cluster() -> None:
    static, _ = load({"message.max.bytes": "1000", "log.retention.hours": "1"})
    settings = with_dynamic(
        static,
        {"message.max.bytes": "2000", "log.retention.ms": "60000"},
        {"message.max.bytes": "3000"},
    )
    assert settings.message_max_bytes == 3000
    assert settings.retention_ms == 60_000
    assert settings.given == static.given


def test_stored_configs_that_cannot_be_applied_do_not_stop_the_node() -> None:
    stored = {"num.partitions": "9", "log.segment.bytes": "1", "some.plugin.config": "x"}
    assert with_dynamic(BrokerSettings(), stored, {}) == BrokerSettings()
