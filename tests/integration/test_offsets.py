"""Finding a place in the log: first, last, by time; and moving its start."""

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from tests.clients.librdkafka import (
    AN_HOUR_AGO,
    SECONDS_MAX,
    Sent,
    admin,
    consumer,
    create_topic,
    numbered,
    produce,
    read,
    watermarks,
)
from tests.processes.nodes import Node

StartNode = Callable[..., Node]
MINUTE = 60_000


def stamped(count: int) -> list[Sent]:
    """One record a minute, beginning an hour ago."""
    return [Sent(b"%d" % n, timestamp=AN_HOUR_AGO + n * MINUTE) for n in range(count)]


@pytest.mark.parametrize(
    ("after_ms", "offset"),
    [(-AN_HOUR_AGO, 0), (0, 0), (1, 1), (5 * MINUTE, 5), (9 * MINUTE, 9)],
    ids=["since ever", "first", "just after the first", "middle", "last"],
)
@pytest.mark.parametrize("records_per_batch", [1, 1_000])
def test_a_time_leads_to_the_first_record_not_before_it(
    node: Node, topic: str, after_ms: int, offset: int, records_per_batch: int
) -> None:
    """LOG-13(b): also inside a batch."""
    produce(node, topic, stamped(10), batch_num_messages=records_per_batch)
    assert offset_for_time(node, topic, AN_HOUR_AGO + after_ms) == offset


def test_a_time_after_all_records_leads_to_the_end(node: Node, topic: str) -> None:
    """LOG-13(b): there is no such record yet."""
    produce(node, topic, stamped(10))
    assert offset_for_time(node, topic, AN_HOUR_AGO + 100 * MINUTE) == -1


def test_a_time_is_found_over_many_segments(node: Node) -> None:
    """LOG-13(b), LOG-12: the time index leads to the segment and into it."""
    topic = create_topic(node, segment_bytes=1_048_576)
    records = [record._replace(value=b"x" * 10_000) for record in stamped(60)]
    for _ in range(8):
        produce(node, topic, records[:1], compression_type="none")
    produce(node, topic, records, compression_type="none", batch_num_messages=7)
    produce(node, topic, [Sent(b"x" * 10_000, timestamp=AN_HOUR_AGO + 60 * MINUTE)] * 300)
    for minute in (1, 17, 30, 59):
        assert offset_for_time(node, topic, AN_HOUR_AGO + minute * MINUTE) == 8 + minute


def test_earliest_latest_and_max_timestamp_offsets_are_listed(node: Node, topic: str) -> None:
    """LOG-13(b): earliest, latest, and the offset of the largest timestamp."""
    shuffled = [Sent(b"v", timestamp=AN_HOUR_AGO + n * MINUTE) for n in (3, 9, 1, 5)]
    produce(node, topic, shuffled)
    assert listed_offset(node, topic, "earliest") == 0
    assert listed_offset(node, topic, "latest") == 4
    assert listed_offset(node, topic, "max_timestamp") == 1


def test_an_empty_partition_has_no_newest_record(node: Node, topic: str) -> None:
    """LOG-13(b)"""
    assert watermarks(node, topic) == (0, 0)
    assert listed_offset(node, topic, "max_timestamp") == -1
    assert offset_for_time(node, topic, 0) == -1


def test_deleted_records_are_gone_and_offsets_stay(node: Node, topic: str) -> None:
    """LOG-10, LOG-13: the start of the log moves, nothing is renumbered."""
    produce(node, topic, numbered(100))
    delete_before(node, topic, 40)
    assert watermarks(node, topic) == (40, 100)
    assert [message.offset() for message in read(node, topic)] == list(range(40, 100))
    assert offset_for_time(node, topic, 0) == 40


def test_the_start_of_the_log_survives_a_restart(start_node: StartNode) -> None:
    """LOG-11: what was deleted stays deleted."""
    node = start_node()
    topic = create_topic(node)
    produce(node, topic, numbered(100))
    delete_before(node, topic, 40)
    node.restart()
    assert watermarks(node, topic) == (40, 100)


def test_all_records_can_be_deleted(node: Node, topic: str) -> None:
    """LOG-13: minus one means up to the end."""
    produce(node, topic, numbered(100))
    delete_before(node, topic, -1)
    assert watermarks(node, topic) == (100, 100)
    assert produce(node, topic, numbered(1))[0].offset() == 100


def test_records_that_do_not_exist_yet_cannot_be_deleted(node: Node, topic: str) -> None:
    """LOG-13"""
    produce(node, topic, numbered(10))
    with pytest.raises(KafkaException) as refused:
        delete_before(node, topic, 11)
    assert refused.value.args[0].code() == KafkaError.OFFSET_OUT_OF_RANGE
    assert watermarks(node, topic) == (0, 10)


def offset_for_time(node: Node, topic: str, timestamp: int) -> int:
    """The answer of the broker; librdkafka makes the end of the partition out of no answer."""
    with consumer(node) as client:
        (answer,) = client.offsets_for_times([TopicPartition(topic, 0, timestamp)], SECONDS_MAX)
        return int(answer.offset)


def listed_offset(node: Node, topic: str, place: str) -> int:
    partition = TopicPartition(topic, 0)
    spec: OffsetSpec = getattr(OffsetSpec, place)()
    client = admin(node)
    return int(client.list_offsets({partition: spec})[partition].result(SECONDS_MAX).offset)


def delete_before(node: Node, topic: str, offset: int) -> None:
    request = TopicPartition(topic, 0, offset)
    client = admin(node)
    client.delete_records([request])[request].result(SECONDS_MAX)
