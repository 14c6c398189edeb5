"""Share partitions on their way to disk: what counts if the persister fails, when locks end."""

import asyncio
import os
from pathlib import Path
from typing import Any, cast

import pytest

from headrace.broker.shares.led_partition import LedSharePartition
from headrace.broker.shares.partitions import AcquiredRecords, SharePartitions
from headrace.errors import (
    CoordinatorNotAvailable,
    CorruptMessage,
    FencedStateEpoch,
    InvalidRecordState,
    KafkaStorageError,
    NotCoordinator,
    NotLeaderOrFollower,
    UnknownServerError,
)
from headrace.metadata.image import ResourceType
from headrace.protocol.acknowledge_types import AcknowledgeType
from headrace.replication.partition import Partition
from headrace.runtime.files import OpenFile
from headrace.shares.partition import Acknowledgement, Acquired
from headrace.shares.selection import Pick
from headrace.shares.sessions import SessionKey, Target
from headrace.shares.state import SharePartitionKey, SharePartitionState, StateBatch, StateChange
from headrace.storage.reading import LogSlice
from tests.builders.logs import append, damage_length
from tests.clients.librdkafka import SECONDS_MAX
from tests.unit.broker.api.builders import a_broker, a_topic, with_configs

GROUP, ADA, BOB = "group", "ada", "bob"
ACCEPT, RELEASE = [AcknowledgeType.ACCEPT], [AcknowledgeType.RELEASE]


class ScriptedStates:
    """A persister that records its writes, and fails on demand."""

    def __init__(self) -> None:
        self.state = SharePartitionState(start_offset=0)
        self.written: list[tuple[int, int, list[StateBatch]]] = []
        self.failure: Exception | None = None

    async def read(self, key: SharePartitionKey, leader_epoch: int) -> SharePartitionState:
        if self.failure is not None:
            raise self.failure
        return self.state

    async def write(self, key: SharePartitionKey, change: StateChange) -> None:
        if self.failure is not None:
            raise self.failure
        written = change.start_offset, change.delivery_complete_count, list(change.batches)
        self.written.append(written)


class Bench:
    """A broker with one topic of ten records, and a group that takes them."""

    def __init__(self, directory: Path) -> None:
        self.broker = a_broker(directory)
        topic = a_topic("orders")
        image = self.broker.controller.image
        image.topics["orders"] = image.topics_by_id[topic.id] = topic  # type: ignore[index]
        self.broker._host(topic)
        self.partition: Partition = self.broker.partitions.led("orders", 0)
        append(self.partition.online_log(), *[b"x"] * 10)
        self.states = ScriptedStates()
        self.key = SharePartitionKey(GROUP, topic.id, 0)
        broker = self.broker
        self.shares = SharePartitions(
            cast(Any, self.states),
            broker.leaders,
            cast(Any, broker.controller),
            broker.configs,
            broker.clock,
            broker.tasks,
            broker.wake_ups,
        )

    def configure(self, **configs: str) -> None:
        controller = self.broker.controller
        controller.image = with_configs(controller.image, ResourceType.GROUP, GROUP, **configs)

    def open(self) -> LedSharePartition:
        return self.shares.open(self.key, self.partition)

    def take(
        self, led: LedSharePartition, member: str = ADA, most: int = 500
    ) -> AcquiredRecords | None:
        return self.shares.take(led, Pick(member, most, 500), 1 << 20, at_least_one=True)

    async def say(self, led: LedSharePartition, kinds: list[AcknowledgeType]) -> None:
        await self.shares.acknowledge(led, ADA, [Acknowledgement(0, 9, kinds)])


@pytest.fixture
async def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def test_records_are_returned_as_stored_in_the_log(bench: Bench) -> None:
    taken = bench.take(bench.open())
    assert taken is not None
    assert taken.acquired == [Acquired(0, 9, 1)]
    log = bench.partition.online_log()
    assert taken.records.read() == log.read(0, 1 << 20, 10).read()


async def test_acknowledgements_are_written(bench: Bench) -> None:
    led = bench.open()
    bench.take(led)
    await bench.say(led, ACCEPT)
    assert bench.states.written == [(10, 0, [])]


async def test_a_change_that_cannot_be_written_is_rolled_back(bench: Bench) -> None:
    led = bench.open()
    bench.take(led)
    bench.states.failure = NotCoordinator("elsewhere")
    with pytest.raises(CoordinatorNotAvailable):
        await bench.say(led, ACCEPT)
    bench.states.failure = None
    assert bench.take(led, BOB) is None
    await bench.say(led, ACCEPT)
    assert bench.states.written == [(10, 0, [])]


async def test_records_of_a_departed_member_are_returned_although_the_write_fails(
    bench: Bench,
) -> None:
    led = bench.open()
    target = Target(bench.key.topic_id, 0)
    for member in (ADA, BOB):
        key = SessionKey(GROUP, member)
        bench.shares.sessions.fetch(key, 0, [target], (), member, has_acknowledgements=False)
    bench.take(led)
    bench.states.failure = NotCoordinator("elsewhere")
    bench.shares.disconnected(ADA)
    taken = bench.take(led, BOB)
    assert taken is not None
    assert taken.acquired == [Acquired(0, 9, 2)]


async def test_without_sessions_a_share_partition_is_forgotten(bench: Bench) -> None:
    led = bench.open()
    target = Target(bench.key.topic_id, 0)
    bench.shares.sessions.fetch(
        SessionKey(GROUP, ADA), 0, [target], (), "one", has_acknowledgements=False
    )
    bench.take(led)
    bench.shares.disconnected("one")
    assert bench.states.written == [(0, 0, [StateBatch(0, 9, 0, 1)])]
    assert bench.shares.find(bench.key) is None


async def test_a_fenced_leader_releases_its_partition(bench: Bench) -> None:
    led = bench.open()
    bench.take(led)
    bench.states.failure = FencedStateEpoch("somebody has reset the group")
    with pytest.raises(NotLeaderOrFollower):
        await bench.say(led, ACCEPT)
    assert (led.is_live, bench.shares.find(bench.key)) == (False, None)


async def test_a_load_that_failed_is_reported_and_retried(bench: Bench) -> None:
    bench.states.failure = NotCoordinator("elsewhere")
    led = bench.open()
    assert isinstance(led.failure, CoordinatorNotAvailable)
    bench.states.failure = None
    assert bench.open().core is not None


async def test_an_invalid_state_is_reported_and_read_again(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.states.state = SharePartitionState(
        start_offset=0, batches=(StateBatch(0, 3, delivery_state=9, delivery_count=1),)
    )
    led = bench.open()
    assert isinstance(led.failure, UnknownServerError)
    assert "share partition not loaded" in caplog.text
    bench.states.state = SharePartitionState(start_offset=0)
    assert bench.open().core is not None


async def test_a_failed_write_has_no_effect(bench: Bench) -> None:
    led = bench.open()
    bench.take(led)
    bench.states.failure = RuntimeError("our own fault")
    with pytest.raises(RuntimeError):
        await bench.say(led, ACCEPT)
    bench.states.failure = None
    await bench.say(led, ACCEPT)
    assert bench.states.written == [(10, 0, [])]


async def test_returned_records_are_available_even_if_the_write_fails(bench: Bench) -> None:
    led = bench.open()
    target = Target(bench.key.topic_id, 0)
    for member in (ADA, BOB):
        key = SessionKey(GROUP, member)
        bench.shares.sessions.fetch(key, 0, [target], (), member, has_acknowledgements=False)
    bench.take(led)
    bench.states.failure = RuntimeError("our own fault")
    bench.shares.disconnected(ADA)
    assert bench.take(led, BOB) is not None


async def test_a_partition_forgotten_late_keeps_the_locks_of_its_successor(bench: Bench) -> None:
    configs = bench.broker.configs
    configs.settings = cast(Any, _SoonerLocks(configs.settings))
    first = bench.open()
    bench.partition.leader_epoch += 1
    led = bench.open()
    bench.take(led)
    bench.shares.forget(first)
    bench.broker.clock.time_ms += 5
    async with asyncio.timeout(SECONDS_MAX):
        while bench.take(led, BOB) is None:
            await asyncio.sleep(0)


async def test_a_damaged_batch_is_reported(bench: Bench) -> None:
    led = bench.open()
    damage_length(bench.partition.online_log(), 0, -12)
    with pytest.raises(CorruptMessage, match="position 0"):
        bench.take(led)


async def test_unreadable_records_are_reported(bench: Bench, tmp_path: Path) -> None:
    led = bench.open()
    taken = bench.take(led)
    assert taken is not None
    nowhere = OpenFile(os.open(tmp_path, os.O_RDONLY))
    with pytest.raises(KafkaStorageError):
        bench.shares.read(led, AcquiredRecords(LogSlice(nowhere, 0, 100), taken.acquired))


async def test_another_leader_epoch_means_another_share_partition(bench: Bench) -> None:
    led = bench.open()
    bench.partition.leader_epoch += 1
    assert bench.open() is not led
    assert not led.is_live


@pytest.mark.parametrize(
    ("reset", "expected"),
    [("earliest", 0), ("latest", 10), ("by_duration:PT1H", 10), ("by_duration:P20000D", 0)],
)
async def test_the_start_of_a_group_is_written_at_once(
    bench: Bench, reset: str, expected: int
) -> None:
    bench.states.state = SharePartitionState()
    bench.broker.clock.time_ms += 7_200_000
    bench.configure(share_auto_offset_reset=reset)
    led = bench.open()
    assert led.core is not None
    assert led.core.start_offset == expected
    assert bench.states.written == [(expected, 0, [])]


async def test_deleted_records_are_passed_over(bench: Bench) -> None:
    led = bench.open()
    bench.partition.online_log().log_start_offset = 4
    taken = bench.take(led)
    assert taken is not None
    assert taken.acquired == [Acquired(4, 9, 1)]


async def test_a_lock_ends_with_its_time(bench: Bench) -> None:
    configs = bench.broker.configs
    configs.settings = cast(Any, _SoonerLocks(configs.settings))
    led = bench.open()
    bench.take(led)
    bench.broker.clock.time_ms += 5
    while bench.take(led, BOB) is None:
        await asyncio.sleep(0)
    with pytest.raises(InvalidRecordState):
        await bench.say(led, ACCEPT)


class _SoonerLocks:
    """Settings with locks that last a few milliseconds, which no operator may set."""

    def __init__(self, settings: Any) -> None:
        self._settings = settings

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._settings, name)
        return 2 if name == "group_share_record_lock_duration_ms" else found


async def test_a_partition_without_new_records_returns_nothing(bench: Bench) -> None:
    led = bench.open()
    bench.take(led)
    assert bench.take(led, BOB) is None
    assert bench.shares.readable_bytes(led, 100) == 0


async def test_a_later_lock_may_end_earlier(bench: Bench) -> None:
    """A group's lock duration was made shorter while records were out."""
    led = bench.open()
    bench.take(led)
    configs = bench.broker.configs
    configs.settings = cast(Any, _SoonerLocks(configs.settings))
    append(bench.partition.online_log(), b"x")
    bench.take(led)
    bench.broker.clock.time_ms += 5
    while (taken := bench.take(led, BOB)) is None:
        await asyncio.sleep(0)
    assert taken.acquired == [Acquired(10, 10, 2)]
