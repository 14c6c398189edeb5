"""Every API with meaningless content: answered or rejected, and the node continues.

A corpus from fixed seeds: well-formed requests of every version with random content, the same
with bytes changed, and the same cut short. `HEADRACE_FUZZ_SEEDS=100` searches longer.
"""

import os
import random
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from headrace.protocol.api_keys import ApiKey
from headrace.protocol.framing import encode_request
from tests.builders.messages import REQUESTS, every_version, sample
from tests.builders.record_batches import batch
from tests.clients.librdkafka import create_topic, numbered, produce, read_values, watermarks
from tests.clients.wire import Connection, produce_fields
from tests.clients.wire import encode_request as encode_produce
from tests.processes.nodes import HOST, Node

StartNode = Callable[..., Node]
SEEDS = int(os.environ.get("HEADRACE_FUZZ_SEEDS", "3"))
# A request to leave the cluster would be carried out.
ORDERS = {ApiKey.UNREGISTER_BROKER}


@pytest.mark.usefixtures("only_headrace")
@pytest.mark.parametrize("seed", range(SEEDS))
def test_invalid_requests_leave_the_node_unchanged(start_node: StartNode, seed: int) -> None:
    """OPS-1, LOG-10: no traceback in the log, old records as they were, new ones welcome."""
    node = start_node(auto_create_topics_enable="false")
    topic, other = create_topic(node), create_topic(node)
    produce(node, topic, numbered(100))
    for frame in (*corpus(seed), *odd_batches(seed, other)):
        deliver(node, frame)
    assert stable_end(node, other) == watermarks(node, other)[1]
    assert node.is_running
    assert "Traceback" not in node.log
    produce(node, topic, numbered(10))
    before = read_values(node, topic)
    assert before[:100] == [record.value for record in numbered(100)]
    node.restart()
    assert read_values(node, topic) == before


def corpus(seed: int) -> Iterator[bytes]:
    dice = random.Random(seed)
    for message, version in every_version(REQUESTS):
        if message.API_KEY in ORDERS:
            continue
        frame = encode_request(sample(message, version, seed), version, 1, "fuzz")
        yield frame
        yield frame[: dice.randrange(4, len(frame))]
        changed = bytearray(frame)
        for _ in range(dice.randint(1, 5)):
            changed[dice.randrange(8, len(frame))] = dice.randrange(256)
        yield bytes(changed)


def odd_batches(seed: int, topic: str) -> Iterator[bytes]:
    """Whole batches with claims that contradict each other: flags, producers, sequences."""
    dice = random.Random(seed)
    for _ in range(200):
        records = batch(
            *numbered(dice.randint(1, 3)),
            codec=dice.choice(["none", "gzip", "lz4"]),
            producer_id=dice.choice([-1, 0, 7, 2**40]),
            producer_epoch=dice.choice([-1, 0, 3]),
            base_sequence=dice.choice([-1, 0, 9]),
            attributes=dice.choice([0, 1, 4, 5, 8, 16, 32, 48, 64, 128]),
        )
        fields = produce_fields(topic, records, acks=dice.choice([-1, 0, 1, 2]))
        fields["transactional_id"] = dice.choice([None, "", "somebody"])
        body = encode_produce("produce", dice.choice([3, 7, 9, 11, 12]), 1, **fields)
        yield struct.pack(">i", len(body)) + body


def stable_end(node: Node, topic: str) -> int:
    """Up to where readers of what is committed get."""
    topics = [{"name": topic, "partitions": [{"partition_index": 0, "timestamp": -1}]}]
    with Connection(node.port) as connection:
        answer = connection.call("list_offsets", 7, replica_id=-1, isolation_level=1, topics=topics)
    return int(answer.topics[0].partitions[0].offset)


def deliver(node: Node, frame: bytes) -> None:
    """Send on a connection of its own, and listen for a moment: some requests wait long."""
    with socket.create_connection((HOST, node.port)) as connection, suppress(OSError):
        connection.sendall(frame)
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(0.02)
        while connection.recv(65_536):
            pass
