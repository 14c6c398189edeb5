"""Answers of DescribeConfigs, compared with those of Kafka 4.3."""

from headrace.settings.broker import BrokerSettings
from headrace.settings.broker_layers import BrokerLayers
from headrace.settings.broker_loading import load
from headrace.settings.definitions import ConfigSource, ConfigType
from headrace.settings.describe import (
    DescribedConfig,
    describe_broker,
    describe_client_metrics,
    describe_cluster_default,
    describe_topic,
)


def layers(
    properties: dict[str, str] | None = None,
    *,
    cluster: dict[str, str] | None = None,
    broker: dict[str, str] | None = None,
) -> BrokerLayers:
    return BrokerLayers(load(properties or {})[0], cluster or {}, broker or {})


def find(described: list[DescribedConfig], name: str) -> DescribedConfig:
    return next(config for config in described if config.name == name)


def synonyms(config: DescribedConfig) -> list[tuple[int, str, str | None]]:
    return [(int(synonym.source), synonym.name, synonym.value) for synonym in config.synonyms]


def test_a_topic_without_overrides_shows_the_brokers_default() -> None:
    config = find(describe_topic({}, layers()), "cleanup.policy")
    assert (config.value, config.source) == ("delete", ConfigSource.DEFAULT)
    assert synonyms(config) == [(5, "log.cleanup.policy", "delete")]
    assert config.definition.type is ConfigType.LIST
    assert not config.is_read_only


def test_an_override_takes_precedence_over_every_layer() -> None:
    stack = layers(
        {"log.retention.hours": "168"},
        cluster={"log.retention.ms": "10000000"},
        broker={"log.retention.ms": "20000000"},
    )
    config = find(describe_topic({"retention.ms": "5"}, stack), "retention.ms")
    assert (config.value, config.source) == ("5", ConfigSource.TOPIC)
    assert synonyms(config) == [
        (1, "retention.ms", "5"),
        (2, "log.retention.ms", "20000000"),
        (3, "log.retention.ms", "10000000"),
        (4, "log.retention.hours", "168"),
        (5, "log.retention.hours", "168"),
    ]


def test_a_coarser_unit_alone_is_no_synonym() -> None:
    """As in Kafka, the value is that of the hours, and its source is the default."""
    config = find(describe_topic({}, layers({"log.retention.hours": "2"})), "retention.ms")
    assert (config.value, config.source) == ("7200000", ConfigSource.DEFAULT)
    assert synonyms(config) == []


def test_the_file_is_a_layer_of_its_own() -> None:
    config = find(describe_topic({}, layers({"log.segment.bytes": "2000000"})), "segment.bytes")
    assert (config.value, config.source) == ("2000000", ConfigSource.STATIC_BROKER)
    assert synonyms(config) == [
        (4, "log.segment.bytes", "2000000"),
        (5, "log.segment.bytes", "1073741824"),
    ]


def test_a_broker_describes_all_except_internal_configs() -> None:
    described = describe_broker(layers({"num.partitions": "3"}, broker={"message.max.bytes": "7"}))
    names = {config.name for config in described}
    assert "log.initial.task.delay.ms" not in names
    assert find(described, "num.partitions").is_read_only
    assert find(described, "num.partitions").source is ConfigSource.STATIC_BROKER
    limit = find(described, "message.max.bytes")
    assert (limit.value, limit.source) == ("7", ConfigSource.DYNAMIC_BROKER)
    assert not limit.is_read_only
    assert find(described, "log.retention.ms").value is None


def test_advertised_listeners_are_static_also_where_nothing_sets_them() -> None:
    given = {
        "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
        "controller.quorum.bootstrap.servers": "localhost:9093",
    }
    config = find(describe_broker(layers(given)), "advertised.listeners")
    assert (config.value, config.source) == ("PLAINTEXT://:9092", ConfigSource.STATIC_BROKER)
    assert config.is_read_only
    assert synonyms(config) == [(4, "advertised.listeners", "PLAINTEXT://:9092")]
    given["advertised.listeners"] = "PLAINTEXT://kafka.example:9092"
    config = find(describe_broker(layers(given)), "advertised.listeners")
    assert config.value == "PLAINTEXT://kafka.example:9092"


def test_ignored_settings_of_the_file_are_shown_without_secrets() -> None:
    """SEC-1."""
    described = describe_broker(layers({"num.io.threads": "8", "ssl.key.password": "hunter2"}))
    threads, password = find(described, "num.io.threads"), find(described, "ssl.key.password")
    assert (threads.value, threads.source) == ("8", ConfigSource.STATIC_BROKER)
    assert "no effect in Headrace: one event loop" in threads.definition.documentation
    assert password.definition.is_sensitive
    assert password.value is None
    assert synonyms(password) == [(4, "ssl.key.password", None)]


def test_numbers_print_as_kafka_prints_them() -> None:
    config = find(describe_broker(layers()), "log.cleaner.io.max.bytes.per.second")
    assert config.value == "1.7976931348623157E308"


def test_every_config_of_kafka_is_shown_and_internal_ones_where_they_are_set() -> None:
    names = [config.name for config in describe_broker(layers())]
    assert len(names) == len(set(names))
    assert {"num.io.threads", "ssl.client.auth", "log.dirs"} <= set(names)
    internal = "unstable.api.versions.enable"
    assert internal not in names
    described = describe_broker(layers({internal: "false"}))
    assert find(described, internal).value == "false"


def test_configs_of_plug_ins_are_shown_without_values() -> None:
    """SEC-1."""
    stack = layers(broker={"some.plugin.key": "hunter2"}, cluster={"other.plugin": "x"})
    own = find(describe_broker(stack), "some.plugin.key")
    assert (own.value, own.source, own.is_read_only) == (None, ConfigSource.DYNAMIC_BROKER, True)
    (of_all,) = describe_cluster_default(stack)
    assert (of_all.name, of_all.value) == ("other.plugin", None)


def test_the_cluster_default_shows_only_itself() -> None:
    stack = layers({"log.retention.ms": "1"}, cluster={"log.retention.ms": "2"})
    (config,) = describe_cluster_default(stack)
    assert (config.value, synonyms(config)) == ("2", [(3, "log.retention.ms", "2")])


def test_internal_topic_configs_show_only_where_they_are_set() -> None:
    plain = {config.name for config in describe_topic({}, layers())}
    assert "internal.segment.bytes" not in plain
    small = describe_topic({"internal.segment.bytes": "1000"}, layers())
    assert find(small, "internal.segment.bytes").value == "1000"


def test_a_subscription_shows_its_own_settings() -> None:
    described = describe_client_metrics({"interval.ms": "1000", "unknown": "x"})
    assert {config.name: (config.value, config.source) for config in described} == {
        "interval.ms": ("1000", ConfigSource.CLIENT_METRICS),
        "metrics": ("", ConfigSource.DEFAULT),
        "match": ("", ConfigSource.DEFAULT),
    }


def test_unset_layers_are_empty() -> None:
    assert BrokerLayers(BrokerSettings()).settings == BrokerSettings()
