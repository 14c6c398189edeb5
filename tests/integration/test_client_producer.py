"""`headrace.Producer` on a running broker: its additions to confluent-kafka."""

import json
import threading
from collections import Counter
from typing import Any

import pytest

import headrace
from headrace.client.bulk import RecordProducer
from headrace.client.properties import InvalidProperty
from headrace.client.records import OutgoingRecord
from headrace.errors import MessageTooLarge, ProducerFenced
from tests.clients.librdkafka import SECONDS_MAX, create_topic, read, read_values, watermarks
from tests.processes.nodes import HOST, Node, free_port


def properties(node: Node, **more: object) -> dict[str, Any]:
    """Settings are given with underscores for dots."""
    given = {name.replace("_", "."): value for name, value in more.items()}
    return {"bootstrap.servers": node.address, "log_level": 0, "linger.ms": 1, **given}


def nobody(**more: object) -> dict[str, Any]:
    """An address without a broker."""
    given = {name.replace("_", "."): value for name, value in more.items()}
    return {"bootstrap.servers": f"{HOST}:{free_port()}", "log_level": 0, **given}


def counts(node: Node, topic: str, partitions: int) -> list[int]:
    return [watermarks(node, topic, partition)[1] for partition in range(partitions)]


def send_all(producer: headrace.Producer, topic: str, values: list[bytes]) -> None:
    for value in values:
        producer.send(topic, value)


def send_and_fail(producer: headrace.Producer, topics: list[str]) -> None:
    with producer.transaction():
        for topic in topics:
            producer.send(topic, b"aborted")
        producer.flush()
        _ = 1 // 0


def test_one_producer_serialises_for_many_topics(node: Node) -> None:
    """PRD-1"""
    topics = [create_topic(node), create_topic(node)]
    with headrace.Producer(
        properties(node), value_serializer=lambda topic, value: json.dumps([topic, value])
    ) as producer:
        for topic in topics:
            producer.send(topic, {"a": 1})
    assert [json.loads(read_values(node, topic)[0] or b"") for topic in topics] == [
        [topic, {"a": 1}] for topic in topics
    ]


def test_an_explicit_partition_is_used_or_refused(node: Node) -> None:
    """PRD-2, PRD-2(b), PUL-9"""
    topic = create_topic(node, partitions=3)
    with headrace.Producer(properties(node)) as producer:
        assert producer.send(topic, b"v", partition=2).result(SECONDS_MAX).partition == 2
        with pytest.raises(headrace.InvalidPartition, match="partitions 0 to 2"):
            producer.send(topic, b"v", partition=3)
        with pytest.raises(headrace.InvalidPartition):
            producer.send(topic, b"v", partition=-1)
    assert counts(node, topic, 3) == [0, 0, 1]


def test_keys_go_where_java_sends_them(node: Node) -> None:
    """PRD-3: murmur2 is the default, and a building block."""
    topic = create_topic(node, partitions=7)
    keys = [b"key-%d" % number for number in range(50)]
    with headrace.Producer(properties(node)) as producer:
        sent = [producer.send(topic, b"v", key) for key in keys]
        found = [delivery.result(SECONDS_MAX).partition for delivery in sent]
    assert found == [headrace.murmur2(key, 7) for key in keys]
    assert headrace.murmur2(b"foobar", 1000) == (-790332482 & 0x7FFFFFFF) % 1000


def test_round_robin_spreads_perfectly(node: Node) -> None:
    """PRD-4, PUL-9: 8, 8, 8, 8, 8."""
    topic = create_topic(node, partitions=5)
    with headrace.Producer(properties(node), partitioner="roundrobin") as producer:
        for _ in range(40):
            producer.send(topic, b"v")
    assert counts(node, topic, 5) == [8, 8, 8, 8, 8]


def test_sticky_fills_a_batch_before_it_moves_on(node: Node) -> None:
    """PRD-4: as Java does today (KIP-480)."""
    topic = create_topic(node, partitions=5)
    with headrace.Producer(properties(node, linger_ms=1000), partitioner="sticky") as producer:
        # Until the leader is connected, librdkafka only draws lots: wait for a first delivery.
        producer.send(topic, b"v").result(SECONDS_MAX)
        for _ in range(40):
            producer.send(topic, b"v")
    assert sorted(counts(node, topic, 5)) in ([0, 0, 0, 0, 41], [0, 0, 0, 1, 40])


def test_a_partitioner_is_a_function(node: Node) -> None:
    """PRD-5, PUL-9: it sees the key and the value as they were given."""
    topic = create_topic(node, partitions=4)
    seen: list[tuple[Any, ...]] = []

    def by_user(*given: Any) -> int:
        seen.append(given)
        return int(given[2]["user"]) % int(given[3])

    with headrace.Producer(
        properties(node),
        partitioner=by_user,
        value_serializer=lambda _topic, value: json.dumps(value),
    ) as producer:
        delivery = producer.send(topic, {"user": 6}, "k")
        assert delivery.result(SECONDS_MAX).partition == 2
    assert seen == [(topic, "k", {"user": 6}, 4)]


def test_a_partitioner_that_is_out_of_range_is_reported(node: Node) -> None:
    """PRD-5: nothing is sent, and the message names the partitioner."""
    topic = create_topic(node, partitions=2)
    producer = headrace.Producer(properties(node), partitioner=lambda *_: 2)
    with producer, pytest.raises(headrace.InvalidPartition, match="the partitioner returned 2"):
        producer.send(topic, b"v")
    assert counts(node, topic, 2) == [0, 0]


def test_priority_by_partition(node: Node) -> None:
    """PRD-6: the first partition is the fast lane."""
    topic = create_topic(node, partitions=3)

    def by_priority(_topic: str, key: Any, value: Any, partitions: int) -> int:
        return 0 if value.startswith(b"urgent") else 1 + headrace.murmur2(key, partitions - 1)

    with headrace.Producer(properties(node), partitioner=by_priority) as producer:
        for number in range(10):
            producer.send(topic, b"urgent" if number < 2 else b"usual", b"%d" % number)
    assert set(read_values(node, topic, partition=0)) == {b"urgent"}
    assert counts(node, topic, 3)[0] == 2


def test_a_full_buffer_ends_in_a_timeout() -> None:
    """PRD-9: with no broker nothing leaves the buffer; the wait is bounded."""
    producer = headrace.Producer(nobody(buffer_memory=10 * 1024, max_block_ms=200))
    with pytest.raises(TimeoutError, match=r"max\.block\.ms"):
        send_all(producer, "anything", [bytes(1024)] * 1_000)
    assert 1 <= len(producer) <= 11
    with pytest.raises(TimeoutError):
        producer.close(timeout_s=0)


def test_a_send_waits_for_room_and_continues(node: Node) -> None:
    """PRD-9: a small buffer slows the sender down and loses nothing, in order."""
    topic = create_topic(node)
    with headrace.Producer(properties(node, buffer_memory=20_000)) as producer:
        for number in range(2_000):
            producer.send(topic, b"%06d" % number * 20)
    values = [(value or b"")[:6] for value in read_values(node, topic)]
    assert values == [b"%06d" % number for number in range(2_000)]


def test_metadata_that_does_not_come_ends_in_a_timeout() -> None:
    """PRD-9: a partitioner needs the number of partitions."""
    producer = headrace.Producer(nobody(max_block_ms=200), partitioner="roundrobin")
    with pytest.raises(TimeoutError, match="partitions of 'anything'"):
        producer.send("anything", b"v")


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compression(node: Node, codec: str) -> None:
    """PRD-10"""
    topic = create_topic(node)
    with headrace.Producer(properties(node, compression_type=codec)) as producer:
        for _ in range(100):
            producer.send(topic, b"a" * 1000)
    assert read_values(node, topic) == [b"a" * 1000] * 100


def test_a_synchronous_send_answers_partition_and_offset(node: Node) -> None:
    """PRD-11, PUL-9: and an exception stops the loop."""
    topic = create_topic(node, max_message_bytes=1000)
    with headrace.Producer(properties(node)) as producer:
        sent = [producer.send(topic, value).result(SECONDS_MAX) for value in (b"a", b"b")]
        with pytest.raises(headrace.DeliveryFailed):
            producer.send(topic, bytes(5000)).result(SECONDS_MAX)
    assert [one[:3] for one in sent] == [(topic, 0, 0), (topic, 0, 1)]
    assert watermarks(node, topic) == (0, 2)


def test_a_callback_gets_the_metadata_or_the_error_with_the_record(node: Node) -> None:
    """PRD-12, PUL-9: the record is the very one that was sent."""
    topic = create_topic(node, max_message_bytes=1000)
    printed: list[headrace.Delivery] = []
    value = bytearray(5000)
    with headrace.Producer(
        properties(node), value_serializer=lambda _topic, value: bytes(value)
    ) as producer:
        producer.send(topic, b"good", b"k", on_delivery=printed.append)
        producer.flush()
        producer.send(topic, value, b"k", headers={"h": b"1"}, on_delivery=printed.append)
    good, bad = printed
    assert (good.metadata.offset, good.failure) == (0, None)
    assert bad.record.value is value
    assert (bad.record.key, bad.record.headers) == (b"k", {"h": b"1"})
    assert bad.failure is not None
    assert isinstance(bad.failure.__cause__, MessageTooLarge)


def test_a_failure_without_a_call_of_result_is_raised_at_the_end(node: Node) -> None:
    """PRD-12: no record is lost in silence."""
    topic = create_topic(node, max_message_bytes=1000)
    producer = headrace.Producer(properties(node))
    producer.send(topic, b"good").result(SECONDS_MAX)
    producer.send(topic, bytes(5000), "lost")
    with pytest.raises(headrace.DeliveryFailed) as failed:
        producer.close()
    assert failed.value.record.key == "lost"


def test_records_too_large_for_the_client_fail_like_those_of_the_broker(
    node: Node, topic: str
) -> None:
    """PRD-12: errors of client and broker are reported in the same way."""
    with headrace.Producer(properties(node, message_max_bytes=2000)) as producer:
        delivery = producer.send(topic, bytes(5000), "big")
        failure = delivery.exception(SECONDS_MAX)
    assert failure is not None
    assert failure.record.key == "big"


def test_deliveries_can_be_awaited_from_several_threads(node: Node, topic: str) -> None:
    """PRD-12"""
    offsets: Counter[int] = Counter()

    def work() -> None:
        for _ in range(20):
            offsets[producer.send(topic, b"v").result(SECONDS_MAX).offset] += 1

    with headrace.Producer(properties(node)) as producer:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert offsets == Counter(range(80))


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_acks(node: Node, topic: str, acks: object) -> None:
    """PRD-13: without acknowledgement the offset is unknown."""
    with headrace.Producer(properties(node, acks=acks)) as producer:
        metadata = producer.send(topic, b"v").result(SECONDS_MAX)
    assert metadata.offset == (-1 if acks == 0 else 0)


def test_an_idempotent_producer_keeps_order_over_a_crash(start_node: Any) -> None:
    """PRD-15, PRD-14, PUL-13: kill -9 of the broker in the middle neither loses nor repeats."""
    node: Node = start_node()
    topic = create_topic(node)
    with headrace.Producer(properties(node, enable_idempotence=True)) as producer:
        for number in range(2_000):
            producer.send(topic, b"%d" % number)
            if number == 1_000:
                node.kill()
                node.start()
    assert read_values(node, topic) == [b"%d" % number for number in range(2_000)]


def test_a_transaction_appears_as_a_whole_or_not_at_all(node: Node) -> None:
    """PRD-16: over two topics."""
    topics = [create_topic(node), create_topic(node)]
    with headrace.Producer(properties(node, transactional_id=topics[0])) as producer:
        with producer.transaction():
            for topic in topics:
                producer.send(topic, b"committed")
        with pytest.raises(ZeroDivisionError):
            send_and_fail(producer, topics)
        with producer.transaction():
            producer.send(topics[0], b"after")
    committed = [read_values(node, topic, isolation_level="read_committed") for topic in topics]
    assert committed == [[b"committed", b"after"], [b"committed"]]
    everything = read(node, topics[1], isolation_level="read_uncommitted")
    assert [message.value() for message in everything] == [b"committed", b"aborted"]


def test_a_second_owner_of_a_transactional_id_fences_the_first(node: Node, topic: str) -> None:
    """PRD-16: the first raises an error."""
    first = headrace.Producer(properties(node, transactional_id=topic))
    with first.transaction():
        first.send(topic, b"first")
    second = headrace.Producer(properties(node, transactional_id=topic))
    with second, second.transaction():
        second.send(topic, b"second")
    with pytest.raises(ProducerFenced), first.transaction():
        first.send(topic, b"never")
    assert read_values(node, topic, isolation_level="read_committed") == [b"first", b"second"]


def test_a_property_with_a_typo_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(InvalidProperty, match=r"Did you mean linger\.ms\?"):
        headrace.Producer({"bootstrap.servers": "localhost", "lingr.ms": 5})


def test_the_commands_producer_counts_refused_records(node: Node) -> None:
    """PRD-12: also of records with headers, which go another way."""
    topic = create_topic(node, max_message_bytes=1000)
    bulk = RecordProducer(node.address, topic, {})
    bulk.send([OutgoingRecord(bytes(5000), headers=(("h", b"1"),))])
    assert bulk.flush(SECONDS_MAX) == 0
    assert bulk.failed == 1


def test_closing_without_a_broker_is_bounded() -> None:
    """PRD-9: an unsent record is reported as failed."""
    producer = headrace.Producer(nobody())
    delivery = producer.send("anything", b"v", "k")
    with pytest.raises(TimeoutError):
        producer.close(timeout_s=0.1)
    assert delivery.failure is not None
    assert delivery.failure.record.key == "k"
