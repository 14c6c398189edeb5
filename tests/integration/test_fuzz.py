"""Every API with content that makes no sense: answered or refused, and the node goes on.

A corpus from fixed seeds: well-formed requests of every version with random content, the same
with bytes changed, and the same cut short. `HEADRACE_FUZZ_SEEDS=100` searches longer.
"""

import os
import random
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from headrace.protocol.api_keys import ApiKey
from headrace.protocol.framing import encode_request
from tests.clients import create_topic, numbered, produce, read_values
from tests.messages import REQUESTS, every_version, sample
from tests.nodes import HOST, Node

StartNode = Callable[..., Node]
SEEDS = int(os.environ.get("HEADRACE_FUZZ_SEEDS", "3"))
# An order to leave the cluster is obeyed, so it is no noise.
ORDERS = {ApiKey.UNREGISTER_BROKER}


@pytest.mark.usefixtures("only_headrace")
@pytest.mark.parametrize("seed", range(SEEDS))
def test_nonsense_leaves_the_node_as_it_was(start_node: StartNode, seed: int) -> None:
    """OPS-1, LOG-10: no traceback in the log, old records as they were, new ones welcome."""
    node = start_node(auto_create_topics_enable="false")
    topic = create_topic(node)
    produce(node, topic, numbered(100))
    for frame in corpus(seed):
        deliver(node, frame)
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


def deliver(node: Node, frame: bytes) -> None:
    """Send on a connection of its own, and listen for a moment: some requests wait long."""
    with socket.create_connection((HOST, node.port)) as connection, suppress(OSError):
        connection.sendall(frame)
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(0.02)
        while connection.recv(65_536):
            pass
