"""A share group's configs in the shape that its partitions' leaders use."""

import pytest

from headrace.errors import InvalidConfig
from headrace.settings.broker import BrokerSettings
from headrace.settings.group import validate
from headrace.settings.share_group import share_group_settings

BROKER = BrokerSettings(node_id=1)
TOPIC = "errors.deadletterqueue.topic.name"


def test_without_configs_the_broker_decides() -> None:
    broker = BrokerSettings(node_id=1, group_share_delivery_count_limit=7)
    found = share_group_settings({}, broker)
    assert (found.delivery_count_limit, found.lock_duration_ms) == (7, 30_000)
    assert (found.auto_offset_reset, found.reset_duration_ms) == ("latest", None)
    assert (found.dead_letter_topic, found.is_read_committed) == ("", False)


def test_a_groups_own_configs_count_first() -> None:
    configs = {
        "share.partition.max.record.locks": "300",
        "share.isolation.level": "read_committed",
        "share.auto.offset.reset": "by_duration:PT90S",
        "share.renew.acknowledge.enable": "false",
        TOPIC: "dlq.orders",
        "errors.deadletterqueue.copy.record.enable": "true",
    }
    validate(configs, BROKER)
    found = share_group_settings(configs, BROKER)
    assert (found.record_locks_max, found.is_read_committed, found.can_renew) == (300, True, False)
    assert found.reset_duration_ms == 90_000
    assert (found.dead_letter_topic, found.copies_dead_letters) == ("dlq.orders", True)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [("orders", "must begin with dlq."), ("__consumer_offsets", "must not be an internal topic")],
)
def test_a_dead_letter_topic_has_the_prefix_and_is_not_internal(name: str, complaint: str) -> None:
    with pytest.raises(InvalidConfig, match=complaint):
        validate({TOPIC: name}, BROKER)


def test_a_duration_must_be_one() -> None:
    with pytest.raises(InvalidConfig, match="PT1H"):
        validate({"share.auto.offset.reset": "by_duration:P1H"}, BROKER)
