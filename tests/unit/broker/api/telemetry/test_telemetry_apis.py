"""GetTelemetrySubscriptions and PushTelemetry over one store."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import InvalidRecord, ThrottlingQuotaExceeded, UnknownSubscriptionId
from headrace.metadata.image import ResourceType
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from headrace.protocol.schemas.push_telemetry import PushTelemetryRequest
from headrace.protocol.uuids import ZERO
from tests.builders.otlp import gauge, metrics_data
from tests.unit.broker.api.builders import (
    FixedPeer,
    UnitBroker,
    a_broker,
    ask,
    image_with,
    with_configs,
)


@pytest.fixture
def broker(tmp_path: Path) -> UnitBroker:
    broker = a_broker(tmp_path)
    broker.controller.image = with_configs(
        image_with(),
        ResourceType.CLIENT_METRICS,
        "all",
        metrics="org.apache.kafka.",
        interval_ms="1000",
        match="client_id=unit",
    )
    return broker


async def subscribe(broker: UnitBroker, instance_id: bytes = ZERO, **fields: Any) -> Any:
    request = GetTelemetrySubscriptionsRequest(client_instance_id=instance_id)
    return await ask(broker, ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, request, **fields)


async def push(broker: UnitBroker, answer: Any, metrics: bytes, **fields: Any) -> int:
    request = PushTelemetryRequest(
        client_instance_id=answer.client_instance_id,
        subscription_id=fields.pop("subscription_id", answer.subscription_id),
        metrics=metrics,
        **fields,
    )
    response = await ask(broker, ApiKey.PUSH_TELEMETRY, request)
    code = response.error_code
    assert isinstance(code, int)
    return code


async def test_a_matching_client_gets_a_subscription(broker: UnitBroker) -> None:
    answer = await subscribe(broker)
    assert answer.error_code == 0
    assert answer.client_instance_id != ZERO
    assert answer.requested_metrics == ["org.apache.kafka."]
    assert answer.accepted_compression_types == [4, 3, 1, 2]
    assert (answer.push_interval_ms, answer.telemetry_max_bytes) == (1000, 1 << 20)
    assert not answer.delta_temporality


async def test_a_client_that_does_not_match_gets_no_metrics_to_push(broker: UnitBroker) -> None:
    answer = await subscribe(broker, client_id="other")
    assert (answer.requested_metrics, answer.push_interval_ms) == ([], 300_000)


async def test_asking_too_soon_is_throttled(broker: UnitBroker) -> None:
    answer = await subscribe(broker)
    again = await subscribe(broker, answer.client_instance_id)
    assert again.error_code == ThrottlingQuotaExceeded.code


async def test_metrics_are_kept_readable(broker: UnitBroker) -> None:
    peer = FixedPeer()
    peer.software = ("unit-test", "1.0")
    answer = await subscribe(broker, peer=peer)
    metrics = gzip.compress(metrics_data(gauge("queue.size", 7.0)))
    assert await push(broker, answer, metrics, compression_type=1) == 0
    (kept,) = broker.telemetry.pushed(broker.clock.now_ms())
    assert [(one.name, one.value) for one in kept.series] == [("queue.size", 7.0)]
    assert kept.client.client_id == "unit"


async def test_metrics_that_are_no_metrics_are_refused(broker: UnitBroker) -> None:
    answer = await subscribe(broker)
    assert await push(broker, answer, b"\xff\xff") == InvalidRecord.code


async def test_metrics_that_cannot_be_decompressed_are_refused(broker: UnitBroker) -> None:
    answer = await subscribe(broker)
    assert await push(broker, answer, b"no gzip", compression_type=1) == InvalidRecord.code
    assert broker.telemetry.pushed(broker.clock.now_ms()) == []


async def test_an_empty_push_is_fine_and_kept_nowhere(broker: UnitBroker) -> None:
    answer = await subscribe(broker)
    assert await push(broker, answer, b"", terminating=True) == 0
    assert broker.telemetry.pushed(broker.clock.now_ms()) == []


async def test_a_push_for_an_old_subscription_is_refused(broker: UnitBroker) -> None:
    answer = await subscribe(broker)
    code = await push(broker, answer, b"m", subscription_id=answer.subscription_id ^ 1)
    assert code == UnknownSubscriptionId.code
