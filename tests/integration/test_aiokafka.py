"""aiokafka: asyncio, with a compiled record parser of its own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic

from tests.clients.librdkafka import AN_HOUR_AGO, SECONDS_MAX, unique_name
from tests.processes.nodes import Node


@asynccontextmanager
async def consumer(node: Node) -> AsyncIterator[AIOKafkaConsumer]:
    client = AIOKafkaConsumer(bootstrap_servers=node.address, group_id=None)
    await client.start()
    try:
        yield client
    finally:
        await client.stop()


@asynccontextmanager
async def producer(node: Node, **options: object) -> AsyncIterator[AIOKafkaProducer]:
    client = AIOKafkaProducer(bootstrap_servers=node.address, **options)
    await client.start()
    try:
        yield client
    finally:
        await client.stop()


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
async def test_records_round_trip(node: Node, topic: str, codec: str | None) -> None:
    """OPS-1, LOG-1, LOG-16"""
    headers = [("h", b"1"), ("empty", b"")]
    async with producer(node, compression_type=codec, linger_ms=20) as client:
        for number in range(100):
            stamp = AN_HOUR_AGO + number
            await client.send(topic, b"%d" % number, b"key", 0, stamp, headers=headers)
        await client.flush()
    async with consumer(node) as client:
        records = await everything(client, topic)
    assert [record.value for record in records] == [b"%d" % number for number in range(100)]
    assert {tuple(record.headers) for record in records} == {tuple(headers)}
    assert [record.timestamp for record in records] == [AN_HOUR_AGO + n for n in range(100)]


async def test_seeks_in_the_log(node: Node, topic: str) -> None:
    """LOG-13(b): seek, start, end, by time."""
    async with producer(node) as client:
        for number in range(10):
            await client.send(topic, b"%d" % number, None, 0, AN_HOUR_AGO + number)
    place = TopicPartition(topic, 0)
    async with consumer(node) as client:
        client.assign([place])
        assert await client.beginning_offsets([place]) == {place: 0}
        assert await client.end_offsets([place]) == {place: 10}
        found = await client.offsets_for_times({place: AN_HOUR_AGO + 4})
        assert found[place].offset == 4
        client.seek(place, 7)
        assert (await client.getone()).value == b"7"


async def test_administration(node: Node) -> None:
    """LOG-5, OPS-1: create, grow, describe, delete."""
    topic = unique_name()
    admin = AIOKafkaAdminClient(bootstrap_servers=node.address)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, 2, 1)])
        await admin.create_partitions({topic: NewPartitions(5)})
        async with asyncio.timeout(SECONDS_MAX):
            while await partition_count(admin, topic) != 5:
                await asyncio.sleep(0.02)
            await admin.delete_topics([topic])
            while topic in await admin.list_topics():
                await asyncio.sleep(0.02)
    finally:
        await admin.close()


async def partition_count(admin: AIOKafkaAdminClient, topic: str) -> int:
    (described,) = await admin.describe_topics([topic])
    return len(described["partitions"])


async def test_an_idempotent_producer(node: Node, topic: str) -> None:
    """PRD-15"""
    async with producer(node, enable_idempotence=True) as client:
        for number in range(1_000):
            await client.send(topic, b"%d" % number, partition=0)
        await client.flush()
    async with consumer(node) as client:
        records = await everything(client, topic)
    assert [record.value for record in records] == [b"%d" % number for number in range(1_000)]


async def everything(client: AIOKafkaConsumer, topic: str) -> list[Any]:
    place = TopicPartition(topic, 0)
    client.assign([place])
    await client.seek_to_beginning(place)
    end = (await client.end_offsets([place]))[place]
    records: list[Any] = []
    while len(records) < end:
        records += (await client.getmany(place, timeout_ms=1_000)).get(place, [])
    return records
