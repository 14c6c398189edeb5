"""What instances do beside reading."""

import asyncio
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from headrace.client.consumer import Consumer
from headrace.rest.consuming import ConsumerInstance, InstanceSettings
from headrace.rest.errors import RestError
from headrace.rest.formats import Format


def instance(timeout_s: float = 5.0) -> ConsumerInstance:
    """Where its broker is to be, nobody listens."""
    settings = InstanceSettings(format=Format.BINARY, min_bytes=1, timeout_ms=100)
    consumer = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g"})
    return ConsumerInstance(consumer, settings, "", timeout_s)


async def test_a_subscription_and_an_assignment_exclude_each_other() -> None:
    found = instance()
    await found.subscribe(["t"], None)
    with pytest.raises(RestError, match="mutually exclusive") as refusal:
        await found.assign([TopicPartition("t", 0)])
    assert (refusal.value.status, refusal.value.code) == (409, 40903)
    await found.unsubscribe()
    await found.assign([TopicPartition("t", 0)])
    with pytest.raises(RestError, match="mutually exclusive"):
        await found.subscribe(["t"], None)
    await found.close()


@pytest.mark.parametrize(
    ("topics", "pattern", "words"),
    [
        (None, None, "name topics"),
        (["t"], "t.*", "mutually exclusive"),
        (None, "(", "no regular expression"),
    ],
)
async def test_a_subscription_that_is_none_is_refused(
    topics: Any, pattern: Any, words: str
) -> None:
    found = instance()
    with pytest.raises(RestError, match=words):
        await found.subscribe(topics, pattern)
    await found.close()


async def test_a_closed_instance_is_not_found() -> None:
    found = instance()
    await found.close()
    with pytest.raises(RestError) as refusal:
        await found.subscription()
    assert (refusal.value.status, refusal.value.code) == (404, 40403)


async def test_a_fault_of_the_proxy_itself_is_not_taken_for_a_closed_instance() -> None:
    found = instance()

    def broken() -> list[TopicPartition]:
        raise RuntimeError("a fault")

    found._consumer.assignment = broken  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="a fault"):
        await found.assignment()
    await found.close()


async def test_what_is_subscribed_to_is_told() -> None:
    found = instance()
    assert await found.subscription() == []
    await found.subscribe(["b", "a"], None)
    assert await found.subscription() == ["a", "b"]
    await found.subscribe([], None)
    assert await found.subscription() == []
    await found.close()


async def test_only_what_is_assigned_has_a_position() -> None:
    found = instance()
    with pytest.raises(RestError, match="No current assignment for partition t-0"):
        await found.seek([TopicPartition("t", 0, 5)])
    await found.close()


async def test_reading_ends_when_its_time_is_up() -> None:
    found = instance()
    await found.subscribe(["t"], None)
    async with asyncio.timeout(30):
        assert await found.read(0.05, 1000) == []
    await found.close()


async def test_who_reads_from_an_instance_that_ends_is_told_that_it_is_gone() -> None:
    found = instance()
    await found.subscribe(["t"], None)
    reading = asyncio.create_task(found.read(20.0, 1000))
    await asyncio.sleep(0)
    await found.close()
    with pytest.raises(RestError) as refusal:
        await reading
    assert refusal.value.code == 40403
    with pytest.raises(RestError) as refusal:
        await found.assignment()
    assert refusal.value.code == 40403


async def test_an_instance_is_in_use_while_it_is_read_from() -> None:
    found = instance()
    await found.subscribe(["t"], None)
    found.used_at = 0.0
    await found.read(0.05, 1000)
    assert found.used_at > 0.0
    await found.close()
