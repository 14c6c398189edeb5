"""Many producers with one record per request at once, and others in between."""

import struct
from contextlib import ExitStack

from tests.builders.record_batches import batch
from tests.clients.librdkafka import Sent, create_topic, read
from tests.clients.wire import Connection, decode_response, encode_request, produce_fields
from tests.processes.nodes import Node, eventually

PRODUCERS = 40
ROUNDS = 5
NO_TOPICS = {"topics": [], "allow_auto_topic_creation": False}


def frame(name: str, version: int, number: int, **fields: object) -> bytes:
    body = encode_request(name, version, number, **fields)
    return struct.pack(">i", len(body)) + body


def produce_frame(topic: str, value: bytes, number: int, partition: int, acks: int = 1) -> bytes:
    fields = produce_fields(topic, batch(Sent(value)), partition, acks)
    return frame("produce", 9, number, **fields)


def test_pipelined_requests_of_many_clients_are_answered_in_order(node: Node) -> None:
    """PRD-3, PRD-5: each acknowledged offset has the record that it was returned for."""
    topic = create_topic(node, partitions=2)
    acknowledged: dict[tuple[int, int], bytes] = {}
    with ExitStack() as stack:
        opened = [stack.enter_context(Connection(node.port)) for _ in range(PRODUCERS)]
        for turn in range(ROUNDS):
            for client, connection in enumerate(opened):
                connection.socket.sendall(pipelined(topic, client, turn))
            for client, connection in enumerate(opened):
                for number, partition in ((1, 0), (2, 1), (4, 1)):
                    value = value_of(client, turn, number)
                    acknowledged[partition, base_offset(connection, number)] = value
                    if number == 2:
                        assert received_number(connection.receive_frame()) == 3
    assert len(acknowledged) == PRODUCERS * ROUNDS * 3
    stored = {
        (partition, message.offset()): message.value()
        for partition in range(2)
        for message in read(node, topic, partition=partition)
    }
    assert stored == acknowledged


def value_of(client: int, turn: int, number: int) -> bytes:
    return b"%d of client %d in turn %d" % (number, client, turn)


def pipelined(topic: str, client: int, turn: int) -> bytes:
    """Two records, a question of another kind, and one more record, all in one go."""
    return (
        produce_frame(topic, value_of(client, turn, 1), 1, partition=0)
        + produce_frame(topic, value_of(client, turn, 2), 2, partition=1)
        + frame("metadata", 4, 3, **NO_TOPICS)
        + produce_frame(topic, value_of(client, turn, 4), 4, partition=1)
    )


def received_number(answer: bytes) -> int:
    (number,) = struct.unpack_from(">i", answer)
    return int(number)


def base_offset(connection: Connection, number: int) -> int:
    answer = connection.receive_frame()
    assert received_number(answer) == number
    (partition,) = decode_response("produce", 9, answer).responses[0].partition_responses
    assert partition.error_code == 0
    return int(partition.base_offset)


def test_requests_without_acknowledgement_go_between_those_with(node: Node) -> None:
    """PRD-3: acks=0 is never answered, and what follows it on the connection is."""
    topic = create_topic(node)
    with Connection(node.port) as connection:
        for number in range(0, 30, 3):
            connection.socket.sendall(
                produce_frame(topic, b"%d" % number, number, 0, acks=0)
                + produce_frame(topic, b"%d" % (number + 1), number + 1, 0)
                + produce_frame(topic, b"%d" % (number + 2), number + 2, 0, acks=0)
            )
            assert base_offset(connection, number + 1) == number + 1
    values = eventually(
        lambda: [message.value() for message in read(node, topic)],
        expect=lambda found: len(found) == 30,
    )
    assert values == [b"%d" % number for number in range(30)]


def test_a_damaged_batch_among_good_ones_is_refused_alone(node: Node) -> None:
    topic = create_topic(node)
    damaged = bytearray(produce_frame(topic, b"damaged", 2, 0))
    damaged[-10] ^= 1
    with Connection(node.port) as connection:
        connection.produce(topic, batch(Sent(b"first")), acks=1)
        connection.socket.sendall(
            produce_frame(topic, b"good", 1, 0) + damaged + produce_frame(topic, b"better", 3, 0)
        )
        assert base_offset(connection, 1) == 1
        refused = decode_response("produce", 9, connection.receive_frame())
        assert refused.responses[0].partition_responses[0].error_code.name == "corrupt_message"
        assert base_offset(connection, 3) == 2
    assert [message.value() for message in read(node, topic)] == [b"first", b"good", b"better"]


def test_thousands_of_requests_at_once_are_answered_in_order(node: Node) -> None:
    """PRD-3, PRD-5: more than one turn serves, of two clients, with other requests in between."""
    topic = create_topic(node, partitions=2)
    count = 2_000
    with ExitStack() as stack:
        opened = [stack.enter_context(Connection(node.port)) for _ in range(2)]
        for partition, connection in enumerate(opened):
            frames = [
                frame("metadata", 4, number, **NO_TOPICS)
                if number % 50 == 0
                else produce_frame(topic, b"%d" % number, number, partition)
                for number in range(count)
            ]
            connection.socket.sendall(b"".join(frames))
        for connection in opened:
            numbers = [received_number(connection.receive_frame()) for _ in range(count)]
            assert numbers == [*range(count)]
    for partition in range(2):
        stored = [int(message.value() or b"") for message in read(node, topic, partition=partition)]
        assert stored == [number for number in range(count) if number % 50]
