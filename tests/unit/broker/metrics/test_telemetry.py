"""Client metrics: who is asked for what, when they may push, and what is kept."""

from typing import Any

import pytest

from headrace.broker.metrics.telemetry import (
    ClientAttributes,
    Configs,
    PushedMetrics,
    Telemetry,
    attributes_of,
    instance_id_for,
)
from headrace.errors import (
    InvalidRequest,
    KafkaError,
    TelemetryTooLarge,
    ThrottlingQuotaExceeded,
    UnknownSubscriptionId,
    UnsupportedCompressionType,
)
from headrace.metadata.image import ConfigResource, ResourceType
from headrace.protocol.otlp import Series, SeriesKind
from headrace.protocol.uuids import ZERO, random_uuid

NOW = 1_700_000_000_000
ID = random_uuid()
JAVA = attributes_of(ID, "app-1", ("apache-kafka-java", "4.3.1"), "10.0.0.7", 40_000)


def subscriptions(**named: dict[str, str]) -> Configs:
    return {
        ConfigResource(ResourceType.CLIENT_METRICS, name): configs
        for name, configs in named.items()
    }


def telemetry_with(**named: dict[str, str]) -> Telemetry:
    telemetry = Telemetry(size_bytes_max=1000)
    telemetry.use(subscriptions(**named))
    return telemetry


def push(telemetry: Telemetry, now_ms: int, subscription_id: int, **fields: Any) -> None:
    defaults = {"is_terminating": False, "codec": 0, "size_bytes": 10}
    telemetry.accept(ID, JAVA, now_ms, subscription_id=subscription_id, **{**defaults, **fields})


def test_without_subscriptions_no_metrics_are_requested() -> None:
    instance = telemetry_with().subscribe(ID, JAVA, NOW)
    assert (instance.metrics, instance.interval_ms) == ((), 300_000)


def test_matching_subscriptions_are_joined() -> None:
    telemetry = telemetry_with(
        one={"metrics": "a.,b.", "interval.ms": "5000"},
        two={"metrics": "b.,c.", "interval.ms": "1000", "match": "client_id=app-.*"},
        three={"metrics": "d.", "interval.ms": "100", "match": "client_id=other"},
    )
    instance = telemetry.subscribe(ID, JAVA, NOW)
    assert (instance.metrics, instance.interval_ms) == (("a.", "b.", "c."), 1000)


def test_a_star_subscribes_to_all_metrics() -> None:
    telemetry = telemetry_with(one={"metrics": "a."}, two={"metrics": "*"})
    assert telemetry.subscribe(ID, JAVA, NOW).metrics == ("*",)


@pytest.mark.parametrize(
    ("match", "matches"),
    [
        ("client_software_name=apache-kafka-java,client_software_version=4.*", True),
        ("client_software_name=apache-kafka-java,client_software_version=3.*", False),
        ("client_source_address=10.0.0.7,client_source_port=40000", True),
        ("client_id=app", False),
        ("client_instance_id=.*", True),
    ],
)
def test_every_pattern_must_match_the_whole(match: str, matches: bool) -> None:
    telemetry = telemetry_with(one={"metrics": "a.", "match": match})
    assert bool(telemetry.subscribe(ID, JAVA, NOW).metrics) is matches


def test_asking_again_before_the_interval_is_throttled() -> None:
    telemetry = telemetry_with(one={"metrics": "a.", "interval.ms": "1000"})
    telemetry.subscribe(ID, JAVA, NOW)
    with pytest.raises(ThrottlingQuotaExceeded):
        telemetry.subscribe(ID, JAVA, NOW + 999)
    telemetry.subscribe(ID, JAVA, NOW + 1000)


def test_changed_subscriptions_are_sent_at_once_under_a_new_id() -> None:
    telemetry = telemetry_with(one={"metrics": "a."})
    before = telemetry.subscribe(ID, JAVA, NOW)
    telemetry.use(subscriptions(one={"metrics": "a.,b."}))
    after = telemetry.subscribe(ID, JAVA, NOW + 1)
    assert after.metrics == ("a.", "b.")
    assert after.subscription_id != before.subscription_id


def test_other_configs_change_no_subscription() -> None:
    telemetry = telemetry_with(one={"metrics": "a."})
    telemetry.subscribe(ID, JAVA, NOW)
    topic = {ConfigResource(ResourceType.TOPIC, "t"): {"retention.ms": "5"}}
    telemetry.use({**subscriptions(one={"metrics": "a."}), **topic})
    with pytest.raises(ThrottlingQuotaExceeded):
        telemetry.subscribe(ID, JAVA, NOW + 1)


def test_a_push_may_follow_its_subscription_at_once_and_then_once_per_interval() -> None:
    telemetry = telemetry_with(one={"metrics": "a.", "interval.ms": "1000"})
    response = telemetry.subscribe(ID, JAVA, NOW).subscription_id
    push(telemetry, NOW + 1, response)
    with pytest.raises(ThrottlingQuotaExceeded):
        push(telemetry, NOW + 500, response)
    push(telemetry, NOW + 1001, response)


def test_a_client_that_stops_may_push_early_and_never_again() -> None:
    telemetry = telemetry_with(one={"metrics": "a.", "interval.ms": "1000"})
    response = telemetry.subscribe(ID, JAVA, NOW).subscription_id
    push(telemetry, NOW + 1, response)
    push(telemetry, NOW + 2, response, is_terminating=True)
    with pytest.raises(InvalidRequest):
        push(telemetry, NOW + 5000, response)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"subscription_id": 42}, UnknownSubscriptionId),
        ({"codec": 9}, UnsupportedCompressionType),
        ({"codec": -1}, UnsupportedCompressionType),
        ({"size_bytes": 1001}, TelemetryTooLarge),
    ],
)
def test_invalid_pushes_are_rejected(fields: dict[str, int], error: type[KafkaError]) -> None:
    telemetry = telemetry_with(one={"metrics": "a."})
    response = telemetry.subscribe(ID, JAVA, NOW).subscription_id
    with pytest.raises(error):
        push(telemetry, NOW + 1, **{"subscription_id": response, **fields})


def test_an_instance_without_id_cannot_push() -> None:
    with pytest.raises(InvalidRequest):
        telemetry_with().accept(
            ZERO, JAVA, NOW, subscription_id=0, is_terminating=False, codec=0, size_bytes=0
        )


def test_a_refused_push_lets_the_client_ask_again_at_once() -> None:
    telemetry = telemetry_with(one={"metrics": "a."})
    telemetry.subscribe(ID, JAVA, NOW)
    with pytest.raises(UnknownSubscriptionId):
        push(telemetry, NOW + 1, 42)
    telemetry.subscribe(ID, JAVA, NOW + 2)


def test_the_newest_push_of_a_client_is_kept() -> None:
    telemetry = telemetry_with()
    telemetry.store(ID, PushedMetrics(JAVA, NOW, series(1)))
    telemetry.store(ID, PushedMetrics(JAVA, NOW + 1, series(2)))
    assert [one.received_ms for one in telemetry.pushed(NOW + 2)] == [NOW + 1]


def test_stored_series_are_bounded() -> None:
    telemetry = telemetry_with()
    for number in range(30):
        telemetry.store(random_uuid(), PushedMetrics(JAVA, NOW + number, series(250)))
    kept = telemetry.pushed(NOW + 30)
    assert sum(len(one.series) for one in kept) == 5000
    assert kept[-1].received_ms == NOW + 29
    assert (telemetry.pushes, telemetry.pushes_dropped) == (30, 10)


def test_a_client_that_missed_three_pushes_is_shown_no_more() -> None:
    telemetry = telemetry_with(one={"metrics": "*", "interval.ms": "60000"})
    telemetry.subscribe(ID, JAVA, NOW)
    telemetry.store(ID, PushedMetrics(JAVA, NOW, series(1)))
    assert len(telemetry.pushed(NOW + 180_000)) == 1
    assert telemetry.pushed(NOW + 180_001) == []


def series(count: int) -> list[Series]:
    return [Series(f"m{number}", SeriesKind.GAUGE, (), 1.0) for number in range(count)]


def test_silent_clients_are_forgotten() -> None:
    telemetry = telemetry_with(one={"metrics": "a.", "interval.ms": "1000"})
    telemetry.subscribe(ID, JAVA, NOW)
    later = NOW + 60_001
    for _ in range(3):
        telemetry.subscribe(random_uuid(), JAVA, later)
    assert telemetry.subscribe(ID, JAVA, later).last_get_ms == later
    assert len(telemetry._instances) == 4


def test_a_client_without_id_gets_one() -> None:
    assert instance_id_for(ZERO) != ZERO
    assert instance_id_for(ID) == ID


def test_attributes_are_text() -> None:
    expected = ClientAttributes(
        client_id="app-1",
        client_instance_id=JAVA.client_instance_id,
        client_software_name="apache-kafka-java",
        client_software_version="4.3.1",
        client_source_address="10.0.0.7",
        client_source_port="40000",
    )
    assert expected == JAVA
    assert len(JAVA.client_instance_id) == 22
