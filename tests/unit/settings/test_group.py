"""The configs of a group."""

import pytest

from headrace.errors import InvalidConfig
from headrace.settings.broker import BrokerSettings
from headrace.settings.broker_layers import BrokerLayers
from headrace.settings.describe import describe_group
from headrace.settings.group import GROUP_CONFIGS, validate, value_of

BROKER = BrokerSettings(node_id=1)


@pytest.mark.parametrize(
    "configs",
    [
        {"consumer.session.timeout.ms": "50000"},
        {"consumer.heartbeat.interval.ms": "6000", "share.auto.offset.reset": "earliest"},
        {"share.auto.offset.reset": "by_duration:PT1H", "share.isolation.level": "read_committed"},
        {"streams.num.standby.replicas": "2"},
    ],
)
def test_valid_configs_are_accepted(configs: dict[str, str]) -> None:
    validate(configs, BROKER)


@pytest.mark.parametrize(
    ("configs", "complaint"),
    [
        ({"nope": "1"}, "Unknown group config name: nope"),
        ({"consumer.session.timeout": "1"}, "consumer.session.timeout.ms"),
        ({"consumer.session.timeout.ms": "44999"}, "group.consumer.min.session.timeout.ms"),
        ({"consumer.session.timeout.ms": "60001"}, "group.consumer.max.session.timeout.ms"),
        ({"consumer.session.timeout.ms": "soon"}, "consumer.session.timeout.ms"),
        ({"streams.num.standby.replicas": "3"}, "group.streams.max.standby.replicas"),
        ({"share.isolation.level": "none"}, "share.isolation.level"),
        ({"share.auto.offset.reset": "never"}, "share.auto.offset.reset"),
    ],
)
def test_bad_configs_are_refused_with_a_reason(configs: dict[str, str], complaint: str) -> None:
    with pytest.raises(InvalidConfig, match=complaint):
        validate(configs, BROKER)


def test_a_session_must_outlast_a_heartbeat() -> None:
    broker = BrokerSettings(
        node_id=1,
        group_consumer_min_session_timeout_ms=1,
        group_consumer_min_heartbeat_interval_ms=1,
    )
    configs = {"consumer.session.timeout.ms": "5000", "consumer.heartbeat.interval.ms": "5000"}
    with pytest.raises(InvalidConfig, match="must be greater than"):
        validate(configs, broker)


def test_configs_that_a_group_does_not_set_are_the_brokers() -> None:
    broker = BrokerSettings(node_id=1, group_consumer_session_timeout_ms=47_000)
    assert value_of("consumer.session.timeout.ms", {}, broker) == 47_000
    assert value_of("share.auto.offset.reset", {}, broker) == "latest"


def test_a_value_beyond_todays_limits_is_brought_within() -> None:
    stored = {"consumer.session.timeout.ms": "70000"}
    assert value_of("consumer.session.timeout.ms", stored, BROKER) == 60_000


def test_a_group_is_described_with_all_its_configs() -> None:
    described = describe_group({"consumer.session.timeout.ms": "50000"}, BrokerLayers(BROKER))
    assert [one.name for one in described] == sorted(GROUP_CONFIGS)
    own = next(one for one in described if one.name == "consumer.session.timeout.ms")
    assert own.value == "50000"
    assert [synonym.name for synonym in own.synonyms] == [
        "consumer.session.timeout.ms",
        "group.consumer.session.timeout.ms",
    ]
