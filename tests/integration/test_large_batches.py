"""Large batches that a topic looks into or rewrites are fitted aside, and all is as in order."""

from collections.abc import Callable
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from tests.builders.record_batches import batch
from tests.clients.librdkafka import Sent, create_topic, read, read_values
from tests.clients.wire import Connection, encode_request, produce_fields
from tests.processes.nodes import Node

StartNode = Callable[..., Node]

COUNT = 5_000
CONFIGS = {
    "compacted": {"cleanup_policy": "compact"},
    "recompressed": {"compression_type": "zstd"},
    "compacted and recompressed": {"cleanup_policy": "compact", "compression_type": "lz4"},
    "the broker's time": {"compression_type": "gzip", "message_timestamp_type": "LogAppendTime"},
    "synced": {"compression_type": "lz4", "flush_messages": 1},
}


def large(number: int, **fields: Any) -> bytes:
    records = (Sent(b"%d of %d" % (n, number), b"%d %d" % (number, n)) for n in range(COUNT))
    return batch(*records, **fields)


@pytest.mark.parametrize("configs", CONFIGS.values(), ids=CONFIGS.keys())
def test_requests_sent_in_a_row_are_stored_in_order(node: Node, configs: dict[str, Any]) -> None:
    """LOG-16, DEL-1: large and small ones of one producer, without waiting for answers."""
    topic = create_topic(node, **configs)
    with Connection(node.port) as connection:
        producer = connection.new_producer()
        identity = {
            "producer_id": producer.producer_id,
            "producer_epoch": producer.producer_epoch,
        }
        sequence = 0
        for number in range(4):
            connection.send(
                "produce",
                9,
                **produce_fields(topic, large(number, base_sequence=sequence, **identity)),
            )
            sequence += COUNT
            small = batch(Sent(b"small", b"s%d" % number), base_sequence=sequence, **identity)
            connection.send("produce", 9, **produce_fields(topic, small))
            sequence += 1
        answers = [connection.receive("produce", 9) for _ in range(8)]
    parts = [answer.responses[0].partition_responses[0] for answer in answers]
    assert [part.error_code for part in parts] == [ErrorCode.none] * 8
    starts = [number * (COUNT + 1) + extra for number in range(4) for extra in (0, COUNT)]
    assert [part.base_offset for part in parts] == starts
    values = [message.value() for message in read(node, topic)]
    assert values[-1] == b"small"
    assert [values.index(b"0 of %d" % number) for number in range(4)] == starts[::2]


def test_a_large_batch_without_keys_is_refused_and_its_neighbours_are_stored(node: Node) -> None:
    """LOG-16: in one request, each partition has an answer of its own."""
    topic = create_topic(node, partitions=3, cleanup_policy="compact")
    without_keys = batch(*(Sent(b"no key") for _ in range(COUNT)))
    fields = produce_fields(topic, b"")
    fields["topic_data"][0]["partition_data"] = [
        {"index": 0, "records": without_keys},
        {"index": 1, "records": large(1)},
        {"index": 2, "records": batch(Sent(b"small", b"key"))},
    ]
    with Connection(node.port) as connection:
        (answer,) = connection.call("produce", 9, **fields).responses
    codes = {part.index: part.error_code for part in answer.partition_responses}
    assert codes == {0: ErrorCode.invalid_record, 1: ErrorCode.none, 2: ErrorCode.none}
    assert [len(read_values(node, topic, partition=n)) for n in range(3)] == [0, COUNT, 1]


@pytest.mark.usefixtures("only_headrace")
def test_a_producer_that_disconnects_meanwhile_harms_no_other(node: Node) -> None:
    """OPS-1: its batch is stored, or it is not."""
    topic = create_topic(node, cleanup_policy="compact")
    for acks in (1, 0):
        with Connection(node.port) as leaving:
            leaving.send_frame(
                encode_request("produce", 9, **produce_fields(topic, large(1), 0, acks))
            )
    with Connection(node.port) as connection:
        assert connection.produce(topic, large(2)).error_code == ErrorCode.none
    assert len(read_values(node, topic)) % COUNT == 0
    assert "Traceback" not in node.log
