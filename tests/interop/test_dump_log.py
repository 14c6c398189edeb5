"""kafka-dump-log reads every file that we write, and reports no error."""

import re
from pathlib import Path

import pytest

from tests.builders.segment_files import batch_headers
from tests.clients.librdkafka import (
    AN_HOUR_AGO,
    Sent,
    create_topic,
    delete_topic,
    numbered,
    produce,
    set_topic_config,
)
from tests.processes.kafka import KafkaRelease
from tests.processes.nodes import Headrace, Node, eventually

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with a bit of everything in it, of a node that stopped."""
    soon = {"log.initial.task.delay.ms": "100", "log.cleaner.backoff.ms": "200"}
    node = Node(Headrace(), tmp_path_factory.mktemp("written"), soon)
    node.start()
    try:
        write_everything(node)
    finally:
        node.stop()
    return node.data


def write_everything(node: Node) -> None:
    topic = create_topic(node, name="plain", segment_bytes=1_048_576)
    for codec in CODECS:
        produce(node, topic, numbered(500, size=1_000), compression_type=codec)
    produce(node, topic, numbered(3_000, size=1_000), compression_type="none", batch_size=20_000)
    produce(node, topic, numbered(2_000, size=1_000), enable_idempotence=True)
    stamped = create_topic(node, name="stamped", message_timestamp_type="LogAppendTime")
    produce(node, stamped, numbered(2_000, size=100), batch_num_messages=10)
    compacted = create_topic(
        node,
        name="compacted",
        cleanup_policy="compact",
        segment_ms=60_000,
        min_cleanable_dirty_ratio=0,
    )
    for minute in (0, 2, 4):
        stamp = AN_HOUR_AGO + minute * 60_000
        produce(node, compacted, [Sent(b"v", b"%d" % n, (), stamp) for n in range(500)])
    path = node.data / f"{compacted}-0"
    eventually(lambda: sum(header.record_count for header in batch_headers(path)) == 1_000)
    set_topic_config(node, topic, "retention.ms", "86400000")
    delete_topic(node, create_topic(node, name="short-lived"))


def files(directory: Path, pattern: str) -> list[Path]:
    found = [path for path in directory.glob(pattern) if "__cluster_metadata" not in str(path)]
    assert found, f"no {pattern} was written"
    return sorted(found)


def dump(kafka_release: KafkaRelease, paths: list[Path], *options: str) -> str:
    return kafka_release.run("kafka-dump-log", *options, "--files", ",".join(map(str, paths)))


def test_every_batch_is_valid(kafka_release: KafkaRelease, directory: Path) -> None:
    """LOG-2, LOG-12: checksums, offsets and records, deep inside compressed batches too."""
    paths = files(directory, "*-*/*.log")
    shown = dump(kafka_release, paths, "--deep-iteration", "--print-data-log")
    assert "isvalid: false" not in shown
    assert_no_complaint(shown)
    headers = [header for path in {path.parent for path in paths} for header in batch_headers(path)]
    assert len(re.findall("isvalid: true", shown)) == len(headers)
    assert len(re.findall(r"\| offset: \d+", shown)) == sum(h.record_count for h in headers)


def test_every_offset_index_passes_the_check(kafka_release: KafkaRelease, directory: Path) -> None:
    """LOG-12: sane in itself, and every entry points to the batch with its offset."""
    paths = files(directory, "*-*/*.index")
    sane = dump(kafka_release, paths, "--index-sanity-check")
    passed, empty = sane.count("passed sanity check."), sane.count("is empty.")
    assert passed >= 5
    assert passed + empty == len(paths)
    assert_no_complaint(sane)
    assert_no_complaint(dump(kafka_release, paths))


def test_every_time_index_agrees_with_its_log(kafka_release: KafkaRelease, directory: Path) -> None:
    """LOG-12, LOG-13(b)"""
    paths = files(directory, "*-*/*.timeindex")
    assert_no_complaint(dump(kafka_release, paths, "--index-sanity-check"))
    assert_no_complaint(dump(kafka_release, paths))


def test_every_producer_snapshot_is_read(kafka_release: KafkaRelease, directory: Path) -> None:
    """PRD-15, LOG-12"""
    shown = dump(kafka_release, files(directory, "*-*/*.snapshot"))
    assert re.search(r"producerId: \d+ producerEpoch: 0", shown)


def test_the_metadata_log_is_read(kafka_release: KafkaRelease, directory: Path) -> None:
    """REP-14: every record of it, by Kafka's decoder."""
    logs = sorted((directory / "__cluster_metadata-0").glob("*.log"))
    shown = dump(kafka_release, logs, "--cluster-metadata-decoder")
    assert_no_complaint(shown)
    assert "isvalid: false" not in shown
    kinds = set(re.findall(r'"type":"(\w+)"', shown))
    assert kinds >= {
        "TOPIC_RECORD",
        "PARTITION_RECORD",
        "CONFIG_RECORD",
        "REMOVE_TOPIC_RECORD",
        "REGISTER_BROKER_RECORD",
        "FEATURE_LEVEL_RECORD",
        "PRODUCER_IDS_RECORD",
    }


def test_the_metadata_snapshots_are_read(kafka_release: KafkaRelease, directory: Path) -> None:
    """REP-14"""
    snapshots = sorted((directory / "__cluster_metadata-0").glob("*.checkpoint"))
    bootstrap = directory / "bootstrap.checkpoint"
    shown = dump(kafka_release, [*snapshots, bootstrap], "--cluster-metadata-decoder")
    assert_no_complaint(shown)
    assert "SnapshotHeader" in shown
    assert "FEATURE_LEVEL_RECORD" in shown


def assert_no_complaint(shown: str) -> None:
    """The words with which the tool reports what does not fit together."""
    for word in ("mismatch", "Mismatch", "Non-consecutive", "out of order", "not found", "rror"):
        assert word not in shown, shown[:2_000]
