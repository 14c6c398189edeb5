"""Kafka's own command line tools and the Java clients in them."""

import json
import re
from functools import partial
from pathlib import Path

import pytest

from tests.clients.librdkafka import (
    AN_HOUR_AGO,
    Sent,
    create_topic,
    numbered,
    produce,
    read,
    read_values,
    topic_configs,
    watermarks,
)
from tests.processes.kafka import KafkaRelease
from tests.processes.nodes import Node, eventually

MURMUR2_OF_FOOBAR = -790332482


@pytest.fixture
def tool(kafka_release: KafkaRelease, node: Node) -> partial[str]:
    """Run a tool against the node: `tool("kafka-topics", "--list")`."""

    def run(script: str, *arguments: str, stdin: str = "") -> str:
        options = ("--bootstrap-server", node.address, *arguments)
        return kafka_release.run(script, *options, stdin=stdin)

    return partial(run)


def test_kafka_topics(tool: partial[str], node: Node) -> None:
    """LOG-5, LOG-7, OPS-1: create, list, describe, alter, delete."""
    topic = "made-by-kafka-topics"
    configs = ["--config", "retention.ms=86400000", "--config", "cleanup.policy=compact,delete"]
    tool("kafka-topics", "--create", "--topic", topic, "--partitions", "3", *configs)
    assert topic in tool("kafka-topics", "--list").split()
    described = tool("kafka-topics", "--describe", "--topic", topic)
    assert "PartitionCount: 3" in described
    assert "retention.ms=86400000" in described
    assert described.count("Leader: ") == 3
    tool("kafka-topics", "--alter", "--topic", topic, "--partitions", "5")
    assert "PartitionCount: 5" in tool("kafka-topics", "--describe", "--topic", topic)
    tool("kafka-topics", "--delete", "--topic", topic)
    eventually(lambda: topic not in tool("kafka-topics", "--list").split())


def test_kafka_configs(tool: partial[str], node: Node, topic: str) -> None:
    """RET-1: of a topic and of the broker, with where each value comes from."""
    entity = ["--entity-type", "topics", "--entity-name", topic]
    tool("kafka-configs", "--alter", *entity, "--add-config", "retention.ms=1000,segment.ms=2000")
    described = tool("kafka-configs", "--describe", *entity)
    assert "retention.ms=1000" in described
    assert "DYNAMIC_TOPIC_CONFIG:retention.ms=1000" in described
    tool("kafka-configs", "--alter", *entity, "--delete-config", "retention.ms")
    assert topic_configs(node, topic)["retention.ms"].value == "604800000"
    assert topic_configs(node, topic)["segment.ms"].value == "2000"
    broker = ["--entity-type", "brokers", "--entity-name", "1", "--all"]
    assert "log.retention.hours=168" in tool("kafka-configs", "--describe", *broker)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_console_producer_and_consumer(tool: partial[str], topic: str, codec: str) -> None:
    """LOG-1, LOG-2, LOG-16, PRD-10, PRD-13, PRD-15: the Java producer is idempotent by default."""
    lines = "".join(f"key-{n}\tvalue {n}\n" for n in range(500))
    options = ["--topic", topic, "--reader-property", "parse.key=true"]
    tool("kafka-console-producer", *options, "--compression-codec", codec, stdin=lines)
    shown = tool(
        "kafka-console-consumer",
        *("--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", "500"),
        *("--formatter-property", "print.key=true", "--formatter-property", "print.offset=true"),
    )
    expected = [f"Offset:{n}\tkey-{n}\tvalue {n}" for n in range(500)]
    assert shown.splitlines() == expected


def test_console_consumer_from_an_offset(tool: partial[str], node: Node, topic: str) -> None:
    """LOG-13(b)"""
    produce(node, topic, numbered(10))
    place = ["--topic", topic, "--partition", "0", "--offset", "7"]
    shown = tool("kafka-console-consumer", *place, "--max-messages", "3")
    assert shown.split() == ["7", "8", "9"]


def test_the_java_producer_and_librdkafka_agree_on_partitions(
    tool: partial[str], node: Node
) -> None:
    """PRD-3"""
    topic = create_topic(node, partitions=7)
    options = ["--topic", topic, "--reader-property", "parse.key=true"]
    tool("kafka-console-producer", *options, stdin="foobar\tv\n")
    expected = (MURMUR2_OF_FOOBAR & 0x7FFF_FFFF) % 7
    assert read_values(node, topic, partition=expected) == [b"v"]


def test_kafka_get_offsets(tool: partial[str], node: Node) -> None:
    """LOG-8, LOG-13(b): latest, earliest, newest."""
    topic = create_topic(node, partitions=2)
    records = [Sent(b"v", timestamp=AN_HOUR_AGO + number) for number in range(5)]
    produce(node, topic, records, partition=1)
    for place, offset in (("latest", 5), ("earliest", 0), ("max-timestamp", 4)):
        shown = tool("kafka-get-offsets", "--topic", topic, "--time", place)
        assert f"{topic}:1:{offset}" in shown.split()


def test_kafka_delete_records(tool: partial[str], node: Node, topic: str, tmp_path: Path) -> None:
    """LOG-13: the start of the log moves."""
    produce(node, topic, numbered(10))
    wanted = {"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 6}]}
    (tmp_path / "wanted.json").write_text(json.dumps(wanted))
    shown = tool("kafka-delete-records", "--offset-json-file", str(tmp_path / "wanted.json"))
    assert "low_watermark: 6" in shown
    assert watermarks(node, topic) == (6, 10)


def test_kafka_log_dirs(tool: partial[str], node: Node, topic: str) -> None:
    """LOG-12: the size of a partition is the size of its segments."""
    produce(node, topic, numbered(1_000, size=1_000), compression_type="none")
    shown = tool("kafka-log-dirs", "--describe", "--topic-list", topic)
    (broker,) = json.loads(shown.splitlines()[-1])["brokers"]
    (partition,) = broker["logDirs"][0]["partitions"]
    stored = sum(path.stat().st_size for path in (node.data / f"{topic}-0").glob("*.log"))
    assert partition["size"] == stored


def test_kafka_producer_perf_test(kafka_release: KafkaRelease, node: Node, topic: str) -> None:
    """OPS-1, PRD-8, PUL-19: the Java producer at full speed, every record there."""
    shown = kafka_release.run(
        "kafka-producer-perf-test",
        *("--topic", topic, "--num-records", "50000", "--record-size", "100"),
        *("--throughput", "-1", "--command-property", f"bootstrap.servers={node.address}"),
    )
    assert "50000 records sent" in shown
    assert watermarks(node, topic) == (0, 50_000)


def test_kafka_broker_api_versions(tool: partial[str]) -> None:
    """OPS-1: Java's client can use everything that it needs."""
    shown = tool("kafka-broker-api-versions")
    usable = dict(re.findall(r"(\w+)\(\d+\): .*\[usable: (\d+)\]", shown))
    assert {"Produce", "Fetch", "ListOffsets", "Metadata", "CreateTopics"} <= usable.keys()


def test_kafka_metadata_quorum(tool: partial[str]) -> None:
    """REP-14: a quorum of one reports its leader."""
    assert re.search(r"LeaderId:\s+1\b", tool("kafka-metadata-quorum", "describe", "--status"))


def test_kafka_features(tool: partial[str]) -> None:
    """OPS-1: the metadata version that was chosen."""
    shown = tool("kafka-features", "describe")
    assert re.search(r"Feature: metadata.version.*FinalizedVersionLevel: 4", shown)


def test_kafka_dump_log(kafka_release: KafkaRelease, node: Node, topic: str) -> None:
    """LOG-2: batch magic, CRC, codec, sizes and every record."""
    produce(node, topic, numbered(10), compression_type="zstd", linger_ms=100)
    segment = node.data / f"{topic}-0" / f"{0:020}.log"
    shown = kafka_release.run("kafka-dump-log", "--print-data-log", "--files", str(segment))
    assert re.search(r"magic: 2 compresscodec: zstd crc: \d+ isvalid: true", shown)
    assert shown.count(" payload: ") == 10
    assert len(read(node, topic)) == 10
