"""Several data directories, a full disk, a failed one: only its own partitions are affected."""

import os
import random
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from kio.schema.errors import ErrorCode

from tests.builders.record_batches import batch
from tests.clients.librdkafka import (
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
from tests.clients.wire import Connection
from tests.processes.nodes import Node, eventually

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


def test_a_lost_directory_takes_only_its_partitions_offline(
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
    """LOG-19: partitions in the others are served."""
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
def test_a_disk_that_is_not_mounted_is_not_taken_for_a_new_one(
    start_node: StartNode, tmp_path: Path
) -> None:
    """LOG-19: nor is it after a start that did without it; a new one is added when all are there.

    Kafka, which never formats automatically, refuses in all of these cases.
    """
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    node = start_node(log_dirs=f"{first},{second}")
    topic = create_topic(node, partitions=4)
    for partition in range(4):
        produce(node, topic, values("v"), partition=partition)
    node.stop()
    second.rename(tmp_path / "not mounted")
    second.mkdir()
    assert f"{second} is not formatted" in refusal_of(node)
    assert list(second.iterdir()) == []
    node.settings["log.dirs"] = str(first)
    node.start()
    assert node.log.count("partitions offline (") == 1
    node.stop()
    node.settings["log.dirs"] = f"{first},{second}"
    assert f"{second} is not formatted" in refusal_of(node)
    second.rmdir()
    (tmp_path / "not mounted").rename(second)
    node.settings["log.dirs"] = f"{first},{second},{third}"
    node.start()
    assert (third / "meta.properties").exists()
    for partition in range(4):
        assert read_values(node, topic, partition=partition) == [b"v"]


@pytest.mark.usefixtures("only_headrace")
def test_a_lost_disk_is_replaced_when_that_is_asked_for(
    start_node: StartNode, tmp_path: Path
) -> None:
    """LOG-19: once; afterwards the new one belongs to the node."""
    first, second = tmp_path / "first", tmp_path / "second"
    node = start_node(log_dirs=f"{first},{second}")
    node.stop()
    shutil.rmtree(second)
    assert "headrace.format.new.directories=true" in refusal_of(node)
    node.settings["headrace.format.new.directories"] = "true"
    node.start()
    node.stop()
    del node.settings["headrace.format.new.directories"]
    node.start()
    assert (second / "meta.properties").exists()


class Kind(NamedTuple):
    """Options of client and topic that change how a batch gets to the disk."""

    is_idempotent: bool = False
    codec: str = "none"
    configs: Mapping[str, Any] = MappingProxyType({})


BY_BROKER = {"message_timestamp_type": "LogAppendTime"}
KINDS = {
    "plain": Kind(),
    "idempotent": Kind(is_idempotent=True),
    "compacted": Kind(configs={"cleanup_policy": "compact", "min_cleanable_dirty_ratio": 1}),
    "broker's time": Kind(configs=BY_BROKER),
    "broker's time, idempotent": Kind(is_idempotent=True, configs=BY_BROKER),
    "recompressed": Kind(codec="gzip", configs={"compression_type": "lz4"}),
}
any_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())


class Writer:
    """Sends batches of random bytes, one after the other, and records the accepted ones."""

    def __init__(self, connection: Connection, topic: str, kind: Kind) -> None:
        self.connection = connection
        self.topic = topic
        self.kind = kind
        self.accepted: list[bytes | None] = []
        self._producer = connection.new_producer() if kind.is_idempotent else None

    def write(self) -> ErrorCode:
        """One batch; what the broker answers. One that was refused is sent again, as it was."""
        number = len(self.accepted)
        value = b"%d " % number + random.Random(number).randbytes(20_000)
        identity = {}
        if self._producer is not None:
            identity = {
                "producer_id": self._producer.producer_id,
                "producer_epoch": self._producer.producer_epoch,
                "base_sequence": number,
            }
        records = batch(Sent(value, b"%d" % number), codec=self.kind.codec, **identity)
        answer = self.connection.produce(self.topic, records)
        if answer.error_code == ErrorCode.none:
            assert answer.base_offset == number
            self.accepted.append(value)
        return ErrorCode(answer.error_code)

    def fill(self) -> None:
        """Write until the disk is full, which each rejected write reports."""
        while (code := self.write()) == ErrorCode.none:
            assert len(self.accepted) < 10_000, "the disk is not full yet"
        assert {code, self.write(), self.write()} == {ErrorCode.kafka_storage_error}


@pytest.mark.usefixtures("only_headrace")
@any_kind
def test_a_full_disk_refuses_writes_serves_reads_and_recovers(
    start_node: StartNode, small_disk: Path, kind: Kind
) -> None:
    """LOG-19, LOG-11: with no torn data when space is back, and two lines in the log."""
    node = start_node(log_dirs=small_disk / "data")
    topic = create_topic(node, segment_bytes=MEGABYTE, **kind.configs)
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(12 * MEGABYTE))
    with Connection(node.port) as connection:
        writer = Writer(connection, topic, kind)
        writer.fill()
        assert read_values(node, topic) == writer.accepted
        ballast.unlink()
        assert writer.write() == ErrorCode.none
        assert read_values(node, topic) == writer.accepted
        eventually(
            lambda: writer.write() == ErrorCode.none and "log directory has space again" in node.log
        )
    assert node.log.count("log directory full") == 1
    assert node.log.count("log directory has space again") == 1
    node.kill()
    node.start()
    assert read_values(node, topic) == writer.accepted


@pytest.mark.usefixtures("only_headrace")
@any_kind
def test_a_file_that_may_not_grow_refuses_writes_and_recovers(
    start_node: StartNode, kind: Kind
) -> None:
    """LOG-19, LOG-11: the same without a file system of its own; the limit is on file sizes."""
    node = start_node()
    topic = create_topic(node, **kind.configs)
    _soft, hard = resource.prlimit(node.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(node.pid, resource.RLIMIT_FSIZE, (MEGABYTE, hard))
    with Connection(node.port) as connection:
        writer = Writer(connection, topic, kind)
        writer.fill()
        assert read_values(node, topic) == writer.accepted
        resource.prlimit(node.pid, resource.RLIMIT_FSIZE, (hard, hard))
        assert writer.write() == ErrorCode.none
        assert read_values(node, topic) == writer.accepted
    node.kill()
    node.start()
    assert read_values(node, topic) == writer.accepted


@pytest.mark.usefixtures("only_headrace")
def test_partitions_are_created_later_once_the_disk_has_room(
    start_node: StartNode, small_disk: Path, tmp_path: Path
) -> None:
    """LOG-19: also partitions without requests."""
    data = small_disk / "data"
    node = start_node(log_dirs=data, metadata_log_dir=tmp_path / "metadata")
    ballast = small_disk / "ballast"
    fill_up(ballast)
    topic = create_topic(node, partitions=20)
    with Connection(node.port) as connection:
        answer = connection.produce(topic, batch(*values("refused")), partition=3)
        assert answer.error_code == ErrorCode.kafka_storage_error
        assert list(data.glob(f"{topic}-*")) == []
        ballast.unlink()
        eventually(lambda: len(list(data.glob(f"{topic}-*/*.log"))) == 20)
        answer = connection.produce(topic, batch(*values("accepted")), partition=3)
        assert answer.error_code == ErrorCode.none
    assert node.log.count("log directory full") == 1
    node.restart()
    assert read_values(node, topic, partition=3) == [b"accepted"]


def test_directories_and_their_sizes_are_described(start_node: StartNode, tmp_path: Path) -> None:
    """LOG-12, LOG-19: the partitions of each, and their sizes."""
    node = start_node(log_dirs=f"{tmp_path / 'first'},{tmp_path / 'second'}")
    topic = create_topic(node, partitions=2)
    produce(node, topic, numbered(1_000, size=1_000), compression_type="none")
    sizes = described_sizes(node, topic)
    stored = sum(path.stat().st_size for path in tmp_path.glob(f"*/{topic}-0/*.log"))
    assert sizes[0] == stored
    assert sizes[1] == 0


def fill_up(path: Path) -> None:
    """Let a file take all the room that is left."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass


def write_error(node: Node, topic: str, partition: int) -> int | None:
    """The error code of a small write without retries."""
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


def refusal_of(node: Node) -> str:
    """The log of a node that does not start."""
    seen = len(node.log)
    node.launch()
    assert node.process is not None
    assert node.process.wait(timeout=60) == 1
    return node.log[seen:]
