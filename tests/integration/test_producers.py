"""Producers as real clients run them: partitioners, acknowledgements, batches, retries."""

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import KafkaError, KafkaException, Message
from kafka import KafkaProducer

from tests.builders.segment_files import batch_headers
from tests.clients.librdkafka import (
    SECONDS_MAX,
    Sent,
    create_topic,
    numbered,
    produce,
    producer,
    read,
    read_values,
    try_produce,
    values,
    watermarks,
)
from tests.processes.lossy_relay import LossyProxy
from tests.processes.nodes import HOST, Node, eventually, free_port

LONG_LINGER = {"linger_ms": 200_000, "message_timeout_ms": 300_000}  # Longer than any test.

StartNode = Callable[..., Node]
Partitioner = Callable[[bytes | None, Sequence[int], Sequence[int]], int]

# Java's murmur2 of some keys, as Kafka's own tests have them.
MURMUR2 = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


def test_an_explicit_partition_is_used(node: Node) -> None:
    """PRD-2: with any key."""
    topic = create_topic(node, partitions=4)
    (message,) = produce(node, topic, [Sent(b"v", b"key")], partition=3)
    assert (message.partition(), message.offset()) == (3, 0)
    assert read_values(node, topic, partition=3) == [b"v"]


def test_an_invalid_partition_is_refused_and_nothing_is_sent(node: Node) -> None:
    """PRD-2(b)"""
    topic = create_topic(node, partitions=2)
    with pytest.raises(KafkaException) as refused:
        produce(node, topic, values("lost"), partition=7)
    assert refused.value.args[0].code() == KafkaError._UNKNOWN_PARTITION
    assert [watermarks(node, topic, partition) for partition in range(2)] == [(0, 0), (0, 0)]


@pytest.mark.parametrize("key", MURMUR2, ids=lambda key: key.decode()[:12])
def test_a_key_goes_where_java_would_send_it(node: Node, key: bytes) -> None:
    """PRD-3: the same key on the same partition, from any client."""
    topic = create_topic(node, partitions=7)
    expected = (MURMUR2[key] & 0x7FFF_FFFF) % 7
    (by_librdkafka,) = produce(
        node, topic, [Sent(b"v", key)], partition=-1, partitioner="murmur2_random"
    )
    by_kafka_python = send_with_kafka_python(node, topic, key=key)
    assert (by_librdkafka.partition(), by_kafka_python) == (expected, expected)


def test_records_without_key_spread_over_all_partitions(node: Node) -> None:
    """PRD-4: by turns, five partitions get a fifth each."""
    topic = create_topic(node, partitions=5)
    turns = itertools.cycle(range(5))

    def by_turns(_key: bytes | None, partitions: Sequence[int], _free: Sequence[int]) -> int:
        return partitions[next(turns)]

    with_partitioner(node, topic, by_turns, [b"x" * 100] * 100)
    assert [watermarks(node, topic, partition)[1] for partition in range(5)] == [20] * 5


def test_records_without_key_use_every_partition_by_default(node: Node) -> None:
    """PRD-4: the client's own choice reaches them all."""
    topic = create_topic(node, partitions=3)
    client = producer(node, sticky_partitioning_linger_ms=0)
    outcomes = try_produce(client, topic, numbered(300), partition=-1)
    spread = Counter(message.partition() for _error, message in outcomes)
    assert set(spread) == {0, 1, 2}


def test_a_partitioner_of_ones_own_decides(node: Node) -> None:
    """PRD-5, PRD-6: known users and urgent records have a partition to themselves."""
    topic = create_topic(node, partitions=3)

    def urgent_first(
        key: bytes | None, partitions: Sequence[int], _available: Sequence[int]
    ) -> int:
        return partitions[0] if key == b"urgent" else partitions[1 + len(key or b"") % 2]

    with_partitioner(node, topic, urgent_first, [b"1", b"2"], key=b"urgent")
    with_partitioner(node, topic, urgent_first, [b"3"], key=b"even")
    assert read_values(node, topic, partition=0) == [b"1", b"2"]
    assert read_values(node, topic, partition=1) == [b"3"]


def test_any_bootstrap_address_that_answers_is_enough(node: Node, topic: str) -> None:
    """PRD-7: the others may be down."""
    addresses = f"{HOST}:{free_port()},{node.address}"
    produce(node, topic, values("found"), bootstrap_servers=addresses)
    assert read_values(node, topic) == [b"found"]


def test_records_that_wait_together_become_one_batch(node: Node, topic: str) -> None:
    """PRD-8(b), LOG-14(b): a linger fills batches, and a batch is one append.

    What waits is sent when the client is flushed, so a long linger costs no time.
    """
    produce(node, topic, numbered(1_000), **LONG_LINGER)
    headers = batch_headers(node.data / f"{topic}-0")
    assert sum(header.record_count for header in headers) == 1_000
    assert len(headers) < 20


def test_a_full_batch_leaves_at_once(node: Node, topic: str) -> None:
    """PRD-8: the limit of records cuts batches, however long the linger: nothing is flushed."""
    client = producer(node, batch_num_messages=100, **LONG_LINGER)
    for record in numbered(1_000):
        client.produce(topic, record.value, partition=0)

    def left() -> int:
        client.poll(0.1)
        return len(client)

    eventually(left, expect=lambda count: count == 0)
    headers = batch_headers(node.data / f"{topic}-0")
    assert [header.record_count for header in headers] == [100] * 10


def test_without_linger_records_that_arrive_during_a_send_are_sent_together(
    start_node: StartNode,
) -> None:
    """PRD-8(c): the first record leaves alone, and of a hundred that pile up almost all share one.

    librdkafka prepares one more request while the limit of requests in flight is reached.
    """
    with LossyProxy(losses=0) as proxy:
        node = node_behind(proxy, start_node)
        topic = create_topic(node)
        client = producer(node, linger_ms=0, max_in_flight_requests_per_connection=1)
        proxy.may_answer.clear()
        client.produce(topic, b"alone", partition=0)
        assert proxy.is_holding.wait(SECONDS_MAX)
        for record in numbered(100):
            client.produce(topic, record.value, partition=0)
        proxy.may_answer.set()
        assert client.flush(SECONDS_MAX) == 0
    headers = batch_headers(node.data / f"{topic}-0")
    counts = [header.record_count for header in headers]
    assert (counts[0], sum(counts), len(counts) <= 3) == (1, 101, True)


def test_a_bounded_buffer_pushes_back(node: Node, topic: str) -> None:
    """PRD-9: a full queue is an error at once, and is empty again later."""
    client = producer(node, queue_buffering_max_messages=10, linger_ms=1_000)
    for _ in range(10):
        client.produce(topic, b"v", partition=0)
    with pytest.raises(BufferError):
        client.produce(topic, b"one too many", partition=0)
    assert client.flush(SECONDS_MAX) == 0
    assert watermarks(node, topic) == (0, 10)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_larger_batches_compress_better(node: Node, codec: str) -> None:
    """PRD-10: compression is per batch."""
    sizes = {}
    for count in (1, 500):
        topic = create_topic(node)
        records = [Sent(b'{"sensor": "kitchen", "value": %d}' % n) for n in range(500)]
        produce(node, topic, records, compression_type=codec, batch_num_messages=count)
        headers = batch_headers(node.data / f"{topic}-0")
        sizes[count] = sum(header.size for header in headers)
    assert sizes[500] * 3 < sizes[1]


def test_a_synchronous_send_returns_the_offset_of_the_record(node: Node, topic: str) -> None:
    """PRD-11"""
    client = KafkaProducer(bootstrap_servers=node.address)
    try:
        places = [client.send(topic, b"v").get(SECONDS_MAX) for _ in range(3)]
    finally:
        client.close()
    assert [(place.topic, place.partition, place.offset) for place in places] == [
        (topic, 0, 0),
        (topic, 0, 1),
        (topic, 0, 2),
    ]


def test_an_asynchronous_send_calls_back_with_the_record(node: Node, topic: str) -> None:
    """PRD-12: the original key and value, and where it is now."""
    outcomes = try_produce(
        producer(node, max_in_flight_requests_per_connection=1), topic, [Sent(b"v", b"k")]
    )
    ((error, message),) = outcomes
    assert error is None
    assert (message.key(), message.value(), message.offset()) == (b"k", b"v", 0)


def test_a_refused_record_calls_back_with_the_error_and_the_record(node: Node) -> None:
    """PRD-12: the others are not touched by it."""
    topic = create_topic(node, max_message_bytes=5_000)
    large = bytes(random.Random(1).randbytes(9_000))
    outcomes = try_produce(
        producer(node, batch_num_messages=1), topic, [*values("a"), Sent(large), *values("b")]
    )
    failed = [(error.code(), message.value()) for error, message in outcomes if error is not None]
    assert failed == [(KafkaError.MSG_SIZE_TOO_LARGE, large)]
    assert read_values(node, topic) == [b"a", b"b"]


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_every_kind_of_acknowledgement(node: Node, topic: str, acks: int) -> None:
    """PRD-13: no wait, the leader, all in-sync replicas."""
    produce(node, topic, numbered(1_000), acks=acks)
    eventually(lambda: watermarks(node, topic) == (0, 1_000))
    assert read_values(node, topic) == [record.value for record in numbered(1_000)]


def test_a_lost_acknowledgement_duplicates_without_idempotence(start_node: StartNode) -> None:
    """PRD-14: at least once."""
    with LossyProxy(losses=2) as proxy:
        node = node_behind(proxy, start_node)
        topic = create_topic(node)
        produce(node, topic, values("once?"), enable_idempotence=False, retries=5)
    assert read_values_directly(node, proxy, topic) == [b"once?"] * 3


def test_a_lost_acknowledgement_never_duplicates_with_idempotence(start_node: StartNode) -> None:
    """PRD-14, PRD-15, PUL-13: the retry is answered with the offset of the first time."""
    with LossyProxy(losses=2) as proxy:
        node = node_behind(proxy, start_node)
        topic = create_topic(node)
        acknowledged = produce(node, topic, values("once"), enable_idempotence=True)
    assert [message.offset() for message in acknowledged] == [0]
    assert read_values_directly(node, proxy, topic) == [b"once"]


def test_an_idempotent_producer_keeps_order_and_counts(node: Node, topic: str) -> None:
    """PRD-15: five requests in flight, each record once, in order."""
    sent = numbered(20_000)
    produce(node, topic, sent, enable_idempotence=True, batch_num_messages=50, linger_ms=0)
    messages: list[Message] = read(node, topic)
    assert [message.value() for message in messages] == [record.value for record in sent]


def node_behind(proxy: LossyProxy, start_node: StartNode) -> Node:
    """A node whose clients all go through the proxy."""
    node = start_node(advertised_listeners=f"PLAINTEXT://{HOST}:{proxy.port}")
    proxy.target_port = node.port
    return node


def read_values_directly(node: Node, proxy: LossyProxy, topic: str) -> list[bytes | None]:
    """Read when the proxy is gone: a relay of its own on the advertised address."""
    with LossyProxy(losses=0, port=proxy.port) as relay:
        relay.target_port = node.port
        return read_values(node, topic)


def with_partitioner(
    node: Node,
    topic: str,
    partitioner: Partitioner,
    payloads: Sequence[bytes],
    *,
    key: bytes | None = None,
) -> None:
    """Send through aiokafka, which takes a plain function as its partitioner."""

    async def send() -> None:
        options = {"bootstrap_servers": node.address, "partitioner": partitioner}
        async with AIOKafkaProducer(**options) as client:
            for payload in payloads:
                await client.send_and_wait(topic, payload, key=key)

    asyncio.run(send())


def send_with_kafka_python(node: Node, topic: str, *, key: bytes) -> int:
    client = KafkaProducer(bootstrap_servers=node.address)
    try:
        return int(client.send(topic, b"v", key=key).get(SECONDS_MAX).partition)
    finally:
        client.close()
