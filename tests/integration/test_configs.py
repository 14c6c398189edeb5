"""Configs as an administrator sees them: where each value comes from, and what a change does."""

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourceType,
)
from kio.schema.errors import ErrorCode

from tests.clients.librdkafka import SECONDS_MAX, admin, configs_of, create_topic, topic_configs
from tests.clients.wire import Connection
from tests.processes.nodes import HOST, Node, eventually, free_port

StartNode = Callable[..., Node]
DATA = Path(__file__).resolve().parents[1] / "data"

# The defaults of Kafka 4.3.
TOPIC_DEFAULTS = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "delete.retention.ms": "86400000",
    "flush.messages": "9223372036854775807",
    "index.interval.bytes": "4096",
    "max.message.bytes": "1048588",
    "message.timestamp.type": "CreateTime",
    "min.cleanable.dirty.ratio": "0.5",
    "min.insync.replicas": "1",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "segment.bytes": "1073741824",
    "segment.ms": "604800000",
    "unclean.leader.election.enable": "false",
}


def test_a_topic_starts_with_kafkas_defaults(node: Node, topic: str) -> None:
    """RET-1: a week, no limit by size; and the rest as in Kafka."""
    configs = topic_configs(node, topic)
    assert {name: configs[name].value for name in TOPIC_DEFAULTS} == TOPIC_DEFAULTS
    assert configs["retention.ms"].is_default


def test_a_topics_own_value_shadows_the_brokers(node: Node) -> None:
    """RET-1: synonyms list the source of a value and the values that it overrides."""
    topic = create_topic(node, segment_bytes=2_097_152)
    entry = topic_configs(node, topic)["segment.bytes"]
    assert entry.value == "2097152"
    assert ConfigSource(entry.source) == ConfigSource.DYNAMIC_TOPIC_CONFIG
    assert [(synonym.name, synonym.value) for synonym in entry.synonyms.values()] == [
        ("segment.bytes", "2097152"),
        ("log.segment.bytes", "1073741824"),
    ]


def test_a_change_takes_effect_and_can_be_taken_back(node: Node, topic: str) -> None:
    """RET-1: set and delete."""
    change(node, topic, "retention.ms", AlterConfigOpType.SET, "1000000")
    eventually(lambda: topic_configs(node, topic)["retention.ms"].value == "1000000")
    change(node, topic, "retention.ms", AlterConfigOpType.DELETE)
    eventually(lambda: topic_configs(node, topic)["retention.ms"].value == "604800000")


def test_list_configs_are_appended_to_and_subtracted_from(node: Node, topic: str) -> None:
    """RET-2: cleanup.policy is a list."""
    change(node, topic, "cleanup.policy", AlterConfigOpType.APPEND, "compact")
    eventually(lambda: topic_configs(node, topic)["cleanup.policy"].value == "delete,compact")
    change(node, topic, "cleanup.policy", AlterConfigOpType.SUBTRACT, "delete")
    eventually(lambda: topic_configs(node, topic)["cleanup.policy"].value == "compact")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("retention.ms", "a week"),
        ("min.cleanable.dirty.ratio", "1.5"),
        ("cleanup.policy", "compost"),
        ("compression.type", "rar"),
        ("segment.bytes", "-5"),
        ("no.such.config", "1"),
    ],
)
def test_a_bad_value_is_refused_and_changes_nothing(
    node: Node, topic: str, name: str, value: str
) -> None:
    """RET-1, RET-2: INVALID_CONFIG."""
    with pytest.raises(KafkaException) as refused:
        change(node, topic, name, AlterConfigOpType.SET, value)
    assert refused.value.args[0].code() == KafkaError.INVALID_CONFIG
    configs = topic_configs(node, topic)
    assert name not in configs or configs[name].is_default


def test_the_old_alter_replaces_all_of_a_topics_values(node: Node) -> None:
    """OPS-1: AlterConfigs sets what is named and resets what is not."""
    topic = create_topic(node, retention_ms=1_000_000, segment_ms=2_000_000)
    client = admin(node)
    resource = ConfigResource(ResourceType.TOPIC, topic, set_config={"retention.ms": "3000000"})
    with pytest.warns(DeprecationWarning, match="incremental_alter_configs"):
        futures = client.alter_configs([resource])
    futures[resource].result(SECONDS_MAX)
    eventually(lambda: topic_configs(node, topic)["retention.ms"].value == "3000000")
    assert topic_configs(node, topic)["segment.ms"].is_default


def test_the_broker_describes_its_own_configs(node: Node) -> None:
    """RET-1: 168 hours, no minutes or milliseconds, no limit by size."""
    configs = broker_configs(node)
    assert configs["log.retention.hours"].value == "168"
    assert configs["log.retention.minutes"].value is None
    assert configs["log.retention.ms"].value is None
    assert configs["log.retention.bytes"].value == "-1"
    assert configs["log.cleaner.backoff.ms"].value == "200"
    source = ConfigSource(configs["log.cleaner.backoff.ms"].source)
    assert source == ConfigSource.STATIC_BROKER_CONFIG
    assert configs["node.id"].is_read_only


def test_a_broker_default_changed_at_run_time_reaches_topics(node: Node, topic: str) -> None:
    """RET-1: per broker, while it runs; a topic without a value of its own follows."""
    broker = ConfigResource(ResourceType.BROKER, broker_name(node))
    try:
        change_resource(node, broker, "log.retention.ms", AlterConfigOpType.SET, "123456789")
        eventually(lambda: topic_configs(node, topic)["retention.ms"].value == "123456789")
    finally:
        change_resource(node, broker, "log.retention.ms", AlterConfigOpType.DELETE)
    eventually(lambda: topic_configs(node, topic)["retention.ms"].value == "604800000")


@pytest.mark.parametrize(
    ("name", "value", "before"),
    [
        ("sasl.kerberos.min.time.before.relogin", "58000", "60000"),
        ("ssl.client.auth", "requested", "none"),
        ("background.threads", "9", "10"),
        ("num.io.threads", "9", "8"),
        ("log.cleaner.io.buffer.size", "600000", "524288"),
        ("max.connections", "1000000", "2147483647"),
    ],
)
def test_dynamic_configs_are_applied_and_described(
    node: Node, name: str, value: str, before: str
) -> None:
    """RET-1: per broker; the new value over the old one."""
    broker = ConfigResource(ResourceType.BROKER, broker_name(node))
    try:
        change_resource(node, broker, name, AlterConfigOpType.SET, value)
        entry = eventually(
            lambda: broker_configs(node)[name], expect=lambda entry: entry.value == value
        )
        assert ConfigSource(entry.source) == ConfigSource.DYNAMIC_BROKER_CONFIG
        assert not entry.is_read_only
        layers = [(one.value, ConfigSource(one.source)) for one in entry.synonyms.values()]
        assert (before, ConfigSource.DEFAULT_CONFIG) in layers
    finally:
        change_resource(node, broker, name, AlterConfigOpType.DELETE)
    eventually(lambda: broker_configs(node)[name].value == before)


def test_a_config_of_a_plug_in_is_kept_and_hidden(node: Node) -> None:
    """RET-1, SEC-1: any name is accepted, and its value is never returned."""
    with Connection(node.port) as connection:
        set_for_all_brokers(connection, "some.plugin.key", "hunter2")
        eventually(lambda: "some.plugin.key" in broker_configs(node))
        entry = broker_configs(node)["some.plugin.key"]
        set_for_all_brokers(connection, "some.plugin.key", None)
    assert (entry.value, entry.is_sensitive) == (None, True)
    assert ConfigSource(entry.source) == ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log.dirs", "/tmp"),
        ("num.partitions", "3"),
        ("num.io.threads", "many"),
        ("num.io.threads", "1000"),
        ("ssl.keystore.location", "/keys"),
    ],
)
def test_changes_of_read_only_configs_are_refused(node: Node, name: str, value: str) -> None:
    """RET-1: INVALID_REQUEST."""
    broker = ConfigResource(ResourceType.BROKER, broker_name(node))
    with pytest.raises(KafkaException) as refused:
        change_resource(node, broker, name, AlterConfigOpType.SET, value)
    assert refused.value.args[0].code() == KafkaError.INVALID_REQUEST


@pytest.mark.parametrize(
    "name", ["ssl.client.auth", "listener.name.plaintext.ssl.keystore.location"]
)
def test_configs_of_a_single_broker_cannot_be_set_for_all(node: Node, name: str) -> None:
    """RET-1: INVALID_REQUEST."""
    with Connection(node.port) as connection, pytest.raises(KafkaException) as refused:
        set_for_all_brokers(connection, name, "required")
    assert refused.value.args[0].code() == KafkaError.INVALID_REQUEST


def test_a_broker_describes_all_configs_of_kafka(node: Node) -> None:
    """RET-1: the whole set, each with its type; a node has both its names."""
    configs = broker_configs(node)
    told = {name for name in configs if not name.startswith("headrace.")}
    definitions = (DATA / "kafka_configs.tsv").read_text().splitlines()
    rows = [line.split("\t") for line in definitions if line.startswith("broker\t")]
    public = {name for _, name, _, _, internal in rows if internal == "false"}
    assert public <= told
    assert configs["broker.id"].value == configs["node.id"].value == broker_name(node)
    assert ConfigSource(configs["broker.id"].source) == ConfigSource.STATIC_BROKER_CONFIG
    assert configs["process.roles"].value == "broker,controller"


def test_connections_beyond_the_limit_wait_for_their_turn(start_node: StartNode) -> None:
    """OPS-1: max.connections holds newcomers back, and lets them in when others go."""
    node = start_node(max_connections=2)
    first = accepted(node)
    with accepted(node), Connection(node.port) as third:
        third.send("api_versions", 0)
        first.socket.close()
        assert third.receive("api_versions", 0).error_code == ErrorCode.none


def test_an_address_may_hold_as_many_connections_as_its_own_limit(
    start_node: StartNode,
) -> None:
    """OPS-1: max.connections.per.ip and its overrides, which may change at run time."""
    node = start_node()
    with accepted(node) as first:
        set_for_all_brokers(first, "max.connections.per.ip", "1")
        eventually(lambda: is_turned_away(node))
        set_for_all_brokers(first, "max.connections.per.ip.overrides", "127.0.0.1:50")
        eventually(lambda: not is_turned_away(node))


def test_an_address_of_ipv4_has_its_limit_on_a_listener_of_both_families(
    start_node: StartNode, only_headrace: None
) -> None:
    """QUO-1: there the system names it by an address of IPv6."""
    node = start_node(max_connections_per_ip_overrides="127.0.0.1:1")
    port = free_port()
    node.stop()
    node.settings |= {
        "listeners": f"PLAINTEXT://[::]:{port},OTHER://{node.address}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port},OTHER://{node.address}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
    }
    node.start()
    eventually(lambda: not is_turned_away(node))
    with Connection(port) as first:
        first.send("api_versions", 0)
        assert first.receive("api_versions", 0).error_code == ErrorCode.none
        assert is_turned_away(node)


def test_configs_of_an_unknown_topic_are_refused(node: Node) -> None:
    """LOG-5"""
    with pytest.raises(KafkaException) as refused:
        topic_configs(node, "never-created")
    assert refused.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def change(
    node: Node, topic: str, name: str, operation: AlterConfigOpType, value: str | None = None
) -> None:
    change_resource(node, ConfigResource(ResourceType.TOPIC, topic), name, operation, value)


def change_resource(
    node: Node,
    resource: ConfigResource,
    name: str,
    operation: AlterConfigOpType,
    value: str | None = None,
) -> None:
    entry = ConfigEntry(name, value, incremental_operation=operation)
    request = ConfigResource(resource.restype, resource.name, incremental_configs=[entry])
    client = admin(node)
    client.incremental_alter_configs([request])[request].result(SECONDS_MAX)


def broker_configs(node: Node) -> dict[str, ConfigEntry]:
    return configs_of(node, ConfigResource(ResourceType.BROKER, broker_name(node)))


def broker_name(node: Node) -> str:
    (broker,) = admin(node).list_topics(timeout=SECONDS_MAX).brokers
    return str(broker)


def accepted(node: Node) -> Connection:
    """A connection that the broker has taken: it has answered."""

    def opened() -> Connection | None:
        connection = Connection(node.port)
        try:
            connection.call("api_versions", 0)
        except ConnectionError:
            connection.socket.close()
            return None
        return connection

    connection = eventually(opened)
    assert connection is not None
    return connection


def is_turned_away(node: Node) -> bool:
    with Connection(node.port) as connection:
        try:
            connection.call("api_versions", 0)
        except ConnectionError:
            return True
    return False


def set_for_all_brokers(connection: Connection, name: str, value: str | None) -> None:
    """Set or, without a value, remove a default; librdkafka cannot name the brokers together."""
    operation = 1 if value is None else 0
    config = {"name": name, "config_operation": operation, "value": value}
    resource = {"resource_type": 4, "resource_name": "", "configs": [config]}
    answer = connection.call(
        "incremental_alter_configs", 0, resources=[resource], validate_only=False
    )
    (result,) = answer.responses
    if result.error_code:
        raise KafkaException(KafkaError(result.error_code.value))
