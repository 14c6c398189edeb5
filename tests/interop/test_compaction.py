"""Apache Kafka and Headrace compact the same log; the same must be left, batch for batch."""

import random
import shutil
import time
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import Producer

from headrace.protocol.batches import BatchHeader, Record, headers, records_of
from headrace.storage.checkpoints import CLEANER_OFFSETS, read_offsets
from headrace.storage.recovery import load_log
from headrace.storage.topic_partition import TopicPartition
from tests.builders.compacted_logs import COMPACTED, cleaner, run
from tests.clients.librdkafka import create_topic
from tests.conftest import watch
from tests.processes.kafka import KafkaRelease
from tests.processes.nodes import Kafka, Node, eventually

SEGMENT_BYTES = 1 << 20
KEYS = 2_000
SOON = {"log.initial.task.delay.ms": "500", "log.cleaner.backoff.ms": "500"}


@pytest.fixture
def dice() -> random.Random:
    return random.Random(7)


def test_kafka_and_headrace_leave_the_same_records(
    kafka_release: KafkaRelease,
    tmp_path: Path,
    dice: random.Random,
    request: pytest.FixtureRequest,
) -> None:
    """RET-3 to RET-7 with Kafka as the judge: tombstones, transactions, producers, all codecs."""
    node = Node(Kafka(), tmp_path / "kafka", {**SOON, "log.cleaner.enable": "false"})
    watch(request, node)
    node.start()
    try:
        topic = create_topic(
            node,
            cleanup_policy="compact",
            segment_bytes=SEGMENT_BYTES,
            min_cleanable_dirty_ratio=0,
        )
        fill(node, topic, dice)
        node.stop()
        ours = tmp_path / "ours" / f"{topic}-0"
        shutil.copytree(node.data / f"{topic}-0", ours)
        compact_with_headrace(ours, TopicPartition(topic, 0))
        node.settings["log.cleaner.enable"] = "true"
        compact_with_kafka(node, TopicPartition(topic, 0))
    finally:
        if node.is_running:
            node.kill()
    theirs = node.data / f"{topic}-0"
    assert content(ours) == content(theirs)
    assert len(list(ours.glob("*.log"))) > 2
    assert aborted(ours) == aborted(theirs)
    logs = ",".join(str(path) for path in sorted(ours.glob("*.index")))
    report = kafka_release.run("kafka-dump-log", "--index-sanity-check", "--files", logs)
    assert "passed sanity check" in report


def fill(node: Node, topic: str, dice: random.Random) -> None:
    """A few megabytes of all that compaction treats differently."""
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = client(node, codec, enable_idempotence=True)
        for number in range(3_000):
            producer.produce(topic, some_value(dice), some_key(dice))
            if number % 300 == 0:
                producer.flush()
        producer.flush()
    for number in range(9):
        producer = client(node, "none", transactional_id=f"id {number % 3}")
        producer.init_transactions()
        producer.begin_transaction()
        for _ in range(200):
            producer.produce(topic, some_value(dice), some_key(dice))
        producer.flush()
        if number % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    producer = client(node, "none")
    for _ in range(7_000):
        producer.produce(topic, some_value(dice), some_key(dice))
    producer.flush()


def client(node: Node, codec: str, **settings: object) -> Producer:
    return Producer(
        {
            "bootstrap.servers": node.address,
            "compression.type": codec,
            "linger.ms": 10,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )


def some_key(dice: random.Random) -> bytes:
    return b"key %d" % dice.randrange(KEYS)


def some_value(dice: random.Random) -> bytes | None:
    return None if dice.random() < 0.1 else dice.randbytes(dice.randrange(300))


def compact_with_headrace(directory: Path, partition: TopicPartition) -> None:
    config = msgspec.structs.replace(COMPACTED, segment_bytes=SEGMENT_BYTES)
    log = load_log(partition, str(directory), config, clean=False)
    log.advance_high_watermark(log.log_end_offset)
    assert run(cleaner().run([log], int(time.time() * 1000)))
    log.close()


def compact_with_kafka(node: Node, partition: TopicPartition) -> None:
    node.start()
    path = str(node.data / CLEANER_OFFSETS)
    eventually(lambda: read_offsets(path).get(partition, 0), seconds=60)
    node.stop()


def content(directory: Path) -> list[tuple[str, tuple[int, ...], list[Record]]]:
    """File, header fields and records of each batch of a log."""
    return [
        (path.name, comparable(header), records_of(batches, position))
        for path in sorted(directory.glob("*.log"))
        for batches in [path.read_bytes()]
        for position, header in headers(batches)
    ]


def comparable(header: BatchHeader) -> tuple[int, ...]:
    """All but the size, the checksum and the base time, which the other choices follow."""
    return (
        header.base_offset,
        header.last_offset_delta,
        header.leader_epoch,
        header.attributes,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.count,
    )


def aborted(directory: Path) -> dict[str, bytes]:
    paths = directory.glob("*.txnindex")
    return {path.name: path.read_bytes() for path in paths if path.stat().st_size}
