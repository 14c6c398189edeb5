"""What the metadata says is carried out on this node's logs."""

import errno
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.broker.configs.topic_configs import TopicConfigs
from headrace.broker.delayed import Delayed
from headrace.broker.hosting import Assignments, Hosting
from headrace.broker.partitions import Partitions
from headrace.broker.produce_shapes import ProduceShape, ProduceShapes
from headrace.broker.registered_schemas import RegisteredSchemas
from headrace.errors import KafkaStorageError
from headrace.metadata.delta import ImageDelta
from headrace.metadata.image import UNASSIGNED_DIRECTORY, ResourceType
from headrace.protocol.message import Message
from headrace.protocol.schemas.records.metadata import (
    ConfigRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from headrace.protocol.uuids import Uuid, to_text
from headrace.runtime.metrics import Metrics
from headrace.settings.broker import BrokerSettings
from headrace.storage.directories import LogDirectories
from tests.faults import failing
from tests.images import directory_id, image_with, partition, topic_id

NODE = 1
FIRST, SECOND = directory_id(NODE), directory_id(2)


class Noted:
    """Stands in for the wake-ups of a loop: notes which partitions changed."""

    def __init__(self) -> None:
        self.changes: list[object] = []

    def changed(self, thing: object) -> None:
        self.changes.append(thing)


class Node:
    """Hosting with real log directories; what would come soon comes when `settle` is called."""

    def __init__(self, *paths: Path) -> None:
        ids = dict(zip(map(str, paths), (FIRST, SECOND), strict=False))
        self.partitions = Partitions()
        self.directories = LogDirectories.open([str(path) for path in paths], ids)
        self.metrics = Metrics()
        self.shapes = ProduceShapes()
        self.wake_ups = Noted()
        self.assigned: list[Assignments] = []
        self._soon: list[Callable[[], None]] = []
        self.hosting = Hosting(
            NODE,
            self.partitions,
            self.directories,
            TopicConfigs(BrokerSettings(), NODE, RegisteredSchemas(self.partitions)),
            self.metrics,
            self.wake_ups,  # type: ignore[arg-type]
            forget_shapes=self.shapes.forget,
            soon=self._soon.append,
            report=self.assigned.append,
        )
        self.image = image_with()
        self.hosting.take_up(self.image)

    def publish(self, *records: Message) -> None:
        delta = ImageDelta(self.image)
        for record in records:
            delta.replay(record)
        self.image = delta.image(self.image.offset + 1, 1, 0)
        self.hosting.apply(delta, self.image)

    def create(self, name: str, partitions: int, directory: Uuid = FIRST) -> None:
        records = [partition(name, n) for n in range(partitions)]
        for record in records:
            record.directories = [directory]
        self.publish(TopicRecord(name, topic_id(name)), *records)

    def settle(self) -> None:
        while self._soon:
            self._soon.pop(0)()


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path / "data")


def directories_of(node: Node) -> set[str]:
    return {Path(log.directory).name for log in node.directories}


def test_the_files_of_a_new_topic_are_made_in_passing(node: Node) -> None:
    node.create("orders", 20)
    assert directories_of(node) == set()
    node.settle()
    assert directories_of(node) == {f"orders-{n}" for n in range(20)}


def test_a_partition_that_is_wanted_gets_its_files_at_once(node: Node) -> None:
    node.create("orders", 20)
    assert node.partitions.find("orders", 13).online_log().log_end_offset == 0
    assert directories_of(node) == {"orders-13"}
    node.settle()
    assert len(directories_of(node)) == 20


def test_a_deleted_topic_loses_its_logs_and_its_waiters_are_woken(node: Node) -> None:
    node.create("orders", 2)
    node.settle()
    waiting = node.partitions.find("orders", 1)
    waiting.waiters[Delayed(lambda *, is_last: True, lambda: None)] = None
    node.publish(RemoveTopicRecord(topic_id("orders")))
    assert directories_of(node) == set()
    assert node.wake_ups.changes == [waiting]
    assert "orders" not in node.metrics.topics


def test_a_topic_deleted_before_its_files_were_made_never_gets_any(node: Node) -> None:
    node.create("orders", 20)
    node.publish(RemoveTopicRecord(topic_id("orders")))
    node.settle()
    assert directories_of(node) == set()


def test_a_changed_config_reaches_every_log_of_its_topic(node: Node) -> None:
    node.create("orders", 2)
    node.create("users", 1)
    node.settle()
    node.publish(ConfigRecord(ResourceType.TOPIC, "orders", "retention.ms", "1000"))
    kept = {str(log.topic_partition): log.config.retention_ms for log in node.directories}
    assert kept["orders-0"] == kept["orders-1"] == 1000
    assert kept["users-0"] != 1000


def test_a_default_changed_for_the_broker_reaches_topics_without_a_config(node: Node) -> None:
    node.create("orders", 1)
    node.create("users", 1)
    node.publish(ConfigRecord(ResourceType.TOPIC, "orders", "retention.ms", "1000"))
    node.settle()
    node.publish(ConfigRecord(ResourceType.BROKER, "", "log.retention.ms", "2000"))
    kept = {str(log.topic_partition): log.config.retention_ms for log in node.directories}
    assert kept == {"orders-0": 1000, "users-0": 2000}


def test_any_change_forgets_the_shapes_of_requests(node: Node) -> None:
    node.create("orders", 1)
    shape = ProduceShape(node.partitions.find("orders", 0), b"orders", 1, 7)
    node.shapes.known[7, b"prefix"] = shape
    node.create("others", 1)
    assert not node.shapes.known
    assert shape.partition is None


def test_what_survived_a_crash_is_committed(node: Node, tmp_path: Path) -> None:
    node.create("orders", 1)
    log = node.partitions.find("orders", 0).online_log()
    log.log_end_offset = 5
    node.hosting._attach(node.partitions.find("orders", 0))
    assert log.high_watermark == 5


def test_the_metadata_is_told_which_directory_was_chosen(tmp_path: Path) -> None:
    node = Node(tmp_path / "first", tmp_path / "second")
    node.create("orders", 4, UNASSIGNED_DIRECTORY)
    node.settle()
    told = {key: value for report in node.assigned for key, value in report.items()}
    held = {
        (log.topic_id, log.topic_partition.partition): node.directories.directory_of(log).id
        for log in node.directories
    }
    assert told == held
    assert set(held.values()) == {FIRST, SECOND}


def test_a_lost_directory_is_told_in_one_line(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    """LOG-19: with the number of its partitions and some of them; requests are still refused."""
    node.create("orders", 20, SECOND)
    node.create("users", 1)
    node.settle()
    (told,) = [one.getMessage() for one in caplog.records if one.levelno == logging.ERROR]
    assert told.startswith("20 partitions are offline (orders-0, orders-1, orders-2, ...): ")
    assert to_text(SECOND) in told
    with pytest.raises(KafkaStorageError):
        node.partitions.find("orders", 7).online_log()


def test_a_partition_does_not_begin_anew_while_its_directory_is_offline(tmp_path: Path) -> None:
    node = Node(tmp_path / "first", tmp_path / "second")
    node.directories.fail(node.directories.directories[1], OSError(5, "Input/output error"))
    node.create("orders", 1, SECOND)
    with pytest.raises(KafkaStorageError):
        node.partitions.find("orders", 0).online_log()
    assert not (tmp_path / "first" / "orders-0").exists()


def test_partitions_without_room_are_made_when_there_is_some(node: Node) -> None:
    """LOG-19: also those that nobody asks for."""
    with failing("mkdir", errno.ENOSPC):
        node.create("orders", 20)
        node.settle()
        node.hosting.try_again()
    assert directories_of(node) == set()
    node.hosting.try_again()
    node.settle()
    assert directories_of(node) == {f"orders-{n}" for n in range(20)}


def test_a_full_disk_is_no_news_for_each_partition(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    with failing("mkdir", errno.ENOSPC):
        node.create("orders", 20)
        node.settle()
        for _ in range(5):
            node.hosting.try_again()
    assert len([one for one in caplog.records if one.levelno >= logging.WARNING]) == 1


def test_a_topic_deleted_while_there_was_no_room_never_gets_files(node: Node) -> None:
    with failing("mkdir", errno.ENOSPC):
        node.create("orders", 3)
        node.settle()
    node.publish(RemoveTopicRecord(topic_id("orders")))
    node.hosting.try_again()
    node.settle()
    assert directories_of(node) == set()
