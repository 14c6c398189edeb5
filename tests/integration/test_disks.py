"""Several data directories, a full disk, a failed one: only what lies there is affected."""

import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.clients import (
    Sent,
    create_topic,
    numbered,
    produce,
    producer,
    read_values,
    try_produce,
    values,
    watermarks,
)
from tests.nodes import Node, eventually
from tests.wire import Connection

StartNode = Callable[..., Node]
MEGABYTE = 1_048_576


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes."""
    path = tmp_path / "small-disk"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={24 * MEGABYTE}", "tmpfs", str(path)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small file system; the limit on file sizes is tested")
    yield path
    subprocess.run(["umount", "--lazy", str(path)], check=True)


def test_partitions_spread_over_the_directories(start_node: StartNode, tmp_path: Path) -> None:
    """LOG-19: each gets its share, and all of them are served, also after a restart."""
    first, second = tmp_path / "first", tmp_path / "second"
    node = start_node(log_dirs=f"{first},{second}")
    topic = create_topic(node, partitions=10)
    for partition in range(10):
        produce(node, topic, values(f"in {partition}"), partition=partition)
    homes = [len(list(path.glob(f"{topic}-*"))) for path in (first, second)]
    assert sum(homes) == 10
    assert min(homes) >= 4
    node.restart()
    for partition in range(10):
        assert read_values(node, topic, partition=partition) == [b"in %d" % partition]


def test_one_lost_directory_takes_only_its_partitions(
    start_node: StartNode, tmp_path: Path
) -> None:
    """LOG-19: they are refused or have no leader; clients of the others notice nothing."""
    first, second = tmp_path / "first", tmp_path / "second"
    node = start_node(log_dirs=f"{first},{second}")
    topic = create_topic(node, partitions=4, segment_bytes=MEGABYTE)
    for partition in range(4):
        produce(node, topic, values("first"), partition=partition)
    lost = {partition for partition in range(4) if (second / f"{topic}-{partition}").exists()}
    second.rename(tmp_path / "pulled out")
    eventually(lambda: all(write_error(node, topic, partition) for partition in lost))
    for partition in set(range(4)) - lost:
        produce(node, topic, numbered(3_000, size=1_000), partition=partition)
        assert watermarks(node, topic, partition) == (0, 3_001)
    assert all(write_error(node, topic, partition) for partition in lost)


def test_a_node_starts_without_a_directory_that_failed(
    start_node: StartNode, tmp_path: Path
) -> None:
    """LOG-19: what lies in the others is served."""
    first, second = tmp_path / "first", tmp_path / "second"
    node = start_node(log_dirs=f"{first},{second}")
    topic = create_topic(node, partitions=4)
    for partition in range(4):
        produce(node, topic, values("v"), partition=partition)
    node.stop()
    lost = [partition for partition in range(4) if (second / f"{topic}-{partition}").exists()]
    shutil.rmtree(second)
    second.write_text("this is a file, not a directory")
    node.start()
    for partition in set(range(4)) - set(lost):
        assert read_values(node, topic, partition=partition) == [b"v"]
    assert lost
    assert write_error(node, topic, lost[0]) is not None


@pytest.mark.usefixtures("only_headrace")
def test_a_full_disk_refuses_writes_serves_reads_and_recovers(
    start_node: StartNode, small_disk: Path
) -> None:
    """LOG-19, LOG-11: with no torn data when space is back."""
    node = start_node(log_dirs=small_disk / "data")
    topic = create_topic(node, segment_bytes=MEGABYTE)
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(12 * MEGABYTE))
    accepted = fill(node, topic)
    assert read_values(node, topic) == accepted
    ballast.unlink()
    produce(node, topic, values("space is back"))
    stored = read_values(node, topic)
    assert stored[: len(accepted)] == accepted
    assert stored[-1] == b"space is back"
    node.kill()
    node.start()
    assert read_values(node, topic) == stored


@pytest.mark.usefixtures("only_headrace")
def test_a_file_that_may_not_grow_refuses_writes_and_recovers(start_node: StartNode) -> None:
    """LOG-19, LOG-11: the same without a file system of its own; the limit is on file sizes."""
    node = start_node()
    topic = create_topic(node)
    _soft, hard = resource.prlimit(node.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(node.pid, resource.RLIMIT_FSIZE, (MEGABYTE, hard))
    accepted = fill(node, topic)
    assert read_values(node, topic) == accepted
    resource.prlimit(node.pid, resource.RLIMIT_FSIZE, (hard, hard))
    produce(node, topic, values("space is back"))
    stored = read_values(node, topic)
    assert stored[: len(accepted)] == accepted
    assert stored[-1] == b"space is back"
    node.kill()
    node.start()
    assert read_values(node, topic) == stored


def test_directories_and_their_sizes_are_described(start_node: StartNode, tmp_path: Path) -> None:
    """LOG-12, LOG-19: what lies where, and how much."""
    node = start_node(log_dirs=f"{tmp_path / 'first'},{tmp_path / 'second'}")
    topic = create_topic(node, partitions=2)
    produce(node, topic, numbered(1_000, size=1_000), compression_type="none")
    sizes = described_sizes(node, topic)
    stored = sum(path.stat().st_size for path in tmp_path.glob(f"*/{topic}-0/*.log"))
    assert sizes[0] == stored
    assert sizes[1] == 0


def fill(node: Node, topic: str) -> list[bytes | None]:
    """Write until the broker refuses; what it accepted."""
    client = producer(node, retries=0, enable_idempotence=False, compression_type="none")
    accepted: list[bytes | None] = []
    for number in range(100_000):
        record = Sent((b"%d" % number).ljust(20_000, b"."))
        ((error, message),) = try_produce(client, topic, [record])
        if error is not None:
            return accepted
        accepted.append(message.value())
    raise AssertionError("the disk is not full yet")


def write_error(node: Node, topic: str, partition: int) -> int | None:
    """What a small write is answered with, without retries."""
    client = producer(node, retries=0, enable_idempotence=False, message_timeout_ms=5_000)
    record = Sent(b"x" * 300_000)
    outcomes = try_produce(client, topic, [record] * 5, partition=partition)
    return next((int(error.code()) for error, _message in outcomes if error is not None), None)


def described_sizes(node: Node, topic: str) -> dict[int, int]:
    with Connection(node.port) as connection:
        response = connection.call("describe_log_dirs", 4, topics=None)
    return {
        partition.partition_index: partition.partition_size
        for result in response.results
        for described in result.topics
        for partition in described.partitions
        if described.name == topic
    }
