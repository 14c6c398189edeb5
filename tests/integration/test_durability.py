"""Acknowledged records survive a stop and a crash: once each, and in order."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress

import pytest
from confluent_kafka import KafkaError, Message

from tests.clients.librdkafka import (
    SECONDS_MAX,
    Sent,
    admin,
    create_topic,
    numbered,
    produce,
    producer,
    read,
    read_values,
    topic_configs,
    watermarks,
)
from tests.processes.nodes import Flavour, Node, eventually

StartNode = Callable[..., Node]
# A crash that must have happened often to be believed: `HEADRACE_KILLS=100` for the long run.
KILLS = int(os.environ.get("HEADRACE_KILLS", "8"))


@pytest.mark.parametrize("ending", [Node.stop, Node.kill], ids=["stop", "kill"])
def test_records_and_topics_are_there_after(
    start_node: StartNode, ending: Callable[[Node], int]
) -> None:
    """LOG-11: topics, configs, records, offsets and timestamps; new records go on."""
    node = start_node()
    topic = create_topic(node, partitions=3, retention_ms=123_456_789, segment_bytes=1_048_576)
    headers = (("h", b"1"),)
    sent = [Sent(b"%d" % n * 200, b"key", headers) for n in range(10_000)]
    produce(node, topic, sent, partition=2, compression_type="none")
    before = [everything(message) for message in read(node, topic, partition=2)]
    ending(node)
    node.start()
    assert [everything(message) for message in read(node, topic, partition=2)] == before
    assert topic_configs(node, topic)["retention.ms"].value == "123456789"
    assert produce(node, topic, numbered(1), partition=2)[0].offset() == 10_000


def test_a_stop_is_clean(start_node: StartNode) -> None:
    """LOG-11: it writes the marker of a clean shutdown and exits with 0."""
    node = start_node()
    topic = create_topic(node)
    produce(node, topic, numbered(10))
    code = node.stop()
    assert code in (0, 143)
    assert (node.data / ".kafka_cleanshutdown").exists()


def test_the_cluster_keeps_its_identity(start_node: StartNode) -> None:
    """LOG-11: clients that come back meet the same cluster."""
    node = start_node()
    before = admin(node).list_topics(timeout=SECONDS_MAX).cluster_id
    node.kill()
    node.start()
    assert admin(node).list_topics(timeout=SECONDS_MAX).cluster_id == before


def test_a_torn_tail_is_cut_and_never_served(start_node: StartNode) -> None:
    """LOG-11, LOG-4: half a batch at the end of the file is what a power cut leaves."""
    node = start_node()
    topic = create_topic(node)
    produce(node, topic, numbered(100))
    node.kill()
    log = node.data / f"{topic}-0" / f"{0:020}.log"
    whole = log.read_bytes()
    log.write_bytes(whole + whole[: len(whole) // 2])
    node.start()
    assert read_values(node, topic) == [record.value for record in numbered(100)]
    assert produce(node, topic, numbered(1))[0].offset() == 100


def test_a_damaged_batch_at_the_tail_is_cut(start_node: StartNode) -> None:
    """LOG-4, LOG-11: what fails its checksum is not served as data."""
    node = start_node()
    topic = create_topic(node)
    for _ in range(3):
        produce(node, topic, [Sent(b"x" * 1_000)], compression_type="none")
    node.kill()
    log = node.data / f"{topic}-0" / f"{0:020}.log"
    damaged = bytearray(log.read_bytes())
    damaged[-100] ^= 0xFF
    log.write_bytes(damaged)
    node.start()
    assert watermarks(node, topic) == (0, 2)
    assert read_values(node, topic) == [b"x" * 1_000] * 2


def test_lost_indexes_are_made_again(start_node: StartNode) -> None:
    """LOG-11, LOG-12: they are rebuilt from the log."""
    node = start_node()
    topic = create_topic(node, segment_bytes=1_048_576)
    produce(node, topic, numbered(5_000, size=1_000), compression_type="none", batch_size=20_000)
    node.kill()
    for path in (node.data / f"{topic}-0").iterdir():
        if path.suffix in (".index", ".timeindex"):
            path.unlink()
    node.start()
    for offset in (0, 1_234, 4_999):
        assert read(node, topic, offset=offset)[0].offset() == offset


@pytest.mark.timeout(120 + 10 * KILLS)
def test_acknowledged_records_survive_kills_under_load(
    start_node: StartNode, flavour: Flavour
) -> None:
    """LOG-11, PRD-14, PRD-15: kill -9 again and again; every record is there, in order, once."""
    node = start_node()
    topic = create_topic(node)
    load = Load(node, topic)
    for _ in range(KILLS if flavour.name == "headrace" else 2):
        load.wait_for(1_000)
        node.kill()
        node.start()
    sent = load.finish()
    assert load.errors == []
    stored = read_values(node, topic)
    assert stored == [b"%d" % number for number in range(sent)]


class Load:
    """A producer in a thread of its own that never pauses for the broker's troubles."""

    def __init__(self, node: Node, topic: str) -> None:
        self.topic = topic
        self.client = producer(
            node,
            enable_idempotence=True,
            message_timeout_ms=300_000,
            batch_num_messages=500,
            queue_buffering_max_messages=20_000,
            retry_backoff_max_ms=100,
        )
        self.sent = 0
        self.acknowledged: list[int] = []
        self.errors: list[KafkaError] = []
        self.is_stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        while not self.is_stopping.is_set():
            with suppress(BufferError):
                self.client.produce(
                    self.topic, b"%d" % self.sent, partition=0, on_delivery=self.delivered
                )
                self.sent += 1
            self.client.poll(0 if self.sent % 1_000 else 0.01)

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acknowledged.append(int(message.offset() or 0))
        else:
            self.errors.append(error)

    def wait_for(self, more: int) -> None:
        """Let it run until that many more records are acknowledged."""
        enough = len(self.acknowledged) + more
        eventually(lambda: len(self.acknowledged) >= enough, seconds=60)

    def finish(self) -> int:
        """Stop sending, wait for all acknowledgements, and return the number of records sent."""
        self.is_stopping.set()
        self.thread.join(SECONDS_MAX)
        assert self.client.flush(60) == 0
        assert sorted(self.acknowledged) == list(range(self.sent))
        return self.sent


def everything(message: Message) -> tuple[object, ...]:
    names = ("offset", "key", "value", "timestamp", "headers")
    return tuple(getattr(message, name)() for name in names)
