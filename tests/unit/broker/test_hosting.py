"""Metadata changes are applied to the logs of this node."""

import asyncio
import errno
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from headrace.broker import hosting
from headrace.broker.configs.topic_configs import TopicConfigs
from headrace.broker.hosting import Assignments, Hosting
from headrace.broker.metrics.counters import Metrics
from headrace.broker.produce.shapes import ProduceShape, ProduceShapes
from headrace.broker.registered_schemas import RegisteredSchemas
from headrace.errors import KafkaStorageError, NotLeaderOrFollower
from headrace.metadata.delta import ImageDelta
from headrace.metadata.image import UNASSIGNED_DIRECTORY, ResourceType
from headrace.protocol.message import Message
from headrace.protocol.schemas.records.metadata import (
    ConfigRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from headrace.protocol.uuids import Uuid, to_text
from headrace.replication.delayed import Delayed
from headrace.replication.partition import Partition
from headrace.replication.partitions import Partitions
from headrace.settings.broker import BrokerSettings
from headrace.storage.appending import append_as_is
from headrace.storage.directories import LogDirectories
from headrace.testing.clock import SimulatedClock
from tests.builders.failing_disk import failing
from tests.builders.logs import NOW, batch_of
from tests.builders.metadata_images import directory_id, image_with, partition, topic_id
from tests.unit.broker.api.builders import Alone

NODE = 1
FIRST, SECOND = directory_id(NODE), directory_id(2)


class Noted:
    """A substitute for the wake-ups of a loop, which records the changed partitions."""

    def __init__(self) -> None:
        self.changes: list[object] = []

    def changed(self, thing: object) -> None:
        self.changes.append(thing)


class Fetched:
    """A substitute for the fetchers, which records the calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, int]] = []

    def follow(self, partition: Partition) -> None:
        assert partition.log is not None
        self.calls.append(("follow", partition.topic.name, partition.leader_epoch))

    def stop(self, partition: Partition) -> None:
        self.calls.append(("stop", partition.topic.name, partition.leader_epoch))

    def taken(self) -> list[tuple[str, str, int]]:
        calls, self.calls = self.calls, []
        return calls


class Node:
    """Hosting with real log directories; what would come soon comes when `settle` is called."""

    def __init__(self, *paths: Path, load: bool = True) -> None:
        ids = dict(zip(map(str, paths), (FIRST, SECOND), strict=False))
        self.wake_ups = Noted()
        self.partitions = Partitions(self.wake_ups.changed)
        self.directories = LogDirectories.open([str(path) for path in paths], ids)
        self.metrics = Metrics()
        self.fetched = Fetched()
        self.shapes = ProduceShapes()
        self.assigned: list[Assignments] = []
        self._soon: list[Callable[[], None]] = []
        self.hosting = Hosting(
            NODE,
            self.partitions,
            self.directories,
            TopicConfigs(BrokerSettings(), NODE, RegisteredSchemas(self.partitions, Alone())),
            self.metrics,
            SimulatedClock(0),
            followers=self.fetched,
            forget_shapes=self.shapes.forget,
            soon=self._soon.append,
            report=self.assigned.append,
        )
        self.image = image_with()
        if load:
            asyncio.run(self.hosting.load(self.image))

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
        while self.turn():
            pass

    def turn(self) -> bool:
        """Make the next call that was to come soon; false if no call waits."""
        if self._soon:
            self._soon.pop(0)()
            return True
        return False


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
    assert node.partitions.led("orders", 13).online_log().log_end_offset == 0
    assert directories_of(node) == {"orders-13"}
    node.settle()
    assert len(directories_of(node)) == 20


def test_a_deleted_topic_loses_its_logs_and_its_waiters_are_woken(node: Node) -> None:
    node.create("orders", 2)
    node.settle()
    waiting = node.partitions.led("orders", 1)
    waiting.waiters[Delayed(lambda *, is_last: True, cast(Any, None))] = None
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


def shape_of(node: Node, topic: str) -> ProduceShape:
    shape = ProduceShape(node.partitions.led(topic, 0), topic.encode(), 1, 7)
    node.shapes.known[7, topic.encode(), 0] = shape
    return shape


TOUCHING: list[list[Message]] = [
    [PartitionChangeRecord(0, topic_id("orders"), leader=NODE)],
    [ConfigRecord(ResourceType.TOPIC, "orders", "retention.ms", "1000")],
    [RemoveTopicRecord(topic_id("orders"))],
]


@pytest.mark.parametrize("records", TOUCHING)
def test_a_change_forgets_the_produce_shapes_of_its_topic_only(
    node: Node, records: list[Message]
) -> None:
    node.create("orders", 1)
    node.create("others", 1)
    touched, other = shape_of(node, "orders"), shape_of(node, "others")
    node.publish(*records)
    assert touched.partition is None
    assert list(node.shapes.known.values()) == [other]
    assert other.partition is not None


def test_a_change_of_broker_configs_forgets_every_produce_shape(node: Node) -> None:
    node.create("orders", 1)
    shape = shape_of(node, "orders")
    node.publish(ConfigRecord(ResourceType.BROKER, "", "log.retention.ms", "2000"))
    assert (node.shapes.known, shape.partition) == ({}, None)


def test_a_publication_that_touches_no_topic_keeps_every_produce_shape(node: Node) -> None:
    node.create("orders", 1)
    shape = shape_of(node, "orders")
    node.publish(NoOpRecord())
    node.create("others", 1)
    assert shape.partition is not None


def test_a_replica_that_is_taken_away_is_deleted(node: Node) -> None:
    node.create("orders", 2)
    node.settle()
    gone = node.partitions.led("orders", 1)
    gone.waiters[Delayed(lambda *, is_last: True, cast(Any, None))] = None
    node.publish(
        PartitionChangeRecord(
            1, topic_id("orders"), replicas=[2], isr=[2], leader=2, directories=[SECOND]
        )
    )
    assert {name for name in directories_of(node) if not name.endswith("-delete")} == {"orders-0"}
    assert node.wake_ups.changes == [gone]
    with pytest.raises(NotLeaderOrFollower) as refused:
        node.partitions.hosted("orders", 1)
    assert refused.value.current_leader == (2, 1)


def test_a_leader_with_followers_enters_its_epoch_without_an_append(node: Node) -> None:
    node.create("orders", 1)
    node.settle()
    led = node.partitions.led("orders", 0)
    node.publish(
        PartitionChangeRecord(
            0, topic_id("orders"), replicas=[NODE, 2], leader=NODE, directories=[FIRST, SECOND]
        )
    )
    node.settle()
    assert led.online_log().leader_epochs.latest_epoch == led.leader_epoch == 1


def test_a_partition_that_another_node_leads_is_hosted_but_not_led(node: Node) -> None:
    node.create("orders", 1)
    node.settle()
    node.publish(
        PartitionChangeRecord(
            0, topic_id("orders"), replicas=[NODE, 2], leader=2, directories=[FIRST, SECOND]
        )
    )
    assert node.partitions.hosted("orders", 0).online_log().log_end_offset == 0
    with pytest.raises(NotLeaderOrFollower):
        node.partitions.led("orders", 0)


def replicated(name: str, leader: int = 2) -> list[Message]:
    record = partition(name, 0)
    record.replicas = record.isr = [2, NODE]
    record.leader, record.directories = leader, [SECOND, FIRST]
    return [TopicRecord(name, topic_id(name)), record]


def led_by(name: str, leader: int) -> PartitionChangeRecord:
    return PartitionChangeRecord(0, topic_id(name), leader=leader)


def test_a_partition_is_fetched_when_it_has_a_log(node: Node) -> None:
    node.publish(*replicated("orders"))
    assert node.fetched.taken() == [("stop", "orders", 0)]
    node.settle()
    assert node.fetched.taken() == [("follow", "orders", 0)]


def test_a_follower_of_a_new_leader_stops_at_once_and_is_fetched_again(node: Node) -> None:
    node.publish(*replicated("orders"))
    node.settle()
    node.fetched.taken()
    node.publish(led_by("orders", 2))
    assert node.fetched.taken() == [("stop", "orders", 1)]
    node.settle()
    assert node.fetched.taken() == [("follow", "orders", 1)]


def test_many_partitions_begin_to_be_fetched_in_several_turns(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = [f"orders{number}" for number in range(3)]
    node.publish(*(record for topic in topics for record in replicated(topic)))
    node.settle()
    node.publish(*(led_by(topic, 2) for topic in topics))
    node.fetched.taken()
    monkeypatch.setattr(hosting, "_TURN_S", 0)
    for left in (2, 1, 0):
        node.turn()
        assert len(node.fetched.taken()) == 1
        assert len(node.hosting._to_follow) == left
    assert not node.turn()


def test_a_follower_that_becomes_leader_stops_before_it_enters_its_epoch(node: Node) -> None:
    node.publish(*replicated("orders"))
    node.settle()
    node.fetched.taken()
    node.publish(led_by("orders", NODE))
    log = node.partitions.led("orders", 0).online_log()
    assert node.fetched.taken() == [("stop", "orders", 1)]
    assert log.leader_epochs.entries == []
    node.settle()
    assert (node.fetched.taken(), log.leader_epochs.latest_epoch) == ([], 1)


def test_a_leader_that_becomes_follower_is_fetched(node: Node) -> None:
    node.publish(*replicated("orders", NODE))
    node.settle()
    node.fetched.taken()
    node.publish(led_by("orders", 2))
    node.settle()
    assert node.fetched.taken() == [("stop", "orders", 1), ("follow", "orders", 1)]


def test_a_followed_topic_that_is_deleted_or_made_again_is_not_fetched_any_more(
    node: Node,
) -> None:
    node.publish(*replicated("orders"))
    node.settle()
    node.fetched.taken()
    again = replicated("orders")
    cast(TopicRecord, again[0]).topic_id = cast(PartitionRecord, again[1]).topic_id = bytes(16)
    node.publish(RemoveTopicRecord(topic_id("orders")), *again)
    assert node.fetched.taken() == [("stop", "orders", 0), ("stop", "orders", 0)]
    node.settle()
    assert node.fetched.taken() == [("follow", "orders", 0)]
    assert node.partitions.hosted("orders", 0).topic_id == bytes(16)


def test_a_followed_replica_that_leaves_before_its_fetch_began_is_not_fetched(node: Node) -> None:
    node.publish(*replicated("orders"))
    node.settle()
    node.publish(led_by("orders", 2))
    node.fetched.taken()
    node.publish(
        PartitionChangeRecord(0, topic_id("orders"), replicas=[2], isr=[2], directories=[SECOND])
    )
    node.settle()
    assert node.fetched.taken() == [("stop", "orders", 1)]


def test_logs_are_loaded_and_fetched_at_the_start_and_recovery_leaves_the_loop_alone(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.publish(*replicated("orders"), *replicated("others", NODE))
    node.settle()
    node.partitions.led("others", 0).append(batch_of(b"1"), NOW)
    log = node.partitions.hosted("orders", 0).online_log()
    append_as_is(log, batch_of(b"1"), NOW)
    for plan in node.directories.plan_high_watermarks():
        plan.run()
    for directory in node.directories.directories:
        directory.release()
    may_recover = threading.Event()
    recover = LogDirectories._recover
    monkeypatch.setattr(
        LogDirectories,
        "_recover",
        staticmethod(lambda *wanted: recover(*wanted) if may_recover.wait(10) else None),
    )

    async def restart() -> Node:
        again = Node(tmp_path / "data", load=False)
        loading = asyncio.ensure_future(again.hosting.load(node.image))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not loading.done()
        may_recover.set()
        await loading
        return again

    again = asyncio.run(restart())
    assert again.fetched.taken() == [("follow", "orders", 0)]
    for name in ("orders", "others"):
        loaded = again.partitions.hosted(name, 0).online_log()
        assert (loaded.log_end_offset, loaded.high_watermark) == (1, 0)


def test_records_that_survived_a_crash_are_committed(node: Node, tmp_path: Path) -> None:
    node.create("orders", 1)
    log = node.partitions.led("orders", 0).online_log()
    log.log_end_offset = 5
    node.hosting._attach(node.partitions.led("orders", 0))
    assert log.high_watermark == 5


def test_the_chosen_directory_is_reported_to_the_metadata(tmp_path: Path) -> None:
    node = Node(tmp_path / "first", tmp_path / "second")
    node.create("orders", 4, UNASSIGNED_DIRECTORY)
    node.settle()
    response = {key: value for report in node.assigned for key, value in report.items()}
    held = {
        (log.topic_id, log.topic_partition.partition): node.directories.directory_of(log).id
        for log in node.directories
    }
    assert response == held
    assert set(held.values()) == {FIRST, SECOND}


def test_a_lost_directory_is_logged_in_one_line(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    """LOG-19: with the number of its partitions and some of them; requests are still refused."""
    node.create("orders", 20, SECOND)
    node.create("users", 1)
    node.settle()
    (logged,) = [vars(one) for one in caplog.records if one.levelno == logging.ERROR]
    assert (logged["count"], logged["examples"]) == (20, "orders-0,orders-1,orders-2")
    assert to_text(SECOND) in logged["error"]
    with pytest.raises(KafkaStorageError):
        node.partitions.led("orders", 7).online_log()


def test_a_partition_is_not_recreated_while_its_directory_is_offline(tmp_path: Path) -> None:
    node = Node(tmp_path / "first", tmp_path / "second")
    node.directories.fail(node.directories.directories[1], OSError(5, "Input/output error"))
    node.create("orders", 1, SECOND)
    with pytest.raises(KafkaStorageError):
        node.partitions.led("orders", 0).online_log()
    assert not (tmp_path / "first" / "orders-0").exists()


def test_partitions_without_room_are_created_when_there_is_some(node: Node) -> None:
    """LOG-19: also partitions without requests."""
    with failing("mkdir", errno.ENOSPC):
        node.create("orders", 20)
        node.settle()
        node.hosting.try_again()
    assert directories_of(node) == set()
    node.hosting.try_again()
    node.settle()
    assert directories_of(node) == {f"orders-{n}" for n in range(20)}


def test_a_full_disk_is_logged_once_for_all_partitions(
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
