"""Many requests on one connection: clients that leave before they are served, and the others."""

import select
import struct
from collections.abc import Callable
from socket import SHUT_WR
from typing import Any

import pytest

from tests.builders.record_batches import batch
from tests.clients.librdkafka import Sent, create_topic, numbered, read_values
from tests.clients.wire import Connection, encode_request, fetch_fields, produce_fields
from tests.processes.nodes import Node, eventually

VALUES = [b"first", b"second", b"third"]
BROKER = {
    "resources": [{"resource_type": 4, "resource_name": "1", "configuration_keys": None}],
    "include_synonyms": True,
    "include_documentation": True,
}


def send_behind_a_long_poll(connection: Connection, topic: str, *, acks: int) -> None:
    """A fetch that waits for more than there is, and records behind it, in one go."""
    fields = fetch_fields([(topic, 0, 0)], max_wait_ms=1_000, min_bytes=10**6)
    frames = [framed("fetch", 12, **fields)]
    frames += [
        framed("produce", 9, **produce_fields(topic, batch(Sent(value)), acks=acks))
        for value in VALUES
    ]
    connection.socket.sendall(b"".join(frames))


def framed(name: str, version: int, **fields: Any) -> bytes:
    body = encode_request(name, version, **fields)
    return struct.pack(">i", len(body)) + body


def half_close(connection: Connection) -> None:
    connection.socket.shutdown(SHUT_WR)


def close(connection: Connection) -> None:
    connection.socket.close()


@pytest.mark.parametrize("leave", [close, half_close])
def test_records_of_a_client_that_left_are_stored(
    node: Node, topic: str, leave: Callable[[Connection], None]
) -> None:
    """PRD-3: acks=0 means that no client waits for an answer, not that records may be dropped."""
    with Connection(node.port) as leaving:
        send_behind_a_long_poll(leaving, topic, acks=0)
        leave(leaving)
        stored = eventually(lambda: read_values(node, topic), expect=lambda found: len(found) > 2)
        assert stored == VALUES


def test_a_half_closed_client_gets_its_answers(node: Node, topic: str) -> None:
    """PRD-3: it has closed its sending side, and still receives."""
    with Connection(node.port) as half:
        send_behind_a_long_poll(half, topic, acks=1)
        half_close(half)
        assert half.receive("fetch", 12).error_code == 0
        answers = [half.receive("produce", 9).responses[0] for _ in VALUES]
        assert half.is_closed_by_peer()
    assert [answer.partition_responses[0].base_offset for answer in answers] == [0, 1, 2]
    assert read_values(node, topic) == VALUES


def test_large_batches_that_a_client_leaves_behind_are_stored(node: Node) -> None:
    """PRD-3: recompression takes a while, in which the client closes."""
    topic = create_topic(node, compression_type="gzip")
    records = batch(*numbered(1_200))
    frame = framed("produce", 9, **produce_fields(topic, records, acks=0))
    with Connection(node.port) as leaving:
        leaving.socket.sendall(frame * 6)
    eventually(lambda: len(read_values(node, topic)), expect=lambda count: count == 7_200)


def test_a_client_with_hundreds_of_requests_does_not_stop_the_others(node: Node) -> None:
    """OPS-1: they come to their turn long before it has all its answers."""
    with Connection(node.port) as greedy, Connection(node.port) as modest:
        modest.call("api_versions", 0)
        greedy.socket.sendall(framed("describe_configs", 4, **BROKER) * 300)
        greedy.receive_frame()
        modest.send("api_versions", 0)
        answered_before = 1
        while not select.select([modest.socket], [], [], 0)[0]:
            greedy.receive_frame()
            answered_before += 1
        assert modest.receive("api_versions", 0).api_keys
        assert answered_before < 150
        for _ in range(300 - answered_before):
            greedy.receive_frame()
