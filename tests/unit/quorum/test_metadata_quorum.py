"""Three replicas in directories: one decides, all publish the same images, none loses a change."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from headrace.errors import KafkaStorageError, NotController
from headrace.metadata.log.metadata_log import MetadataLogSettings
from headrace.protocol.schemas.records.metadata import RemoveTopicRecord, TopicRecord
from headrace.raft.quorum_state import read_quorum_state
from headrace.runtime import files
from tests.builders.failing_disk import broken_disk
from tests.builders.metadata_images import topic_id
from tests.builders.metadata_quorums import Cluster, Member, setting, writing
from tests.builders.virtual_time import in_virtual_time

SMALL = MetadataLogSettings(record_bytes_between_snapshots=2000, retention_bytes=0)


def names(member: Member) -> list[str]:
    """The configs of all brokers in the member's image, without those of a new cluster."""
    return sorted(set(member.image.configs_of(4, "")) - {"min.insync.replicas"})


def test_one_controller_decides_and_all_publish_its_changes(tmp_path: Path) -> None:
    async def run() -> None:
        async with Cluster(tmp_path) as cluster:
            leader = await cluster.active()
            await leader.controller.submit(setting("a"))
            assert names(leader) == ["a"]
            await cluster.level()
            assert [one.image == leader.image for one in cluster.up()] == [True] * 3
            assert [one.controller.is_leading for one in cluster.up()].count(True) == 1
            states = [read_quorum_state(one.quorum.log.directory) for one in cluster.up()]
            assert {one.leader_id for one in states} == {leader.id}

    in_virtual_time(run())


def test_standbys_publish_every_change_once_and_in_order(tmp_path: Path) -> None:
    async def run() -> None:
        async with Cluster(tmp_path) as cluster:
            leader = await cluster.active()
            for number in range(20):
                await leader.controller.submit(
                    writing(TopicRecord(f"t{number}", topic_id(f"t{number}")))
                )
            await cluster.level()
            for member in cluster.up():
                created = [
                    image.topics_by_id[one].name
                    for delta, image in member.published
                    for one in delta.topics_created
                ]
                assert created == [f"t{number}" for number in range(20)]

    in_virtual_time(run())


def test_a_standby_does_not_decide(tmp_path: Path) -> None:
    async def run() -> None:
        async with Cluster(tmp_path) as cluster:
            leader = await cluster.active()
            for standby in cluster.up():
                if standby is not leader:
                    with pytest.raises(NotController):
                        await standby.controller.submit(setting("a"))

    in_virtual_time(run())


@pytest.mark.parametrize("end", [Member.stop, Member.kill])
def test_another_controller_takes_over_with_all_committed_changes(
    tmp_path: Path, end: Callable[[Member], Awaitable[None]]
) -> None:
    async def run() -> None:
        async with Cluster(tmp_path) as cluster:
            first = await cluster.active()
            for name in "abc":
                await first.controller.submit(setting(name))
            await end(first)
            second = await cluster.active()
            assert second is not first
            assert names(second) == ["a", "b", "c"]
            await second.controller.submit(setting("d"))
            cluster.launch(first.id)
            await cluster.level()
            assert [names(one) for one in cluster.up()] == [["a", "b", "c", "d"]] * 3

    in_virtual_time(run())


def test_a_leader_that_stops_hands_over_sooner_than_one_that_dies(tmp_path: Path) -> None:
    async def took_over_in(directory: Path, end: Callable[[Member], Awaitable[None]]) -> float:
        async with Cluster(directory) as cluster:
            first = await cluster.active()
            loop = asyncio.get_running_loop()
            before = loop.time()
            await end(first)
            await cluster.active()
            return loop.time() - before

    stopped = in_virtual_time(took_over_in(tmp_path / "stopped", Member.stop))
    killed = in_virtual_time(took_over_in(tmp_path / "killed", Member.kill))
    assert stopped < 0.2 < 1 < killed < 6


def test_decisions_that_were_not_committed_fail_and_are_gone(tmp_path: Path) -> None:
    async def run() -> None:
        async with Cluster(tmp_path) as cluster:
            old = await cluster.active()
            await old.controller.submit(setting("committed"))
            cluster.cut_off.add(old.id)
            waiting = [asyncio.ensure_future(old.controller.submit(setting(one))) for one in "ab"]
            new = await cluster.active()
            await new.controller.submit(setting("new"))
            answers = await asyncio.gather(*waiting, return_exceptions=True)
            assert [type(one) for one in answers] == [NotController] * 2
            assert names(old) == ["committed"]
            cluster.cut_off.clear()
            await cluster.level()
            assert [names(one) for one in cluster.up()] == [["committed", "new"]] * 3
            assert old.quorum.log.read(0, 1 << 20) == new.quorum.log.read(0, 1 << 20)

    in_virtual_time(run())


def test_a_minority_commits_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        async with Cluster(tmp_path) as cluster:
            leader = await cluster.active()
            for one in cluster.up():
                if one is not leader:
                    await one.kill()
            with pytest.raises(NotController):
                await leader.controller.submit(setting("a"))
            assert names(leader) == []

    in_virtual_time(run())


def test_all_nodes_restart_with_all_changes(tmp_path: Path) -> None:
    async def run() -> None:
        async with Cluster(tmp_path) as cluster:
            for round_ in range(3):
                leader = await cluster.active()
                await leader.controller.submit(setting(str(round_)))
                for one in cluster.up():
                    await one.kill()
                for node_id in cluster.voters:
                    cluster.launch(node_id)
            leader = await cluster.level()
            assert names(leader) == ["0", "1", "2"]
            assert leader.quorum.epoch >= 4

    in_virtual_time(run())


def test_brokers_observe_the_quorum(tmp_path: Path) -> None:
    async def run() -> None:
        async with Cluster(tmp_path) as cluster:
            broker = cluster.launch(4)
            leader = await cluster.active()
            await leader.controller.submit(setting("a"))
            await cluster.level()
            assert names(broker) == ["a"]
            await leader.kill()
            leader = await cluster.active()
            await leader.controller.submit(setting("b"))
            await cluster.level()
            assert names(broker) == ["a", "b"]
            assert not broker.controller.is_leading
            assert broker.quorum.voters.ids == (1, 2, 3)

    in_virtual_time(run())


async def grow(leader: Member) -> None:
    """Write enough for snapshots, and delete the log before them."""
    for number in range(60):
        await leader.controller.submit(setting(f"{number:03d}", "x" * 100))
        await asyncio.sleep(0.01)
    await leader.controller.maintain()
    assert leader.quorum.log.start_offset > 0


def test_a_replica_that_lags_gets_a_snapshot(tmp_path: Path) -> None:
    """Its images show the deletion of topics that the snapshot lacks."""

    async def run() -> None:
        async with Cluster(tmp_path, settings=SMALL) as cluster:
            leader = await cluster.active()
            await leader.controller.submit(
                writing(TopicRecord("old", topic_id("old")), TopicRecord("kept", topic_id("kept")))
            )
            await cluster.level()
            late = next(one for one in cluster.up() if one is not leader)
            cluster.cut_off.add(late.id)
            await leader.controller.submit(writing(RemoveTopicRecord(topic_id("old"))))
            await grow(leader)
            late.published.clear()
            cluster.cut_off.clear()
            await cluster.level()
            assert late.image == leader.image
            assert late.quorum.log.start_offset > 0
            deleted = [one.name for delta, _ in late.published for one in delta.topics_deleted]
            created = [one for delta, _ in late.published for one in delta.topics_created]
            assert (deleted, created) == (["old"], [])

    in_virtual_time(run())


@pytest.mark.parametrize("node_id", [3, 4])
def test_an_empty_replica_gets_a_snapshot(tmp_path: Path, node_id: int) -> None:
    async def run() -> None:
        async with Cluster(tmp_path, settings=SMALL) as cluster:
            cluster.launch(4)
            await cluster.level()
            await cluster.members[node_id].kill()
            leader = await cluster.active()
            await grow(leader)
            shutil.rmtree(cluster.path(node_id))
            cluster.launch(node_id)
            await cluster.level()
            member = cluster.members[node_id]
            assert member.image == (await cluster.active()).image
            await member.kill()
            again = cluster.launch(node_id)
            await cluster.level()
            assert len(names(again)) == 60
            assert again.quorum.voters.ids == (1, 2, 3)

    in_virtual_time(run())


def test_a_replica_whose_disk_fails_stops_and_the_others_go_on(tmp_path: Path) -> None:
    async def run() -> None:
        async with Cluster(tmp_path) as cluster:
            leader = await cluster.active()
            broken = next(one for one in cluster.up() if one is not leader)
            with broken_disk(str(cluster.path(broken.id))):
                await leader.controller.submit(setting("a"))
                await cluster.until(lambda: bool(broken.failures))
                await asyncio.sleep(10)
            assert len(broken.failures) == 1
            assert (await cluster.active()) is leader

    in_virtual_time(run())


def test_a_leader_whose_disk_fails_stops_and_another_one_leads(tmp_path: Path) -> None:
    async def run() -> None:
        async with Cluster(tmp_path) as cluster:
            leader = await cluster.active()
            await leader.controller.submit(setting("a"))
            with broken_disk(str(cluster.path(leader.id))):
                with pytest.raises(KafkaStorageError):
                    await leader.controller.submit(setting("b"))
                assert len(leader.failures) == 1
                await leader.kill()
            second = await cluster.active()
            assert names(second) == ["a"]

    in_virtual_time(run())


def test_a_replica_whose_disk_is_full_stops(tmp_path: Path) -> None:
    """No peer could be asked to send the records again."""

    async def run() -> None:
        async with Cluster(tmp_path) as cluster:
            leader = await cluster.active()
            full = next(one for one in cluster.up() if one is not leader)
            pwrite = files.pwrite
            place = str(cluster.path(full.id))

            def refuse(fd: int, data: bytes, position: int) -> int:
                if Path(f"/proc/self/fd/{fd}").resolve().is_relative_to(place):
                    raise OSError(28, "No space left on device")
                return pwrite(fd, data, position)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(files, "pwrite", refuse)
                await leader.controller.submit(setting("a"))
                await cluster.until(lambda: bool(full.failures))
            await full.kill()
            again = cluster.launch(full.id)
            await cluster.level()
            assert names(again) == ["a"]

    in_virtual_time(run())
