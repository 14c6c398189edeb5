"""Consumer instances: subscriptions, assignments and their end."""

import asyncio
from typing import Any

import pytest
from confluent_kafka import Message, TopicPartition

from headrace.client.async_consumer import AsyncConsumer
from headrace.client.consumer import DeserializationFailed
from headrace.rest.consuming import ConsumerInstance, InstanceSettings, explained
from headrace.rest.errors import RestError
from headrace.rest.formats import Format
from headrace.schema_clients.registry_client import RegistryUnavailable


def instance(timeout_s: float = 5.0) -> ConsumerInstance:
    """Return an instance whose broker does not exist."""
    settings = InstanceSettings(format=Format.BINARY, min_bytes=1, timeout_ms=100)
    properties = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g"}
    consumer = AsyncConsumer(properties, call_timeout_s=timeout_s)
    return ConsumerInstance(consumer, settings, "")


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
        (None, None, "topic_pattern is required"),
        (["t"], "t.*", "mutually exclusive"),
        (None, "(", "not a regular expression"),
    ],
)
async def test_an_invalid_subscription_is_rejected(topics: Any, pattern: Any, words: str) -> None:
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


async def test_a_bug_of_the_proxy_is_not_reported_as_a_closed_instance() -> None:
    found = instance()

    async def broken() -> list[TopicPartition]:
        raise RuntimeError("a fault")

    found._consumer.assignment = broken
    with pytest.raises(RuntimeError, match="a fault"):
        await found.assignment()
    await found.close()


async def test_a_subscription_lists_its_topics() -> None:
    found = instance()
    assert await found.subscription() == []
    await found.subscribe(["b", "a"], None)
    assert await found.subscription() == ["a", "b"]
    await found.subscribe([], None)
    assert await found.subscription() == []
    await found.close()


async def test_only_assigned_partitions_have_a_position() -> None:
    found = instance()
    with pytest.raises(RestError, match="No current assignment for partition t-0"):
        await found.seek([TopicPartition("t", 0, 5)])
    await found.close()


async def test_reading_ends_after_its_timeout() -> None:
    found = instance()
    await found.subscribe(["t"], None)
    async with asyncio.timeout(30):
        assert await found.read(0.05, 1000) == []
    await found.close()


async def test_reading_from_an_instance_that_ends_fails_with_not_found() -> None:
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


def test_a_record_is_not_skipped_because_the_registry_is_down() -> None:
    record = Message(topic="t", partition=3, offset=7)
    error = DeserializationFailed("t-3 at offset 7: not JSON", record)
    assert 'POST {"offsets": [{"topic": "t", "partition": 3, "offset": 8}]} to' in explained(error)
    error.__cause__ = RegistryUnavailable("no answer")
    assert explained(error) == "t-3 at offset 7: not JSON"
