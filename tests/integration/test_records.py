"""A record comes back as it was sent, at the offset it was acknowledged with."""

import struct
import time

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    KafkaError,
    TopicPartition,
)

from tests.clients.librdkafka import (
    AN_HOUR_AGO,
    Sent,
    consumer,
    create_topic,
    numbered,
    produce,
    read,
    read_values,
    refusal,
    until_end,
    values,
    watermarks,
)
from tests.processes.nodes import Node

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
PAYLOADS = {
    "text": "Grüße, 世界\n".encode(),
    "json": b'{"id": 1, "tags": [null, true, 1.5e3]}',
    "avro": b"\x00\x00\x00\x00\x2a\x0aHello\xff\x00",
    "protobuf": b"\x08\x96\x01\x12\x07testing",
    "every byte": bytes(range(256)) * 4,
    "empty": b"",
}


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS.keys())
def test_any_payload_comes_back_bit_for_bit(
    node: Node, topic: str, payload: bytes, codec: str
) -> None:
    """LOG-1(b)(c), LOG-16, PRD-10: opaque bytes through every codec."""
    produce(node, topic, [Sent(payload, key=payload)] * 3, compression_type=codec)
    assert [(m.key(), m.value()) for m in read(node, topic)] == [(payload, payload)] * 3


def test_key_value_headers_and_timestamp_come_back(node: Node, topic: str) -> None:
    """LOG-1, LOG-2: everything that a record carries, and its partition and offset."""
    headers = (("trace", b"\x00\xff"), ("trace", b"again"), ("empty", b""), ("null", None))
    produce(node, topic, [Sent(b"v", b"k", headers, timestamp=AN_HOUR_AGO)])
    (message,) = read(node, topic)
    assert (message.key(), message.value(), message.headers()) == (b"k", b"v", list(headers))
    assert (message.topic(), message.partition(), message.offset()) == (topic, 0, 0)
    assert message.timestamp() == (TIMESTAMP_CREATE_TIME, AN_HOUR_AGO)


def test_null_is_not_empty(node: Node, topic: str) -> None:
    """LOG-1: a key and a value are optional, and both differ from empty ones."""
    pairs = [(None, None), (None, b""), (b"", None), (b"", b"")]
    produce(node, topic, [Sent(value, key) for key, value in pairs])
    assert [(m.key(), m.value()) for m in read(node, topic)] == pairs


def test_offsets_count_up_from_zero_in_append_order(node: Node, topic: str) -> None:
    """LOG-8, LOG-9, LOG-14: one number per record, also over many batches."""
    sent = numbered(5_000)
    acknowledged = produce(node, topic, sent, batch_num_messages=300)
    assert [message.offset() for message in acknowledged] == list(range(5_000))
    assert read_values(node, topic) == [record.value for record in sent]


def test_every_partition_counts_for_itself(node: Node) -> None:
    """LOG-8, LOG-9(b): offsets are unique within a partition, not across."""
    topic = create_topic(node, partitions=3)
    for partition in range(3):
        produce(node, topic, numbered(partition + 1), partition=partition)
    assert [watermarks(node, topic, partition) for partition in range(3)] == [
        (0, 1),
        (0, 2),
        (0, 3),
    ]


def test_new_records_go_to_the_end_and_old_ones_stay(node: Node, topic: str) -> None:
    """LOG-10: what was read once reads the same after more was written."""
    produce(node, topic, numbered(100))
    before = [fingerprint(message) for message in read(node, topic)]
    produce(node, topic, numbered(100))
    assert [fingerprint(message) for message in read(node, topic)][:100] == before


def test_two_readers_see_the_same_history(node: Node, topic: str) -> None:
    """LOG-5(b), LOG-18, CON-2: many consumers coexist, and a later one gets everything again."""
    produce(node, topic, numbered(1_000))
    with consumer(node) as first, consumer(node) as second:
        for client in (first, second):
            client.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        histories = [[m.value() for m in until_end(client)] for client in (first, second)]
    assert histories[0] == histories[1] == read_values(node, topic)


def test_a_record_without_timestamp_gets_the_producers_clock(node: Node, topic: str) -> None:
    """LOG-3: CreateTime is the default."""
    before = time.time() * 1000 - 1
    produce(node, topic, values("now"))
    (message,) = read(node, topic)
    kind, timestamp = message.timestamp()
    assert kind == TIMESTAMP_CREATE_TIME
    assert before <= timestamp <= time.time() * 1000


def test_log_append_time_is_the_brokers_clock(node: Node) -> None:
    """LOG-3(b): the topic's setting decides; the producer's timestamp is overwritten."""
    topic = create_topic(node, message_timestamp_type="LogAppendTime")
    before = time.time() * 1000 - 1
    (acknowledged,) = produce(node, topic, [Sent(b"v", timestamp=1_000)])
    (message,) = read(node, topic)
    kind, timestamp = message.timestamp()
    assert kind == TIMESTAMP_LOG_APPEND_TIME
    assert before <= timestamp <= time.time() * 1000
    assert acknowledged.timestamp()[1] == timestamp


def test_a_timestamp_too_far_from_now_is_refused(node: Node) -> None:
    """LOG-3: message.timestamp.before.max.ms."""
    topic = create_topic(node, message_timestamp_before_max_ms=60_000)
    assert refusal(node, topic, Sent(b"old", timestamp=1_000)) == KafkaError.INVALID_TIMESTAMP
    assert watermarks(node, topic) == (0, 0)


@pytest.mark.parametrize("size", [100_000, 1_000_000, 8_000_000])
def test_large_records_pass_up_to_the_limit(node: Node, size: int) -> None:
    """LOG-15: a raised limit lets large records through."""
    topic = create_topic(node, max_message_bytes=10_000_000)
    payload = struct.pack(">I", size) * (size // 4)
    produce(node, topic, [Sent(payload)], message_max_bytes=20_000_000)
    assert read_values(node, topic, fetch_message_max_bytes=100_000) == [payload]


def test_a_record_above_the_limit_is_refused(node: Node) -> None:
    """LOG-15: MESSAGE_TOO_LARGE; later records are accepted."""
    topic = create_topic(node, max_message_bytes=10_000)
    assert refusal(node, topic, Sent(b"x" * 20_000)) == KafkaError.MSG_SIZE_TOO_LARGE
    produce(node, topic, values("small"))
    assert read_values(node, topic) == [b"small"]


@pytest.mark.parametrize("stored_as", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
def test_a_topic_may_choose_its_own_codec(node: Node, stored_as: str) -> None:
    """LOG-16: compression.type other than producer recompresses; records stay the same."""
    topic = create_topic(node, compression_type=stored_as)
    sent = [Sent(b"value-%d" % n, b"key", (("h", b"1"),), AN_HOUR_AGO + n) for n in range(100)]
    produce(node, topic, sent, compression_type="lz4")
    received = [
        (m.value(), m.key(), tuple(m.headers() or ()), m.timestamp()[1]) for m in read(node, topic)
    ]
    assert received == [tuple(record) for record in sent]


@pytest.mark.parametrize("offset", [0, 1, 499, 998])
def test_reading_starts_at_any_offset(node: Node, topic: str, offset: int) -> None:
    """LOG-13(b): also in the middle of a batch."""
    produce(node, topic, numbered(999))
    assert [m.offset() for m in read(node, topic, offset=offset)] == list(range(offset, 999))


def test_seek_rewinds_and_skips(node: Node, topic: str) -> None:
    """LOG-13(b): forwards, backwards, to the start and to the end."""
    produce(node, topic, numbered(1_000))
    seen = []
    with consumer(node) as client:
        client.assign([TopicPartition(topic, 0, 500)])
        seen.append(next(until_end(client)).offset())
        for target in (900, 10, OFFSET_BEGINNING):
            client.seek(TopicPartition(topic, 0, target))
            seen.append(next(until_end(client)).offset())
        client.seek(TopicPartition(topic, 0, OFFSET_END))
        assert list(until_end(client)) == []
    assert seen == [500, 900, 10, 0]


def test_an_offset_that_was_never_written_is_out_of_range(node: Node, topic: str) -> None:
    """LOG-13: the error that makes a client reset."""
    produce(node, topic, numbered(10))
    with consumer(node) as client:
        client.assign([TopicPartition(topic, 0, 1_000)])
        message = client.poll(30)
        assert message is not None
        error = message.error()
    assert error is not None
    assert error.code() == KafkaError._AUTO_OFFSET_RESET


def fingerprint(message: object) -> tuple[object, ...]:
    names = ("offset", "key", "value", "timestamp", "headers")
    return tuple(getattr(message, name)() for name in names)
