"""Dynamic configs: set, deleted, appended to, replaced; and refused where they must be."""

import pytest

from headrace.controller.config_rules import SettingsRules
from headrace.controller.configs import (
    ConfigResult,
    Operation,
    alter_configs,
    incremental_alter_configs,
)
from headrace.controller.decision import Decision
from headrace.errors import (
    BrokerIdNotRegistered,
    InvalidConfig,
    InvalidRequest,
    InvalidTopicException,
    KafkaError,
    UnknownTopicOrPartition,
)
from headrace.metadata.image import MetadataImage
from headrace.protocol.schemas import alter_configs as replacing
from headrace.protocol.schemas import incremental_alter_configs as incremental
from headrace.protocol.schemas.records.metadata import ClearElrRecord, ConfigRecord
from headrace.settings.broker import BrokerSettings
from headrace.settings.broker_layers import BrokerLayers
from tests.builders.metadata_images import (
    KAFKA_LEVELS,
    applied,
    image_with,
    replayed,
    with_partition,
)

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
RULES = SettingsRules(BrokerLayers(BrokerSettings()))
IMAGE = image_with(
    topics={"orders": 1}, configs={"orders": {"retention.ms": "1000", "segment.ms": "5000"}}
)


def change(
    name: str,
    value: str | None = None,
    operation: int = Operation.SET,
    *,
    kind: int = TOPIC,
    of: str = "orders",
    image: MetadataImage = IMAGE,
    validate_only: bool = False,
) -> Decision[list[ConfigResult]]:
    config = incremental.AlterableConfig(name, operation, value)
    resource = incremental.AlterConfigsResource(kind, of, [config])
    return incremental_alter_configs(image, [resource], RULES, validate_only=validate_only)


def replace(
    configs: dict[str, str | None], image: MetadataImage = IMAGE
) -> Decision[list[ConfigResult]]:
    listed = [replacing.AlterableConfig(name, value) for name, value in configs.items()]
    return alter_configs(image, [replacing.AlterConfigsResource(TOPIC, "orders", listed)], RULES)


def error_of(decision: Decision[list[ConfigResult]]) -> type[KafkaError] | None:
    (result,) = decision.reply
    assert result.error is None or not decision.records
    return type(result.error) if result.error else None


def orders_after(decision: Decision[list[ConfigResult]]) -> dict[str, str]:
    return dict(applied(IMAGE, decision).configs_of(TOPIC, "orders"))


def test_set_and_delete_leave_other_configs_unchanged() -> None:
    decision = change("retention.ms", "2000")
    assert orders_after(decision) == {"retention.ms": "2000", "segment.ms": "5000"}
    decision = change("retention.ms", operation=Operation.DELETE)
    assert orders_after(decision) == {"segment.ms": "5000"}


def test_unchanged_configs_write_no_record() -> None:
    assert list(change("retention.ms", "1000").records) == []
    assert list(change("flush.ms", operation=Operation.DELETE).records) == []


def test_lists_can_be_added_to_and_taken_from() -> None:
    assert orders_after(change("cleanup.policy", "compact", Operation.APPEND)) == {
        "cleanup.policy": "delete,compact",
        "retention.ms": "1000",
        "segment.ms": "5000",
    }
    both = replayed(IMAGE, [ConfigRecord(TOPIC, "orders", "cleanup.policy", "delete,compact")])
    decision = change("cleanup.policy", "delete", Operation.SUBTRACT, image=both)
    assert applied(both, decision).configs_of(TOPIC, "orders")["cleanup.policy"] == "compact"


def test_replacing_removes_configs_that_are_not_named() -> None:
    assert orders_after(replace({"retention.ms": "7"})) == {"retention.ms": "7"}
    assert orders_after(replace({})) == {}


def test_validate_only_writes_nothing() -> None:
    decision = change("retention.ms", "2000", validate_only=True)
    assert (list(decision.records), error_of(decision)) == ([], None)


@pytest.mark.parametrize(
    ("decision", "error"),
    [
        (change("retention.ms", "soon"), InvalidConfig),
        (change("retention", "1"), InvalidConfig),
        (change("retention.ms", "1" * 40_000), InvalidConfig),
        (change("retention.ms", None), InvalidRequest),
        (change("retention.ms", "1", Operation.APPEND), InvalidConfig),
        (change("retention.ms", "1", 9), InvalidRequest),
        (change("retention.ms", "1", of="unknown"), UnknownTopicOrPartition),
        (change("retention.ms", "1", of="no/name"), InvalidTopicException),
        (change("retention.ms", "1", of=""), InvalidRequest),
        (change("log.retention.ms", "1", kind=BROKER, of="7"), BrokerIdNotRegistered),
        (change("log.retention.ms", "1", kind=BROKER, of="one"), InvalidRequest),
        (change("node.id", "7", kind=BROKER, of=""), InvalidRequest),
        (change("log.retention.ms", "soon", kind=BROKER, of=""), InvalidRequest),
        (change("headrace", "DEBUG", kind=LOGGER, of="1"), InvalidRequest),
        (change("interval.ms", "1", kind=CLIENT_METRICS, of=""), InvalidRequest),
        (change("x", "1", kind=GROUP, of="readers"), InvalidConfig),
        (change("x", "1", kind=GROUP, of=""), InvalidRequest),
        (change("x", "1", kind=77, of="x"), InvalidRequest),
        (replace({"retention.ms": None}), InvalidRequest),
        (replace({"retention.ms": "soon"}), InvalidConfig),
    ],
)
def test_invalid_changes_are_rejected(
    decision: Decision[list[ConfigResult]], error: type[KafkaError]
) -> None:
    assert error_of(decision) is error


def test_a_resource_may_appear_once() -> None:
    config = incremental.AlterableConfig("retention.ms", Operation.SET, "1")
    resource = incremental.AlterConfigsResource(TOPIC, "orders", [config])
    assert error_of(incremental_alter_configs(IMAGE, [resource] * 2, RULES)) is InvalidRequest


def test_a_config_may_appear_once_in_a_resource() -> None:
    config = incremental.AlterableConfig("retention.ms", Operation.SET, "1")
    resource = incremental.AlterConfigsResource(TOPIC, "orders", [config] * 2)
    assert error_of(incremental_alter_configs(IMAGE, [resource], RULES)) is InvalidRequest


def test_good_resources_are_changed_beside_bad_ones() -> None:
    config = incremental.AlterableConfig("retention.ms", Operation.SET, "1")
    resources = [
        incremental.AlterConfigsResource(TOPIC, name, [config]) for name in ("unknown", "orders")
    ]
    decision = incremental_alter_configs(IMAGE, resources, RULES)
    assert [type(result.error) for result in decision.reply] == [
        UnknownTopicOrPartition,
        type(None),
    ]
    assert orders_after(decision)["retention.ms"] == "1"


def test_broker_configs_are_for_one_or_for_all() -> None:
    for name in ("", "1"):
        image = applied(IMAGE, change("log.retention.ms", "5", kind=BROKER, of=name))
        assert image.configs_of(BROKER, name) == {"log.retention.ms": "5"}


def test_a_broker_config_is_written_even_if_unchanged() -> None:
    """The record makes brokers read again what the value points to."""
    image = applied(IMAGE, change("log.retention.ms", "5", kind=BROKER, of=""))
    assert len(change("log.retention.ms", "5", kind=BROKER, of="", image=image).records) == 1


def test_configs_stored_by_another_version_do_not_block_changes() -> None:
    image = replayed(IMAGE, [ConfigRecord(BROKER, "", "from.the.future", "1")])
    assert error_of(change("log.retention.ms", "5", kind=BROKER, of="", image=image)) is None


def test_subscriptions_to_client_metrics_are_configs() -> None:
    image = applied(IMAGE, change("interval.ms", "1000", kind=CLIENT_METRICS, of="mine"))
    assert image.configs_of(CLIENT_METRICS, "mine") == {"interval.ms": "1000"}


def test_min_insync_replicas_is_pinned_while_eligible_leaders_depend_on_it() -> None:
    image = image_with(levels=KAFKA_LEVELS, topics={"orders": 1})
    name = "min.insync.replicas"
    assert error_of(change(name, "2", kind=BROKER, of="1", image=image)) is InvalidConfig
    deletion = change(name, operation=Operation.DELETE, kind=BROKER, of="", image=image)
    assert error_of(deletion) is InvalidConfig
    assert error_of(change(name, "2", kind=BROKER, of="", image=image)) is None
    assert error_of(change(name, "2", image=image)) is None


# Eligible leaders.

WITH_ELR = with_partition(
    image_with(topics={"orders": 1, "payments": 1}, levels=KAFKA_LEVELS),
    "orders",
    0,
    isr=[],
    leader=-1,
    elr=[1],
    last_known_elr=[1],
)
MIN_ISR = "min.insync.replicas"


def cleared(decision: Decision[list[ConfigResult]]) -> list[str]:
    messages = [record.message for record in decision.records]
    return [one.topic_name for one in messages if isinstance(one, ClearElrRecord)]


def test_another_min_isr_of_a_topic_clears_its_eligible_leaders() -> None:
    decision = change(MIN_ISR, "2", image=WITH_ELR)
    assert cleared(decision) == ["orders"]
    partition = applied(WITH_ELR, decision).topics["orders"].partitions[0]
    assert (partition.elr, partition.last_known_elr) == ((), ())
    changed = applied(WITH_ELR, decision)
    assert cleared(change(MIN_ISR, operation=Operation.DELETE, image=changed)) == ["orders"]
    assert cleared(replace({}, changed)) == ["orders"]


def test_another_min_isr_of_the_cluster_clears_all_eligible_leaders() -> None:
    decision = change(MIN_ISR, "2", kind=BROKER, of="", image=WITH_ELR)
    assert cleared(decision) == [""]
    assert applied(WITH_ELR, decision).topics["orders"].partitions[0].elr == ()


def test_eligible_leaders_stay_if_min_isr_does() -> None:
    changed = applied(WITH_ELR, change(MIN_ISR, "2", image=WITH_ELR))
    assert cleared(change(MIN_ISR, "2", image=changed)) == []
    of_all = applied(WITH_ELR, change(MIN_ISR, "2", kind=BROKER, of="", image=WITH_ELR))
    assert cleared(change(MIN_ISR, "2", kind=BROKER, of="", image=of_all)) == []
    assert cleared(change("retention.ms", "5", image=WITH_ELR)) == []
    assert cleared(change(MIN_ISR, "2")) == []
    assert list(change(MIN_ISR, "2", image=WITH_ELR, validate_only=True).records) == []


@pytest.mark.parametrize(
    ("of", "operation"), [("1", Operation.SET), ("1", Operation.DELETE), ("", Operation.DELETE)]
)
def test_with_eligible_leaders_the_cluster_has_one_min_isr(of: str, operation: int) -> None:
    value = "2" if operation == Operation.SET else None
    decision = change(MIN_ISR, value, operation, kind=BROKER, of=of, image=WITH_ELR)
    assert error_of(decision) is InvalidConfig
