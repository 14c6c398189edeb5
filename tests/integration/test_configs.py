"""Configs as an administrator sees them: where each value comes from, and what a change does."""

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourceType,
)

from tests.clients import SECONDS_MAX, admin, configs_of, create_topic, topic_configs
from tests.nodes import Node, eventually

StartNode = Callable[..., Node]

# What Kafka 4.3 has, unless told otherwise.
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
    """RET-1: synonyms say where a value comes from and what stands behind it."""
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


def test_the_broker_tells_its_own_configs(node: Node) -> None:
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
