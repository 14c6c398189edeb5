"""The controller's shell: replies follow the sync, and no synced record is lost."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.controller.controller import Controller
from headrace.controller.decision import ClusterDefaults, Decision
from headrace.controller.topics import TopicResult, create_topics
from headrace.errors import (
    InvalidUpdateVersion,
    KafkaStorageError,
    NotController,
    TopicAlreadyExists,
)
from headrace.metadata.delta import ImageDelta
from headrace.metadata.features import DEFAULT_LEVELS
from headrace.metadata.image import MetadataImage
from headrace.metadata.log.metadata_log import MetadataLogSettings
from headrace.metadata.records import UnreplayableRecord, VersionedRecord
from headrace.protocol.schemas.create_topics import CreatableTopic
from headrace.protocol.schemas.records.metadata import (
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    RemoveTopicRecord,
)
from headrace.protocol.schemas.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from headrace.runtime import files
from tests.builders.metadata_nodes import (
    NOW_MS,
    RULES,
    FixedClock,
    formatted,
    image_in,
    kafkas_node,
    started,
)


def creation(controller: Controller, name: str) -> Callable[[MetadataImage], Decision[TopicResult]]:
    """A decision to create one topic."""

    def decide(image: MetadataImage) -> Decision[TopicResult]:
        topics = [CreatableTopic(name, 1, 1)]
        decision = create_topics(image, topics, ClusterDefaults(), RULES)
        return Decision(decision.records, decision.reply[0])

    return decide


def setting(name: str) -> Callable[[MetadataImage], Decision[None]]:
    record = VersionedRecord(ConfigRecord(4, "", name, "x"))
    return lambda image: Decision([record], None)


RESOURCE = ConfigRecord(4, "", "held", "x")


class HeldDisk:
    """Background work that waits until the test lets it go on."""

    def __init__(self) -> None:
        self.runs = 0
        self.is_held = False
        self.error: OSError | None = None
        self._go = asyncio.Event()

    async def run(self, function: Callable[[], None]) -> None:
        self.runs += 1
        if self.is_held:
            await self._go.wait()
        if self.error is not None:
            raise self.error
        function()

    def let_go(self) -> None:
        self.is_held = False
        self._go.set()


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


# The life of a node.


async def test_a_first_start_fills_the_log_and_registers_the_node(tmp_path: Path) -> None:
    controller = await started(formatted(tmp_path))
    image = controller.image
    assert image.features == DEFAULT_LEVELS
    assert image.is_active(1)
    assert list(image.controllers) == [1]
    assert image.brokers[1].epoch == controller.broker_epoch == 11
    await controller.stop(1)
    assert image_in(tmp_path).brokers[1].fenced


async def test_a_start_costs_three_syncs_and_a_first_start_four(tmp_path: Path) -> None:
    """The epoch of the leader, the bootstrap records of an empty log, registering, unfencing.

    A leader decides only after its epoch is committed: records of other leaders may precede it.
    """
    disk = HeldDisk()
    controller = await started(formatted(tmp_path), background=disk.run)
    assert disk.runs == 4
    await controller.stop(1)
    disk = HeldDisk()
    controller = await started(tmp_path, background=disk.run)
    assert disk.runs == 3
    await controller.stop(1)


async def test_a_restart_keeps_created_topics(tmp_path: Path) -> None:
    controller = await started(formatted(tmp_path))
    await controller.submit(creation(controller, "orders"))
    first_epoch = controller.broker_epoch
    await controller.stop(1)
    controller = await started(tmp_path, previous_broker_epoch=first_epoch)
    partition = controller.image.topics["orders"].partitions[0]
    assert (partition.leader, partition.leader_epoch) == (1, 0)
    assert controller.broker_epoch > first_epoch
    assert controller.replica.epoch == 2
    await controller.stop(1)


async def test_after_a_crash_partitions_begin_a_new_term(tmp_path: Path) -> None:
    controller = await started(formatted(tmp_path))
    await controller.submit(creation(controller, "orders"))
    await controller.end()
    controller = await started(tmp_path)
    partition = controller.image.topics["orders"].partitions[0]
    assert (partition.leader, partition.leader_epoch) == (1, 1)
    await controller.stop(1)


async def test_kafkas_directory_is_taken_over_with_its_levels(tmp_path: Path) -> None:
    controller = await started(kafkas_node(tmp_path))
    await controller.submit(creation(controller, "ours"))
    assert controller.image.metadata_version == 30
    assert sorted(controller.image.topics) == ["orders", "ours"]
    assert [one.leader for one in controller.image.topics["orders"].partitions] == [1] * 4
    await controller.stop(1)
    assert sorted(image_in(tmp_path).topics) == ["orders", "ours"]


# Committing.


async def test_a_reply_waits_for_the_sync(tmp_path: Path) -> None:
    """LOG-11, for metadata."""
    disk = HeldDisk()
    controller = await started(formatted(tmp_path), background=disk.run)
    disk.is_held = True
    creating = asyncio.ensure_future(controller.submit(creation(controller, "orders")))
    await turns()
    assert not creating.done()
    assert "orders" not in controller.image.topics
    disk.let_go()
    assert (await creating).error is None
    assert "orders" in controller.image.topics
    await controller.stop(1)


async def test_decisions_depend_on_records_that_are_not_yet_synced(tmp_path: Path) -> None:
    disk = HeldDisk()
    controller = await started(formatted(tmp_path), background=disk.run)
    disk.is_held = True
    first = asyncio.ensure_future(controller.submit(creation(controller, "orders")))
    second = asyncio.ensure_future(controller.submit(creation(controller, "orders")))
    await turns()
    assert not second.done()  # Its refusal rests on a record that could still be lost.
    disk.let_go()
    assert (await first).error is None
    assert isinstance((await second).error, TopicAlreadyExists)
    await controller.stop(1)


async def test_requests_during_a_sync_share_the_next_one(tmp_path: Path) -> None:
    disk = HeldDisk()
    controller = await started(formatted(tmp_path), background=disk.run)
    before = disk.runs
    disk.is_held = True
    waiting = [asyncio.ensure_future(controller.submit(setting("first")))]
    await turns()
    waiting += [asyncio.ensure_future(controller.submit(setting(str(n)))) for n in range(20)]
    await turns()
    disk.let_go()
    await asyncio.gather(*waiting)
    assert disk.runs == before + 2
    await controller.stop(1)


async def test_listeners_receive_every_change_in_order(tmp_path: Path) -> None:
    controller = await started(formatted(tmp_path))
    heard: list[tuple[list[str], int]] = []

    def listen(delta: ImageDelta, image: MetadataImage) -> None:
        created = [image.topics_by_id[topic_id].name for topic_id in delta.topics_created]
        heard.append((created, image.offset))

    controller.on_published(listen)
    await asyncio.gather(*(controller.submit(creation(controller, name)) for name in "abc"))
    assert [created for created, _ in heard] == [["a"], ["b"], ["c"]]
    assert [offset for _, offset in heard] == sorted(offset for _, offset in heard)
    await controller.stop(1)


async def test_a_failing_listener_does_not_stop_the_others(tmp_path: Path) -> None:
    controller = await started(formatted(tmp_path))
    heard: list[int] = []

    def trip(delta: ImageDelta, image: MetadataImage) -> None:
        raise ValueError("tripped")

    controller.on_published(trip)
    controller.on_published(lambda delta, image: heard.append(image.offset))
    await controller.submit(setting("a"))
    assert len(heard) == 1
    await controller.stop(1)


async def test_a_cancelled_request_is_still_committed(tmp_path: Path) -> None:
    disk = HeldDisk()
    controller = await started(formatted(tmp_path), background=disk.run)
    disk.is_held = True
    creating = asyncio.ensure_future(controller.submit(creation(controller, "orders")))
    await turns()
    creating.cancel()
    await turns()
    disk.let_go()
    await controller.submit(setting("a"))
    assert "orders" in controller.image.topics
    await controller.stop(1)


async def test_a_read_needs_no_disk(tmp_path: Path) -> None:
    disk = HeldDisk()
    controller = await started(formatted(tmp_path), background=disk.run)
    before = disk.runs
    assert await controller.submit(lambda image: Decision((), image.metadata_version)) == 25
    assert disk.runs == before
    await controller.stop(1)


# Failing.


async def test_a_decision_that_could_not_be_replayed_is_never_written(tmp_path: Path) -> None:
    controller = await started(formatted(tmp_path))
    end = controller.log.end_offset
    nonsense = VersionedRecord(RemoveTopicRecord(b"u" * 16))
    with pytest.raises(UnreplayableRecord):
        await controller.submit(lambda image: Decision([nonsense], None))
    assert controller.log.end_offset == end
    await controller.submit(creation(controller, "orders"))
    await controller.stop(1)
    assert "orders" in image_in(tmp_path).topics


async def test_a_full_disk_refuses_the_change_and_later_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = await started(formatted(tmp_path))

    def full(fd: int, data: bytes, position: int) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "pwrite", full)
    with pytest.raises(KafkaStorageError):
        await controller.submit(creation(controller, "orders"))
    assert "orders" not in controller.image.topics
    monkeypatch.undo()
    assert (await controller.submit(creation(controller, "orders"))).error is None
    await controller.stop(1)
    assert "orders" in image_in(tmp_path).topics


async def test_a_failed_sync_stops_the_controller(tmp_path: Path) -> None:
    """The content of the disk is unknown after a failed sync, so no further reply is safe."""
    disk = HeldDisk()
    controller = await started(formatted(tmp_path), background=disk.run)
    failures: list[KafkaStorageError] = []

    def failed(error: KafkaStorageError) -> None:
        failures.append(error)
        controller.failed(error)

    controller.replica.on_failure = failed
    disk.error = OSError(5, "Input/output error")
    with pytest.raises(KafkaStorageError):
        await controller.submit(creation(controller, "orders"))
    assert "orders" not in controller.image.topics
    disk.error = None
    with pytest.raises(KafkaStorageError):
        await controller.submit(setting("a"))
    assert len(failures) == 1
    await controller.stop(1)


# Snapshots.


async def test_a_snapshot_is_taken_when_much_was_written(tmp_path: Path) -> None:
    settings = MetadataLogSettings(record_bytes_between_snapshots=4000)
    controller = await started(formatted(tmp_path), settings=settings)
    for number in range(30):
        await controller.submit(setting(f"{number:0100d}"))
        await turns()
    await controller.stop(1)
    assert 2 <= len(controller.log.snapshots) <= 4
    image = image_in(tmp_path)
    assert len(image.configs_of(4, "")) == 30


async def test_a_snapshot_is_taken_with_time_and_old_ones_go(tmp_path: Path) -> None:
    clock = FixedClock(NOW_MS)
    settings = MetadataLogSettings(snapshot_interval_ms=1000, retention_bytes=0)
    controller = await started(formatted(tmp_path), clock=clock, settings=settings)
    for name in "abc":
        clock.now += 10_000
        await controller.submit(setting(name))
        await controller.maintain()
    newest = controller.log.snapshots
    assert len(newest) == 1
    await controller.maintain()
    assert controller.log.snapshots == newest
    await controller.stop(1)
    assert sorted(image_in(tmp_path).configs_of(4, "")) == ["a", "b", "c"]


async def test_a_snapshot_that_fails_is_tried_again(tmp_path: Path) -> None:
    disk = HeldDisk()
    clock = FixedClock(NOW_MS)
    settings = MetadataLogSettings(snapshot_interval_ms=1000)
    controller = await started(
        formatted(tmp_path), background=disk.run, clock=clock, settings=settings
    )
    disk.error = OSError(28, "No space left on device")
    clock.now += 10_000
    await controller.maintain()
    assert controller.log.snapshots == [(0, 0)]
    disk.error = None
    clock.now += 10_000
    await controller.maintain()
    assert controller.log.snapshots[-1].end_offset > 0
    await controller.stop(1)


async def test_real_threads_make_no_difference(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()

    async def in_thread(function: Callable[[], None]) -> None:
        await loop.run_in_executor(None, function)

    controller = await started(formatted(tmp_path), background=in_thread)
    await asyncio.gather(*(controller.submit(setting(str(number))) for number in range(50)))
    await controller.stop(1)
    assert len(image_in(tmp_path).configs_of(4, "")) == 50


# Leadership.


async def test_a_controller_that_resigns_returns_to_the_committed_image(tmp_path: Path) -> None:
    disk = HeldDisk()
    controller = await started(formatted(tmp_path), background=disk.run)
    committed = controller.image
    disk.is_held = True
    waiting = [asyncio.ensure_future(controller.submit(setting(name))) for name in "ab"]
    await turns()
    controller.replica.resign()
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(one) for one in answers] == [NotController, NotController]
    with pytest.raises(NotController):
        await controller.submit(setting("c"))
    disk.let_go()
    await controller.end()
    assert controller.image is committed


async def test_a_rejected_write_does_not_end_an_open_transaction(tmp_path: Path) -> None:
    controller = await started(formatted(tmp_path))
    begin = [VersionedRecord(BeginTransactionRecord("t")), VersionedRecord(RESOURCE)]
    await controller.submit(lambda image: Decision(begin, None))
    nonsense = VersionedRecord(RemoveTopicRecord(bytes(16)))
    unreadable = VersionedRecord(BeginTransactionRecord("another"))
    with pytest.raises(UnreplayableRecord):
        await controller.submit(lambda image: Decision([nonsense, unreadable], None))
    assert "held" not in controller.image.configs_of(4, "")
    end = [VersionedRecord(EndTransactionRecord())]
    await controller.submit(lambda image: Decision(end, None))
    assert controller.image.configs_of(4, "")["held"] == "x"
    await controller.stop(1)


async def test_a_static_quorum_is_upgraded_to_voters_in_the_log(tmp_path: Path) -> None:
    formatted(tmp_path)
    shutil.rmtree(tmp_path / "__cluster_metadata-0")
    controller = await started(tmp_path)
    assert controller.quorum.kraft_version == 0
    raising = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey("kraft.version", 1)])
    checking = UpdateFeaturesRequest(raising.timeout_ms, raising.feature_updates, True)
    await controller.ask(checking)
    assert controller.quorum.kraft_version == 0
    await controller.ask(raising)
    assert controller.quorum.kraft_version == 1
    await controller.submit(creation(controller, "orders"))
    lowering = FeatureUpdateKey("kraft.version", 0, upgrade_type=3)
    with pytest.raises(InvalidUpdateVersion, match="only be raised"):
        await controller.ask(UpdateFeaturesRequest(feature_updates=[lowering]))
    await controller.stop(1)
    again = await started(tmp_path)
    assert again.quorum.kraft_version == 1
    assert list(again.image.topics) == ["orders"]
    await again.stop(1)
