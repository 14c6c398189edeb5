"""Topic configs: what is refused, and what overrides and broker settings come to."""

import pytest

from headrace.errors import InvalidConfig
from headrace.settings.broker import BrokerSettings
from headrace.settings.broker_loading import load, with_dynamic
from headrace.settings.topic import TOPIC_CONFIGS, effective, validate
from headrace.storage.config import LogConfig


def test_a_topic_without_overrides_on_a_stock_broker_is_kafkas_default_log() -> None:
    assert LogConfig(**effective({}, BrokerSettings())) == LogConfig()


def test_every_field_of_a_log_comes_from_here() -> None:
    """But the rules about payloads, which the broker makes for each topic by its name."""
    fields = {*effective({}, BrokerSettings()), "record_rules"}
    assert fields == set(LogConfig.__struct_fields__)


def test_the_topic_wins_over_the_broker_and_dynamic_over_static() -> None:
    """RET-1: per broker, with topic overrides on top."""
    static, _ = load({"log.retention.hours": "2", "log.segment.bytes": "2000000"})
    dynamic = with_dynamic(static, {"log.segment.bytes": "3000000"}, {"log.retention.ms": "9"})
    assert effective({}, static)["retention_ms"] == 7_200_000
    assert effective({}, dynamic)["retention_ms"] == 9
    assert effective({}, dynamic)["segment_bytes"] == 3_000_000
    assert effective({"retention.ms": "-1"}, dynamic)["retention_ms"] == -1


def test_policies_are_a_set_and_may_be_empty() -> None:
    broker = BrokerSettings()
    both = effective({"cleanup.policy": "compact, delete"}, broker)
    assert both["cleanup_policy"] == {"compact", "delete"}
    assert effective({"cleanup.policy": ""}, broker)["cleanup_policy"] == frozenset()


def test_the_internal_segment_size_goes_below_the_limit() -> None:
    overrides = {"internal.segment.bytes": "1000", "segment.bytes": "2000000"}
    validate(overrides)
    assert effective(overrides, BrokerSettings())["segment_bytes"] == 1000


def test_stored_overrides_of_other_versions_do_no_harm() -> None:
    overrides = {"message.format.version": "3.0", "segment.bytes": "14", "retention.ms": "x"}
    fields = effective(overrides, BrokerSettings())
    assert fields["segment_bytes"] == 14
    assert fields["retention_ms"] == BrokerSettings().retention_ms


@pytest.mark.parametrize(
    "configs",
    [
        {"segment.bytes": " 2000000 "},
        {"cleanup.policy": "compact,compact"},
        {"cleanup.policy": ""},
        {"preallocate": "True"},
        {"retention.ms": "-1"},
        {"retention.bytes": "-100"},
        {"compression.gzip.level": "-1"},
        {"leader.replication.throttled.replicas": "*"},
        {"follower.replication.throttled.replicas": "0:1,1:2"},
        {"remote.log.copy.disable": "true"},
    ],
)
def test_configs_valid_in_kafka_are_accepted(configs: dict[str, str]) -> None:
    validate(configs)


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({"segment.bytes": "1000"}, "segment.bytes must be at least 1048576, not 1000"),
        ({"segment.bytes": "x"}, "must be a whole number"),
        ({"segment.bytes": "2147483648"}, "must fit in 32 bits"),
        ({"cleanup.policy": "Compact"}, "must be a list of compact, delete"),
        ({"compression.type": "brotli"}, "must be one of uncompressed, zstd"),
        ({"compression.gzip.level": "0"}, "between 1 and 9 or -1"),
        ({"min.cleanable.dirty.ratio": "1.5"}, "between 0 and 1"),
        ({"retention.ms": "-2"}, "at least -1"),
        ({"message.timestamp.type": "createtime"}, "CreateTime, LogAppendTime"),
        ({"leader.replication.throttled.replicas": "x"}, "partition:broker pairs"),
        ({"remote.storage.enable": "true"}, "no remote tier"),
        ({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}, "must not exceed"),
        ({"retention.m": "5"}, "retention.m is not a topic config. Did you mean retention"),
        ({"message.format.version": "3.0"}, "message.format.version is not a topic config"),
        ({"retention.ms": None}, "has no value"),
    ],
)
def test_configs_invalid_in_kafka_are_refused_with_advice(
    configs: dict[str, str | None], message: str
) -> None:
    with pytest.raises(InvalidConfig) as caught:
        validate(configs)
    assert message in str(caught.value)


def test_rules_between_configs_see_the_brokers_values() -> None:
    broker, _ = load({"log.cleaner.max.compaction.lag.ms": "100"})
    with pytest.raises(InvalidConfig, match="must not exceed"):
        validate({"min.compaction.lag.ms": "200"}, broker)


@pytest.mark.parametrize("name", sorted(TOPIC_CONFIGS))
def test_every_config_may_be_set_to_its_default(name: str) -> None:
    default = TOPIC_CONFIGS[name].render(TOPIC_CONFIGS[name].default)
    validate({name: default if default is not None else "1000"})
