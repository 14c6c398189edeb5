"""The asyncio twins of the client on a running broker."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

import headrace
from headrace import TopicPartition
from headrace.client.descriptions import NewTopic
from tests.clients.librdkafka import create_topic, numbered, produce, read_values, unique_name
from tests.processes.nodes import HOST, Flavour, Node, free_port

SECONDS_MAX = 30


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, flavour: Flavour) -> Iterator[Node]:
    """A node whose groups do not wait for more members before they start."""
    settings = {"group.initial.rebalance.delay.ms": "0"}
    own = Node(flavour, tmp_path_factory.mktemp("async"), settings)
    own.start()
    yield own
    if own.is_running:
        own.stop()


def reading(node: Node, **more: object) -> dict[str, Any]:
    given = {name.replace("_", "."): value for name, value in more.items()}
    return {
        "bootstrap.servers": node.address,
        "group.id": unique_name("group"),
        "auto.offset.reset": "earliest",
        "log_level": 0,
        **given,
    }


def texts(*numbers: int) -> list[bytes]:
    return [b"%d" % number for number in numbers]


async def take(consumer: headrace.AsyncConsumer, count: int) -> list[bytes | None]:
    values: list[bytes | None] = []
    async with asyncio.timeout(SECONDS_MAX):
        while len(values) < count:
            values += [message.value() for message in await consumer.poll(0.2)]
    return values


async def test_every_record_has_a_future(node: Node) -> None:
    """PRD-11, PRD-12, PUL-9"""
    topic = create_topic(node)
    reported: list[headrace.Delivery] = []
    async with headrace.AsyncProducer(node.address) as producer:
        sent = [
            await producer.send(topic, value, on_delivery=reported.append)
            for value in texts(*range(100))
        ]
        offsets = [(await delivery).offset for delivery in sent]
    assert offsets == list(range(100))
    assert [delivery.metadata.offset for delivery in reported] == offsets


async def test_a_failure_brings_the_record_back(node: Node) -> None:
    """PRD-12"""
    topic = create_topic(node, max_message_bytes=1000)
    async with headrace.AsyncProducer(node.address) as producer:
        delivery = await producer.send(topic, bytes(5000), "key")
        with pytest.raises(headrace.DeliveryFailed) as failed:
            await delivery
    assert failed.value.record.key == "key"


async def test_an_unawaited_failure_is_raised_at_the_end(node: Node) -> None:
    """PRD-12"""
    topic = create_topic(node, max_message_bytes=1000)
    producer = headrace.AsyncProducer(node.address)
    await producer.send(topic, bytes(5000))
    with pytest.raises(headrace.DeliveryFailed):
        await producer.close()


async def test_a_full_buffer_holds_the_sender_back(node: Node) -> None:
    """PRD-9: and loses nothing."""
    topic = create_topic(node)
    async with headrace.AsyncProducer(
        {"bootstrap.servers": node.address, "buffer.memory": 20_000, "linger.ms": 1}
    ) as producer:
        for number in range(1_000):
            await producer.send(topic, b"%04d" % number * 30)
    values = [(value or b"")[:4] for value in read_values(node, topic)]
    assert values == [b"%04d" % number for number in range(1_000)]


async def test_a_buffer_that_stays_full_ends_in_a_timeout() -> None:
    """PRD-9"""
    nobody = {"bootstrap.servers": f"{HOST}:{free_port()}", "log_level": 0}
    producer = headrace.AsyncProducer({**nobody, "buffer.memory": 2048, "max.block.ms": 200})
    await producer.send("anything", bytes(1500))
    with pytest.raises(TimeoutError):
        await producer.send("anything", bytes(1500))
    with pytest.raises(TimeoutError):
        await producer.close(timeout_s=0.1)


async def test_partitioners_work_alike(node: Node) -> None:
    """PRD-5"""
    topic = create_topic(node, partitions=3)
    async with headrace.AsyncProducer(node.address, partitioner="roundrobin") as producer:
        sent = [await (await producer.send(topic, b"v")) for _ in range(6)]
        with pytest.raises(headrace.InvalidPartition):
            await producer.send(topic, b"v", partition=3)
    assert [metadata.partition for metadata in sent] == [0, 1, 2, 0, 1, 2]


async def test_async_for_reads_without_blocking_the_loop(node: Node) -> None:
    """CON-1, CON-13: one by one, as fast as they are asked for."""
    topic = create_topic(node)
    produce(node, topic, numbered(50))
    seen: list[bytes | None] = []
    async with headrace.AsyncConsumer(reading(node, queued_max_messages_kbytes=64)) as consumer:
        await consumer.subscribe(topic)
        async for message in consumer:
            seen.append(message.value())
            await asyncio.sleep(0)
            if len(seen) == 50:
                break
    assert seen == texts(*range(50))


async def test_a_poll_is_bounded_and_does_not_block_the_loop() -> None:
    """CON-8(b): other tasks run while it waits for a broker that is not there."""
    nobody = {"bootstrap.servers": f"{HOST}:{free_port()}", "group.id": "g", "log_level": 0}
    async with headrace.AsyncConsumer(nobody) as consumer:
        await consumer.subscribe("anything")
        polling = asyncio.ensure_future(consumer.poll(0.3))
        turns = 0
        while not polling.done():
            turns += 1
            await asyncio.sleep(0.01)
        assert (await polling, turns > 1) == ([], True)


async def test_a_cancelled_poll_loses_nothing(node: Node) -> None:
    """CON-12: the next poll returns its records, which are not committed before."""
    topic = create_topic(node)
    async with headrace.AsyncConsumer(reading(node)) as consumer:
        await consumer.assign([TopicPartition(topic, 0, 0)])
        polling = asyncio.ensure_future(consumer.poll(30))
        await asyncio.sleep(0.05)
        produce(node, topic, numbered(3))
        polling.cancel()
        await asyncio.gather(polling, return_exceptions=True)
        assert await take(consumer, 3) == texts(0, 1, 2)


async def test_commit_and_seek(node: Node) -> None:
    """CON-6, CON-12"""
    topic = create_topic(node)
    produce(node, topic, numbered(5))
    partition = TopicPartition(topic, 0)
    async with headrace.AsyncConsumer(reading(node, enable_auto_commit=False)) as consumer:
        await consumer.subscribe(topic)
        assert await take(consumer, 5) == texts(*range(5))
        await consumer.commit()
        assert (await consumer.committed([partition]))[0].offset == 5
        assert await consumer.position(partition) == 5
        await consumer.seek(partition, 3)
        assert await take(consumer, 2) == texts(3, 4)


async def test_consume_process_produce_in_one_transaction(node: Node) -> None:
    """PRD-16, DEL-4, PUL-19"""
    source, target = create_topic(node), create_topic(node)
    produce(node, source, numbered(5))
    writing = {"bootstrap.servers": node.address, "transactional.id": source}
    async with (
        headrace.AsyncProducer(writing) as producer,
        headrace.AsyncConsumer(reading(node, enable_auto_commit=False)) as consumer,
    ):
        await consumer.subscribe(source)
        first = await take_and_fail(consumer, producer, target)
        again: list[bytes | None] = []
        while len(again) < len(first):
            batch = await consumer.poll(1)
            async with producer.transaction(consumer):
                for message in batch:
                    await producer.send(target, message.value())
            again += [message.value() for message in batch]
        assert (await consumer.committed(await consumer.assignment()))[0].offset == len(again)
    assert again[: len(first)] == first
    assert read_values(node, target, isolation_level="read_committed") == again


async def take_and_fail(
    consumer: headrace.AsyncConsumer, producer: headrace.AsyncProducer, target: str
) -> list[bytes | None]:
    """A transaction that fails after its records are sent."""
    batch: list[headrace.Message] = []
    while not batch:
        batch = await consumer.poll(1)
    with suppress(ZeroDivisionError):
        async with producer.transaction(consumer):
            await producer.send(target, b"never")
            raise ZeroDivisionError
    return [message.value() for message in batch]


async def test_the_administration_is_the_same_with_await(node: Node) -> None:
    """LOG-5"""
    name = unique_name("topic")
    async with headrace.AsyncAdmin(node.address) as admin:
        (created,) = await admin.topics.create([NewTopic(name=name, partitions=2)])
        assert (created.name, created.error) == (name, None)
        assert await admin.partitions.of(name) == [0, 1]
