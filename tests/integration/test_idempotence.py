"""Sequence numbers: a batch that comes again is answered, not stored; a gap is refused."""

from collections.abc import Callable
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from tests.builders.record_batches import batch
from tests.clients.librdkafka import create_topic, values, watermarks
from tests.clients.wire import SECOND, Connection
from tests.processes.nodes import Node

StartNode = Callable[..., Node]


class IdempotentProducer:
    """Sends batches of one record with given sequence numbers."""

    def __init__(self, connection: Connection, topic: str) -> None:
        self.connection = connection
        self.topic = topic
        identity = connection.new_producer()
        self.id, self.epoch = identity.producer_id, identity.producer_epoch

    def send(self, sequence: int, *, epoch: int | None = None) -> tuple[ErrorCode, int]:
        """The error and the offset that the broker answers."""
        answer = self.answer_to(sequence, epoch=epoch)
        return answer.error_code, answer.base_offset

    def answer_to(self, sequence: int, *, epoch: int | None = None) -> Any:
        records = batch(
            *values(f"record {sequence}"),
            producer_id=self.id,
            producer_epoch=self.epoch if epoch is None else epoch,
            base_sequence=sequence,
        )
        return self.connection.produce(self.topic, records)


def test_every_producer_has_an_id_of_its_own(node: Node) -> None:
    """PRD-15"""
    with Connection(node.port) as connection:
        identities = [connection.new_producer() for _ in range(50)]
    assert len({identity.producer_id for identity in identities}) == 50
    assert {identity.producer_epoch for identity in identities} == {0}


def test_producer_ids_are_never_given_twice(start_node: StartNode) -> None:
    """PRD-15: not even after a crash."""
    node = start_node()
    given = set()
    for _ in range(3):
        with Connection(node.port) as connection:
            given |= {connection.new_producer().producer_id for _ in range(5)}
        node.kill()
        node.start()
    assert len(given) == 15


def test_a_gap_is_refused_as_one_where_the_broker_sets_the_time(node: Node) -> None:
    """PRD-15: the batch is judged as it came, not as the broker would have written it."""
    topic = create_topic(node, message_timestamp_type="LogAppendTime")
    with Connection(node.port) as connection:
        producer = IdempotentProducer(connection, topic)
        assert [producer.send(sequence)[0] for sequence in range(3)] == [ErrorCode.none] * 3
        assert producer.send(5)[0] == ErrorCode.out_of_order_sequence_number
        assert producer.send(3) == (ErrorCode.none, 3)


def test_a_repeated_batch_is_answered_with_its_first_offset(node: Node, topic: str) -> None:
    """PRD-15: for the last five batches."""
    with Connection(node.port) as connection:
        producer = IdempotentProducer(connection, topic)
        assert [producer.send(n) for n in range(6)] == [(ErrorCode.none, n) for n in range(6)]
        assert [producer.send(n) for n in range(1, 6)] == [(ErrorCode.none, n) for n in range(1, 6)]
    assert watermarks(node, topic) == (0, 6)


def test_a_batch_repeated_too_late_is_refused(node: Node, topic: str) -> None:
    """PRD-15: the sixth last is not remembered, but never stored again."""
    with Connection(node.port) as connection:
        producer = IdempotentProducer(connection, topic)
        for sequence in range(6):
            producer.send(sequence)
        error, _offset = producer.send(0)
    assert error in (ErrorCode.duplicate_sequence_number, ErrorCode.out_of_order_sequence_number)
    assert watermarks(node, topic) == (0, 6)


def test_a_gap_is_refused(node: Node, topic: str) -> None:
    """PRD-15: a batch in between is missing, so this one must wait."""
    with Connection(node.port) as connection:
        producer = IdempotentProducer(connection, topic)
        producer.send(0)
        assert producer.send(2)[0] == ErrorCode.out_of_order_sequence_number
        assert producer.send(1) == (ErrorCode.none, 1)
    assert watermarks(node, topic) == (0, 2)


def test_a_refused_sequence_returns_the_log_start_offset(node: Node, topic: str) -> None:
    """PRD-15: the producer can distinguish deleted records from a gap."""
    with Connection(node.port) as connection:
        producer = IdempotentProducer(connection, topic)
        for sequence in range(3):
            producer.send(sequence)
        partition = {"partition_index": 0, "offset": 2}
        topics = [{"name": topic, "partitions": [partition]}]
        connection.call("delete_records", 2, topics=topics, timeout=SECOND)
        refused = producer.answer_to(7)
    assert refused.error_code == ErrorCode.out_of_order_sequence_number
    assert refused.log_start_offset == 2


def test_an_old_epoch_is_fenced(node: Node, topic: str) -> None:
    """PRD-15: a producer that came back with a new epoch shuts out its former self."""
    with Connection(node.port) as connection:
        producer = IdempotentProducer(connection, topic)
        assert producer.send(0, epoch=1) == (ErrorCode.none, 0)
        assert producer.send(0, epoch=0)[0] == ErrorCode.invalid_producer_epoch
        assert producer.send(0, epoch=2) == (ErrorCode.none, 1)
    assert watermarks(node, topic) == (0, 2)


@pytest.mark.parametrize("ending", [Node.stop, Node.kill], ids=["stop", "kill"])
def test_sequences_are_remembered_over_a_restart(
    start_node: StartNode, ending: Callable[[Node], int]
) -> None:
    """PRD-15, LOG-11: from the snapshot, or from the log itself."""
    node = start_node()
    topic = create_topic(node)
    with Connection(node.port) as connection:
        producer = IdempotentProducer(connection, topic)
        for sequence in range(3):
            producer.send(sequence)
    ending(node)
    node.start()
    with Connection(node.port) as connection:
        producer.connection = connection
        assert producer.send(2) == (ErrorCode.none, 2)
        assert producer.send(3) == (ErrorCode.none, 3)
        assert producer.send(9)[0] == ErrorCode.out_of_order_sequence_number
    assert watermarks(node, topic) == (0, 4)
