"""kcat, the command line client that people reach for first."""

import json
import shutil
import subprocess

import pytest

from tests.clients.librdkafka import create_topic, numbered, produce, read, watermarks
from tests.processes.nodes import Node

pytestmark = pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")


def kcat(node: Node, *arguments: str, stdin: str = "") -> str:
    finished = subprocess.run(
        ["kcat", "-b", node.address, "-m", "30", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_kcat_lists_brokers_topics_and_partitions(node: Node) -> None:
    """OPS-1, LOG-5"""
    topic = create_topic(node, partitions=3)
    listing = json.loads(kcat(node, "-L", "-J"))
    assert [broker["name"] for broker in listing["brokers"]] == [node.address]
    partitions = {each["topic"]: len(each["partitions"]) for each in listing["topics"]}
    assert partitions[topic] == 3


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_kcat_produces_lines_and_reads_them_back(node: Node, topic: str, codec: str) -> None:
    """OPS-1, LOG-1, LOG-16"""
    lines = "".join(f"line {number}\n" for number in range(1_000))
    kcat(node, "-P", "-t", topic, "-p", "0", "-z", codec, stdin=lines)
    assert kcat(node, "-C", "-t", topic, "-o", "beginning", "-e", "-q") == lines


def test_kcat_writes_keys_headers_and_nulls(node: Node, topic: str) -> None:
    """LOG-1, LOG-2"""
    options = ["-K", ":", "-Z", "-H", "trace=abc", "-H", "empty="]
    kcat(node, "-P", "-t", topic, "-p", "0", *options, stdin="key:value\nkey:\n")
    messages = [(m.key(), m.value(), m.headers()) for m in read(node, topic)]
    headers = [("trace", b"abc"), ("empty", b"")]
    assert messages == [(b"key", b"value", headers), (b"key", None, headers)]


def test_kcat_shows_topic_partition_and_offset_of_a_record(node: Node, topic: str) -> None:
    """LOG-2"""
    produce(node, topic, numbered(3))
    shown = kcat(node, "-C", "-t", topic, "-o", "1", "-e", "-q", "-f", "%t %p %o %s\n")
    assert shown == f"{topic} 0 1 1\n{topic} 0 2 2\n"


@pytest.mark.parametrize(("start", "expected"), [("5", "56789"), ("-2", "89"), ("end", "")])
def test_kcat_starts_at_any_offset(node: Node, topic: str, start: str, expected: str) -> None:
    """LOG-13(b)"""
    produce(node, topic, numbered(10))
    assert kcat(node, "-C", "-t", topic, "-p", "0", "-o", start, "-e", "-q", "-D", "") == expected


def test_kcat_queries_offsets_by_time(node: Node, topic: str) -> None:
    """LOG-13(b)"""
    produce(node, topic, numbered(10))
    assert kcat(node, "-Q", "-t", f"{topic}:0:-2").split() == [topic, "[0]", "offset", "0"]
    assert kcat(node, "-Q", "-t", f"{topic}:0:-1").split() == [topic, "[0]", "offset", "10"]


def test_kcat_produces_idempotently(node: Node, topic: str) -> None:
    """PRD-15"""
    lines = "".join(f"{number}\n" for number in range(10_000))
    kcat(node, "-P", "-t", topic, "-p", "0", "-X", "enable.idempotence=true", stdin=lines)
    assert watermarks(node, topic) == (0, 10_000)
