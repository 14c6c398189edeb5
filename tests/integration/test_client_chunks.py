"""Large records in chunks on a running broker."""

import asyncio
import hashlib
import random
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest

import headrace
from headrace.client.chunks import COUNT, ID, INDEX, SIZE, split
from tests.clients.librdkafka import (
    AN_HOUR_AGO,
    SECONDS_MAX,
    create_topic,
    read,
    unique_name,
    watermarks,
)
from tests.processes.nodes import Node, eventually

CHUNK = 100_000


def sending(node: Node, **more: object) -> dict[str, Any]:
    """Settings are given with underscores for dots."""
    given = {name.replace("_", "."): value for name, value in more.items()}
    return {"bootstrap.servers": node.address, "log_level": 0, "chunk.bytes": CHUNK, **given}


def reading(node: Node, **more: object) -> dict[str, Any]:
    given = {name.replace("_", "."): value for name, value in more.items()}
    return {
        "bootstrap.servers": node.address,
        "group.id": unique_name("group"),
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "log_level": 0,
        **given,
    }


def payload(size: int, seed: int) -> bytes:
    return random.Random(seed).randbytes(size)


def taken(consumer: headrace.Consumer, count: int) -> list[headrace.Message]:
    """The next records, by polls that wait as long as they must."""
    records: list[headrace.Message] = []
    while len(records) < count:
        found = consumer.poll(SECONDS_MAX)
        assert found, "no record in time"
        records += found
    return records


def values(records: Sequence[headrace.Message]) -> list[bytes | None]:
    return [record.value() for record in records]


def send_interleaved(node: Node, topic: str, steps: Sequence[tuple[str, int] | bytes]) -> None:
    """Send single chunks of records, by session and index, and ordinary records."""
    with headrace.Producer({"bootstrap.servers": node.address, "log_level": 0}) as producer:
        for step in steps:
            if isinstance(step, bytes):
                producer.send(topic, step)
            else:
                session, index = step
                pieces = list(split(session.encode() * 8, 4, (session, 0), None))
                producer.send(topic, pieces[index][0], headers=pieces[index][1])


@pytest.mark.parametrize("partitioner", [None, "roundrobin"])
def test_records_above_the_limit_of_a_broker_pass_in_chunks(
    node: Node, partitioner: str | None
) -> None:
    """PUL-8: records of several megabytes, among small ones, with key, headers and place."""
    topic = create_topic(node, partitions=3)
    sizes = [10, CHUNK, CHUNK + 1, 5_000_000]
    with headrace.Producer(sending(node), partitioner=partitioner) as producer:
        sent = [
            producer.send(topic, payload(size, size), f"key-{size}", headers={"size": str(size)})
            for size in sizes
        ]
        places = {(one.result(SECONDS_MAX).partition, one.metadata.offset) for one in sent}
    with headrace.Consumer(reading(node)) as consumer:
        consumer.assign(topic)
        found = taken(consumer, len(sizes))
    assert {one.key(): one.value() for one in found} == {
        f"key-{size}".encode(): payload(size, size) for size in sizes
    }
    assert {(one.partition(), one.offset()) for one in found} == places
    assert all(one.headers() == [("size", (one.key() or b"")[4:])] for one in found)


def test_other_clients_read_chunks_as_ordinary_records(node: Node) -> None:
    """PUL-8"""
    topic = create_topic(node)
    value = payload(250_000, 1)
    with headrace.Producer(sending(node)) as producer:
        producer.send(topic, value, "k", headers={"colour": "red"}, timestamp_ms=AN_HOUR_AGO)
    found = read(node, topic)
    headers = [dict(record.headers() or ()) for record in found]
    assert b"".join(record.value() or b"" for record in found) == value
    assert {record.key() for record in found} == {b"k"}
    assert {record.timestamp()[1] for record in found} == {AN_HOUR_AGO}
    assert len({one[ID] for one in headers}) == 1
    assert [(one["colour"], one[INDEX], one[COUNT], one[SIZE]) for one in headers] == [
        (b"red", b"%d" % index, b"3", b"250000") for index in range(3)
    ]


def test_several_producers_send_chunks_into_one_partition(node: Node) -> None:
    """PUL-8"""
    topic = create_topic(node)
    wanted = {payload(350_000, seed) for seed in range(6)}
    producers = [headrace.Producer(sending(node)) for _ in range(3)]
    for number, value in enumerate(wanted):
        producers[number % 3].send(topic, value)
    for producer in producers:
        producer.close()
    with headrace.Consumer(reading(node)) as consumer:
        consumer.assign(topic)
        assert set(values(taken(consumer, 6))) == wanted


def test_half_a_record_of_a_dead_producer_is_never_returned(node: Node) -> None:
    """PUL-8"""
    topic = create_topic(node)
    steps: list[tuple[str, int] | bytes] = [
        ("aa", 0),
        ("aa", 1),
        b"after",
        ("bb", 0),
        ("bb", 1),
        ("bb", 2),
        ("bb", 3),
    ]
    send_interleaved(node, topic, steps)
    with headrace.Consumer(reading(node)) as consumer:
        consumer.assign(topic)
        assert values(taken(consumer, 2)) == [b"after", b"bb" * 8]
        assert consumer.poll(0.1) == []


def test_an_aborted_transaction_leaves_no_chunks_to_readers(node: Node) -> None:
    """PUL-8"""
    topic = create_topic(node)
    with headrace.Producer(sending(node, transactional_id=unique_name("id"))) as producer:
        with suppress(ZeroDivisionError), producer.transaction():
            producer.send(topic, payload(300_000, 1))
            producer.flush()
            _ = 1 // 0
        with producer.transaction():
            producer.send(topic, payload(300_000, 2))
    with headrace.Consumer(reading(node)) as consumer:
        consumer.assign(topic)
        assert values(taken(consumer, 1)) == [payload(300_000, 2)]


def test_a_restart_between_chunks_loses_and_repeats_nothing(node: Node) -> None:
    """PUL-8: the commit stays at the first chunk, and its metadata skips processed records."""
    topic = create_topic(node)
    settings = reading(node)
    send_interleaved(node, topic, [("aa", 0), b"between", ("aa", 1), ("bb", 0), b"again"])
    with headrace.Consumer(settings) as consumer:
        consumer.subscribe(topic)
        assert values(taken(consumer, 2)) == [b"between", b"again"]
        consumer.commit()
        (committed,) = consumer.committed([headrace.TopicPartition(topic, 0)])
        assert committed.offset == 0
    send_interleaved(node, topic, [("aa", 2), ("bb", 1), ("bb", 2), ("aa", 3), ("bb", 3)])
    with headrace.Consumer(settings) as consumer:
        consumer.subscribe(topic)
        assert values(taken(consumer, 2)) == [b"aa" * 8, b"bb" * 8]
        consumer.commit()
        (committed,) = consumer.committed([headrace.TopicPartition(topic, 0)])
        assert committed.offset == watermarks(node, topic, 0)[1]


def test_the_timer_of_automatic_commits_stays_before_incomplete_records(node: Node) -> None:
    """PUL-8"""
    topic = create_topic(node)
    settings = reading(node, enable_auto_commit=True)
    send_interleaved(node, topic, [b"first", ("aa", 0), b"between"])
    for_all = 2
    with headrace.Consumer(settings) as consumer:
        consumer.subscribe(topic)
        taken(consumer, for_all)
    send_interleaved(node, topic, [("aa", 1), ("aa", 2), ("aa", 3)])
    with headrace.Consumer(settings) as consumer:
        consumer.subscribe(topic)
        assert values(taken(consumer, 1)) == [b"aa" * 8]


def test_a_rewind_reads_a_record_again_from_its_first_chunk(node: Node) -> None:
    """PUL-8"""
    topic = create_topic(node)
    with headrace.Producer(sending(node)) as producer:
        producer.send(topic, payload(300_000, 1))
    with headrace.Consumer(reading(node)) as consumer:
        consumer.subscribe(topic)
        for _ in range(2):
            assert values(taken(consumer, 1)) == [payload(300_000, 1)]
            consumer.rewind()


def test_a_record_above_the_memory_of_a_consumer_is_an_error_and_then_skipped(node: Node) -> None:
    """PUL-8"""
    topic = create_topic(node)
    with headrace.Producer(sending(node)) as producer:
        producer.send(topic, payload(300_000, 1))
        producer.send(topic, b"after")
    with headrace.Consumer(reading(node, chunk_memory=200_000)) as consumer:
        consumer.assign(topic)
        with pytest.raises(headrace.ChunkedRecordTooLarge, match="300000 bytes"):
            consumer.poll(SECONDS_MAX)
        assert values(taken(consumer, 1)) == [b"after"]


def test_a_consumer_without_memory_for_chunks_returns_them_as_they_are(node: Node) -> None:
    """PUL-8"""
    topic = create_topic(node)
    with headrace.Producer(sending(node)) as producer:
        producer.send(topic, payload(300_000, 1))
    with headrace.Consumer(reading(node, chunk_memory=0)) as consumer:
        consumer.assign(topic)
        assert [len(value or b"") for value in values(taken(consumer, 3))] == [CHUNK] * 3


def test_a_record_larger_than_the_buffer_waits_for_room(node: Node) -> None:
    """PUL-8: a megabyte of buffer carries ten megabytes."""
    topic = create_topic(node)
    with headrace.Producer(sending(node, buffer_memory=1 << 20)) as producer:
        producer.send(topic, payload(10_000_000, 1))
    with headrace.Consumer(reading(node)) as consumer:
        consumer.assign(topic)
        assert values(taken(consumer, 1)) == [payload(10_000_000, 1)]


def test_a_chunk_that_the_topic_refuses_fails_the_record(node: Node) -> None:
    """PUL-8"""
    topic = create_topic(node, max_message_bytes=50_000)
    with headrace.Producer(sending(node)) as producer:
        failed = producer.send(topic, payload(300_000, 1))
        assert isinstance(failed.exception(SECONDS_MAX), headrace.DeliveryFailed)
        assert failed.record.value == payload(300_000, 1)


async def test_asyncio_clients_send_and_join_chunks(node: Node) -> None:
    """PUL-8: with tasks that send at the same time."""
    topic = create_topic(node, partitions=2)
    wanted = {payload(700_000, seed) for seed in range(5)}
    async with headrace.AsyncProducer(sending(node, buffer_memory=1 << 20)) as producer:
        sent = await asyncio.gather(*(producer.send(topic, value) for value in wanted))
        assert all([(await delivery).offset >= 6 for delivery in sent])
    found: set[bytes | None] = set()
    async with headrace.AsyncConsumer(reading(node)) as consumer, asyncio.timeout(SECONDS_MAX):
        await consumer.assign(topic)
        while len(found) < len(wanted):
            found |= set(values(await consumer.poll(1)))
    assert found == wanted


PRODUCER = """
import sys, random, hashlib, headrace
settings = {"bootstrap.servers": sys.argv[1], "chunk.bytes": 50_000, "linger.ms": 0}
dice = random.Random(int(sys.argv[3]))
with headrace.Producer(settings) as producer:
    while True:
        value = dice.randbytes(dice.randint(60_000, 900_000))
        producer.send(sys.argv[2], value, hashlib.sha256(value).hexdigest()).result()
"""


def test_killed_producers_leave_no_half_record_for_a_whole_one(node: Node) -> None:
    """PUL-8: producers are killed with -9 amid their records; every record read has its hash."""
    topic = create_topic(node)
    for run in range(6):
        started = watermarks(node, topic, 0)[1]
        process = subprocess.Popen([sys.executable, "-c", PRODUCER, node.address, topic, str(run)])
        eventually(lambda: watermarks(node, topic, 0)[1] > started + 20)  # noqa: B023
        process.kill()
        process.wait()
    with headrace.Producer(sending(node)) as producer:
        last = producer.send(topic, b"the end").result(SECONDS_MAX)
    found: list[headrace.Message] = []
    with headrace.Consumer(reading(node)) as consumer:
        consumer.assign(topic)
        while not found or found[-1].offset() != last.offset:
            found += taken(consumer, 1)
    hashes = [hashlib.sha256(one.value() or b"").hexdigest().encode() for one in found[:-1]]
    assert hashes == [one.key() for one in found[:-1]]
    assert len(found) > 6
