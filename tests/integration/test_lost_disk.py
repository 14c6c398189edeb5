"""One of two disks breaks under a node at work; the node runs in this process to break it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from kio.schema.errors import ErrorCode

from headrace.broker.node import Node
from headrace.settings.broker_loading import load
from headrace.storage.checkpoints import CLEAN_SHUTDOWN
from tests.builders.failing_disk import CHANGES, broken_disk
from tests.builders.record_batches import batch
from tests.clients.librdkafka import values
from tests.clients.wire import SECOND, Connection, produce_fields
from tests.processes.nodes import HOST, eventually, free_port

PARTITIONS = 6


class TwoDisks:
    """A node with a loop in its own thread, and a topic with partitions on both of its disks."""

    def __init__(self, root: Path, port: int) -> None:
        self.healthy, self.lost = root / "healthy", root / "lost"
        self.port = port
        settings, _ = load(
            {
                "listeners": f"PLAINTEXT://{HOST}:{port}",
                "log.dirs": f"{self.healthy},{self.lost}",
                "metadata.log.dir": str(self.healthy),
                "log.flush.interval.messages": "1",
            }
        )
        self.loop = asyncio.new_event_loop()
        self.node = Node(settings, self.loop)
        self._thread = Thread(target=self.loop.run_forever)

    def start(self) -> None:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self.node.start(), self.loop).result(30)
        with Connection(self.port) as connection:
            asked = {"name": "t", "num_partitions": PARTITIONS, "replication_factor": 1}
            asked = {"assignments": [], "configs": [], **asked}
            connection.call("create_topics", 7, topics=[asked], timeout=SECOND)
            for partition in range(PARTITIONS):
                written = connection.produce("t", batch(*values("first")), partition=partition)
                assert written.error_code == ErrorCode.none

    def stop(self) -> None:
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self.node.stop(), self.loop).result(30)
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join()
            self.loop.close()

    def on(self, disk: Path) -> list[int]:
        return sorted(int(path.name.removeprefix("t-")) for path in disk.glob("t-*"))

    def write(self, *partitions: int) -> dict[int, ErrorCode]:
        """One request with a batch for each partition; how each one ended."""
        fields = produce_fields("t", b"")
        fields["topic_data"][0]["partition_data"] = [
            {"index": partition, "records": batch(*values("more"))} for partition in partitions
        ]
        with Connection(self.port) as connection:
            (answer,) = connection.call("produce", 9, **fields).responses
        return {one.index: one.error_code for one in answer.partition_responses}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[TwoDisks]:
    started = TwoDisks(tmp_path, free_port())
    started.start()
    yield started
    started.stop()


@pytest.mark.usefixtures("only_headrace")
@pytest.mark.parametrize("changes", [CHANGES, ["fsync"]], ids=["all", "syncs only"])
def test_producers_of_the_other_disk_notice_nothing(node: TwoDisks, changes: list[str]) -> None:
    """LOG-19: though their syncs share the rounds of the disk that breaks."""
    with broken_disk(str(node.lost), changes=changes):
        codes = node.write(*range(PARTITIONS))
        again = node.write(*range(PARTITIONS))
    expected = {
        **dict.fromkeys(node.on(node.lost), ErrorCode.kafka_storage_error),
        **dict.fromkeys(node.on(node.healthy), ErrorCode.none),
    }
    assert codes == again == expected
    assert len(set(expected.values())) == 2


@pytest.mark.usefixtures("only_headrace")
def test_the_metadata_has_no_leader_for_partitions_of_the_lost_disk(node: TwoDisks) -> None:
    """LOG-19: its partitions have no leader any more."""
    with broken_disk(str(node.lost)):
        node.write(*node.on(node.lost))
        eventually(lambda: leaderless(node), expect=lambda found: found == node.on(node.lost))


@pytest.mark.usefixtures("only_headrace")
def test_a_stop_leaves_the_other_disk_clean(node: TwoDisks) -> None:
    """LOG-19: with the marker that spares it a recovery."""
    with broken_disk(str(node.lost)):
        node.write(*node.on(node.lost))
        node.stop()
    assert (node.healthy / CLEAN_SHUTDOWN).exists()
    assert not (node.lost / CLEAN_SHUTDOWN).exists()


@pytest.mark.usefixtures("only_headrace")
def test_a_disk_that_refuses_only_its_checkpoints_is_lost(node: TwoDisks) -> None:
    """LOG-19: it accepts no more records, since it might lose them."""
    maintenance = node.node.maintenance
    with broken_disk(str(node.lost)):
        asyncio.run_coroutine_threadsafe(maintenance.checkpoint(), node.loop).result(30)
    codes = node.write(*range(PARTITIONS))
    refused = [index for index, code in codes.items() if code != ErrorCode.none]
    assert refused == node.on(node.lost)


def leaderless(node: TwoDisks) -> list[int]:
    with Connection(node.port) as connection:
        fields = {
            "topics": [{"topic_id": None, "name": "t"}],
            "allow_auto_topic_creation": False,
            "include_topic_authorized_operations": False,
        }
        (topic,) = connection.call("metadata", 12, **fields).topics
    return sorted(one.partition_index for one in topic.partitions if one.leader_id < 0)
