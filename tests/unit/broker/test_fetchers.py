"""A follower's log becomes that of its leader, whatever the leader answers."""

import asyncio
import errno
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from headrace.broker import fetchers
from headrace.broker.fetchers import LeaderChannel, ReplicaFetchers, Surroundings
from headrace.broker.flushing import Flusher
from headrace.broker.replication_throttles import ReplicationThrottle
from headrace.metadata.image import (
    ConfigResource,
    MetadataImage,
    PartitionImage,
    ResourceType,
    TopicImage,
)
from headrace.protocol.message import Message
from headrace.protocol.schemas.fetch import FetchPartition
from headrace.quotas.rates import Windows
from headrace.replication.metrics import FollowingMetrics, TopicMetrics
from headrace.replication.partition import Partition
from headrace.replication.partitions import Partitions
from headrace.runtime.clock import SystemClock
from headrace.runtime.durations import Durations
from headrace.runtime.tasks import Tasks
from headrace.settings.broker import BrokerSettings
from headrace.storage.config import LogConfig
from headrace.storage.log import Log
from headrace.storage.topic_partition import TopicPartition
from tests.builders.failing_disk import failing, failing_writes
from tests.builders.leaders import OUT_OF_RANGE, Channel, Leader, Lost
from tests.builders.logs import NOW, append, batch_of, stored

NODE, LEADER, OTHER = 1, 2, 3
TOPIC_ID = bytes(range(16))


def image(leader: int = LEADER, epoch: int = 1) -> PartitionImage:
    return PartitionImage(
        replicas=(LEADER, OTHER, NODE),
        isr=(LEADER, OTHER, NODE),
        leader=leader,
        leader_epoch=epoch,
    )


def hosted(
    root: Path, node_id: int, first: PartitionImage, count: int = 1, **config: Any
) -> list[Partition]:
    """The partitions of one node, each with a log."""
    partitions = Partitions(lambda _: None)
    topic = TopicImage("orders", TOPIC_ID, (first,) * count)
    found = []
    for partition in partitions.host(topic, node_id, TopicMetrics(), 0).topic.partitions:
        assert partition is not None
        name = TopicPartition("orders", partition.index)
        path = root / str(node_id) / str(name)
        path.parent.mkdir(exist_ok=True)
        partition.attach(Log.create(name, str(path), LogConfig(**config)), 0)
        found.append(partition)
    return found


class Follower:
    """Fetchers on a loop, and the leaders that they reach."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.tasks = Tasks(loop)
        self.metrics = FollowingMetrics()
        self.leaders: dict[int, Leader] = {}
        self.channels: list[Channel] = []
        self.settings = BrokerSettings(replica_fetch_backoff_ms=1)
        self.checkpoints = 0
        self.unreachable = 0
        self.first_channel: LeaderChannel | None = None
        self.metadata_version = 25
        clock = SystemClock()
        self.throttle = ReplicationThrottle("follower", clock, Windows())
        self.synced: list[Log] = []
        self.flusher = Flusher(
            loop,
            self.tasks.in_thread,
            lambda log, error: log.fail(error),
            clock=clock,
            durations=Durations(),
        )
        self.fetchers = ReplicaFetchers(
            Surroundings(
                node_id=NODE,
                loop=loop,
                clock=clock,
                tasks=self.tasks,
                flusher=self.flusher,
                metrics=self.metrics,
                open_channel=self._open,
                broker_epoch=lambda: 77,
                image=lambda: MetadataImage(features={"metadata.version": self.metadata_version}),
                settings=lambda: self.settings,
                checkpoint=self._checkpoint,
                throttle=self.throttle,
            )
        )

    def _open(self, broker_id: int, client_id: str) -> LeaderChannel:
        first, self.first_channel = self.first_channel, None
        if first is not None:
            return first
        if self.unreachable:
            self.unreachable -= 1
            raise Lost(f"broker {broker_id} has no address")
        channel = Channel(self.leaders[broker_id])
        self.channels.append(channel)
        return channel

    async def _checkpoint(self) -> None:
        self.checkpoints += 1

    async def idle(self) -> Channel:
        """Wait until the fetcher has nothing to do; return the channel on which it waits."""
        await until(lambda: self.channels and self.channels[-1].waits.is_set())
        return self.channels[-1]

    async def news(self) -> Channel:
        """Have a waiting fetch answered, and wait until all of it is applied."""
        (await self.idle()).nudge()
        return await self.idle()


@asynccontextmanager
async def following(*leaders: Leader) -> AsyncIterator[Follower]:
    follower = Follower()
    follower.leaders = dict(zip((LEADER, OTHER), leaders, strict=False))
    try:
        yield follower
    finally:
        await follower.tasks.stop()


def on_loop(test: Callable[[Path], Coroutine[Any, Any, None]]) -> Callable[[Path], None]:
    """Run a test on a loop of its own."""

    def run(tmp_path: Path) -> None:
        asyncio.run(asyncio.wait_for(test(tmp_path), 5))

    return run


def pair(root: Path, count: int = 1, **config: Any) -> tuple[list[Partition], list[Partition]]:
    """The partitions of a leader in epoch 1 and of its follower."""
    led = hosted(root, LEADER, image(), count, **config)
    for partition in led:
        partition.enter_epoch()
    return led, hosted(root, NODE, image(), count, **config)


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0)


def write(partition: Partition, *values: bytes) -> None:
    for value in values or (b"value",):
        partition.append(batch_of(value), NOW)


def log_of(partition: Partition) -> Log:
    return partition.online_log()


def commit(partition: Partition) -> None:
    """Commit all that the leader has."""
    log_of(partition).advance_high_watermark(log_of(partition).log_end_offset)


@on_loop
async def test_records_offsets_and_epochs_are_those_of_the_leader(tmp_path: Path) -> None:
    (led,), (followed,) = pair(tmp_path)
    leader = Leader([led])
    write(led, b"1", b"2", b"3")
    async with following(leader) as follower:
        follower.fetchers.follow(followed)
        await follower.idle()
        assert stored(log_of(followed)) == stored(log_of(led))
        assert log_of(followed).leader_epochs.entries == log_of(led).leader_epochs.entries
        write(led, b"4")
        await follower.news()
        assert log_of(followed).log_end_offset == 4
        assert follower.metrics.bytes_in == len(stored(log_of(led)))
        assert [one.topics != [] for one in leader.requests] == [True, True, True]
        state = leader.requests[0].replica_state
        assert (state.replica_id, state.replica_epoch) == (NODE, 77)


@on_loop
async def test_the_high_watermark_follows_and_wakes_those_who_wait(tmp_path: Path) -> None:
    (led,), (followed,) = pair(tmp_path)
    leader = Leader([led])
    committed: list[int] = []
    followed.on_committed = lambda: committed.append(log_of(followed).high_watermark)
    write(led, b"1", b"2")
    async with following(leader) as follower:
        follower.fetchers.follow(followed)
        await follower.idle()
        assert log_of(followed).high_watermark == 0
        commit(led)
        await follower.news()
        assert (log_of(followed).high_watermark, committed) == (2, [2])
        assert follower.metrics.fetchers["ReplicaFetcherThread-0-2"].requests == 2


@on_loop
async def test_the_start_of_the_log_follows_the_leaders(tmp_path: Path) -> None:
    (led,), (followed,) = pair(tmp_path)
    leader = Leader([led])
    write(led, b"1", b"2", b"3")
    commit(led)
    async with following(leader) as follower:
        follower.fetchers.follow(followed)
        await follower.idle()
        log_of(led).delete_records_before(2)
        await follower.news()
        assert log_of(followed).log_start_offset == 2
        assert leader.requests[-1].topics[0].partitions[0].log_start_offset == 2


@on_loop
async def test_idle_partitions_are_not_named(tmp_path: Path) -> None:
    led, followed = pair(tmp_path, 50)
    leader = Leader(led)
    async with following(leader) as follower:
        for partition in followed:
            follower.fetchers.follow(partition)
        await follower.idle()
        write(led[7])
        await follower.news()
        names = [[p.partition for t in one.topics for p in t.partitions] for one in leader.requests]
        assert names == [list(range(50)), [], [7]]


@on_loop
async def test_a_follower_truncates_where_its_epochs_diverge(tmp_path: Path) -> None:
    """It led epochs 2 and 4 alone, without its records being committed."""
    (led,), (followed,) = pair(tmp_path)
    for epoch, value in ((0, b"common"), (1, b"common")):
        append(log_of(led), value, leader_epoch=epoch)
        append(log_of(followed), value, leader_epoch=epoch)
    for epoch in (2, 4):
        append(log_of(followed), b"lost", leader_epoch=epoch)
    log_of(followed).begin_epoch(5)
    for epoch in (3, 6):
        append(log_of(led), b"kept", leader_epoch=epoch)
    for partition in (led, followed):
        partition.follow(image(epoch=6), 0)
    async with following(Leader([led])) as follower:
        follower.fetchers.follow(followed)
        await follower.idle()
        assert stored(log_of(followed)) == stored(log_of(led))
        assert log_of(followed).leader_epochs.entries == log_of(led).leader_epochs.entries
        assert follower.checkpoints > 0


@on_loop
async def test_an_epoch_without_records_is_no_endless_divergence(tmp_path: Path) -> None:
    (led,), (followed,) = pair(tmp_path)
    for partition in (led, followed):
        append(log_of(partition), leader_epoch=1)
    log_of(followed).begin_epoch(3)
    append(log_of(led), leader_epoch=2)
    for partition in (led, followed):
        partition.follow(image(epoch=4), 0)
    led.enter_epoch()
    async with following(Leader([led])) as follower:
        follower.fetchers.follow(followed)
        await follower.idle()
        assert stored(log_of(followed)) == stored(log_of(led))


@on_loop
async def test_a_log_longer_than_its_leaders_is_cut_to_its_end(tmp_path: Path) -> None:
    (led,), (followed,) = pair(tmp_path)
    write(led, b"1")
    append(log_of(followed), b"1", leader_epoch=1)
    append(log_of(followed), b"2", leader_epoch=1)
    leader = Leader([led])
    leader.partition_errors = [OUT_OF_RANGE]
    async with following(leader) as follower:
        follower.fetchers.follow(followed)
        await follower.idle()
        assert stored(log_of(followed)) == stored(log_of(led))
        assert [one.topics[0].partitions[0].timestamp for one in leader.offsets_requests] == [-1]


@on_loop
async def test_a_log_that_ends_before_its_leaders_restarts_at_its_start(tmp_path: Path) -> None:
    (led,), (followed,) = pair(tmp_path, segment_bytes=100)
    write(led, b"1", b"2", b"3", b"4")
    append(log_of(followed), b"1", leader_epoch=1)
    commit(led)
    log_of(led).delete_records_before(2)
    leader = Leader([led])
    async with following(leader) as follower:
        follower.fetchers.follow(followed)
        await follower.idle()
        log = log_of(followed)
        assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (2, 4, 4)
        assert stored(log) == stored(log_of(led))
        assert len(leader.offsets_requests) == 2


@on_loop
async def test_a_leaders_log_may_start_within_a_batch(tmp_path: Path) -> None:
    (led,), (followed,) = pair(tmp_path)
    led.append(batch_of(b"1", b"2", b"3", b"4"), NOW)
    write(led, b"5")
    commit(led)
    log_of(led).delete_records_before(2)
    async with following(Leader([led])) as follower:
        follower.fetchers.follow(followed)
        await follower.idle()
        log = log_of(followed)
        assert (log.log_start_offset, log.log_end_offset) == (2, 5)
        assert stored(log) == stored(log_of(led))


@on_loop
async def test_out_of_range_within_the_range_is_tried_again(tmp_path: Path) -> None:
    (led,), (followed,) = pair(tmp_path)
    write(led)
    leader = Leader([led])
    leader.partition_errors = [OUT_OF_RANGE]
    async with following(leader) as follower:
        follower.fetchers.follow(followed)
        await follower.idle()
        assert stored(log_of(followed)) == stored(log_of(led))


@on_loop
async def test_a_leader_that_does_not_lead_yet_is_asked_again(tmp_path: Path) -> None:
    (led,), (followed,) = pair(tmp_path)
    write(led)
    leader = Leader([led])
    leader.partition_errors = [75, 6, 100, 3, 103, -1]
    async with following(leader) as follower:
        follower.fetchers.follow(followed)
        await follower.idle()
        assert log_of(followed).log_end_offset == 1
        assert follower.metrics.failed_partitions == 0


@on_loop
async def test_a_fenced_epoch_waits_for_new_metadata(tmp_path: Path) -> None:
    led, followed = pair(tmp_path, 2)
    leader = Leader(led)
    led[0].follow(image(epoch=2), 0)
    async with following(leader) as follower:
        for partition in followed:
            follower.fetchers.follow(partition)
        await follower.idle()
        assert follower.metrics.failed_partitions == 1
        assert len(follower.fetchers) == 1
        write(led[0])
        followed[0].follow(image(epoch=2), 0)
        follower.fetchers.follow(followed[0])
        await until(
            lambda: not (follower.fetchers._failed or log_of(followed[0]).log_end_offset < 1)
        )
        assert follower.metrics.failed_partitions == 0


@on_loop
async def test_tiered_records_stop_the_partition_and_not_the_others(tmp_path: Path) -> None:
    led, followed = pair(tmp_path, 2)
    leader = Leader(led)
    leader.partition_errors = [109]
    write(led[1])
    async with following(leader) as follower:
        for partition in followed:
            follower.fetchers.follow(partition)
        await follower.idle()
        assert follower.metrics.failed_partitions == 1
        assert log_of(followed[1]).log_end_offset == 1


@pytest.mark.parametrize("error", [70, 71, 106, -1])
def test_errors_of_a_whole_fetch_open_another_session(tmp_path: Path, error: int) -> None:
    @on_loop
    async def run(tmp_path: Path) -> None:
        (led,), (followed,) = pair(tmp_path)
        leader = Leader([led])
        leader.errors = [error]
        write(led)
        async with following(leader) as follower:
            follower.fetchers.follow(followed)
            await follower.idle()
            assert stored(log_of(followed)) == stored(log_of(led))
            assert [one.session_epoch for one in leader.requests[:2]] == [0, 0]

    run(tmp_path)


@on_loop
async def test_an_unreachable_leader_is_tried_again(tmp_path: Path) -> None:
    (led,), (followed,) = pair(tmp_path)
    write(led)
    async with following(Leader([led])) as follower:
        follower.unreachable = 5
        follower.fetchers.follow(followed)
        await follower.idle()
        assert log_of(followed).log_end_offset == 1


@on_loop
async def test_a_lost_connection_begins_a_full_session(tmp_path: Path) -> None:
    (led,), (followed,) = pair(tmp_path)
    leader = Leader([led])
    async with following(leader) as follower:
        follower.fetchers.follow(followed)
        (await follower.idle()).close()
        write(led)
        await until(lambda: log_of(followed).log_end_offset == 1)
        assert len(follower.channels) == 2


@on_loop
async def test_a_partition_added_while_a_fetch_waits_is_fetched_soon(tmp_path: Path) -> None:
    led, followed = pair(tmp_path, 3)
    leader = Leader(led)
    async with following(leader) as follower:
        follower.fetchers.follow(followed[0])
        await follower.idle()
        for partition in followed[1:]:
            write(led[partition.index])
            follower.fetchers.follow(partition)
        await until(lambda: log_of(followed[2]).log_end_offset == 1)
        await follower.idle()
        assert len(follower.channels) == 2
        assert follower.channels[0].is_closed


class Connecting:
    """A channel that is still connecting; closing it cancels the request, as asyncio does."""

    def __init__(self) -> None:
        self.asked = asyncio.get_running_loop().create_future()

    async def ask(
        self, request: Message, *, version: int | None = None, timeout_s: float = 30.0
    ) -> Any:
        return await self.asked

    def close(self) -> None:
        self.asked.cancel()


@on_loop
async def test_a_fetcher_survives_that_its_connecting_channel_is_closed(tmp_path: Path) -> None:
    led, followed = pair(tmp_path, 2)
    async with following(Leader(led)) as follower:
        connecting = Connecting()
        follower.first_channel = connecting
        follower.fetchers.follow(followed[0])
        await until(lambda: follower.first_channel is None)
        write(led[1])
        follower.fetchers.follow(followed[1])
        await follower.idle()
        assert connecting.asked.cancelled()
        assert log_of(followed[1]).log_end_offset == 1


@on_loop
async def test_other_tasks_run_while_a_large_answer_is_applied(tmp_path: Path) -> None:
    led, followed = pair(tmp_path, 5)
    for partition in led:
        write(partition)
    seen: set[int] = set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fetchers, "_TURN_S", 0)
        async with following(Leader(led)) as follower:
            for partition in followed:
                follower.fetchers.follow(partition)
            while len(seen) < 6:
                seen.add(sum(log_of(one).log_end_offset for one in followed))
                await asyncio.sleep(0)
    assert seen == {0, 1, 2, 3, 4, 5}


@on_loop
async def test_a_fetcher_without_partitions_ends(tmp_path: Path) -> None:
    (led,), (followed,) = pair(tmp_path)
    leader = Leader([led])
    async with following(leader) as follower:
        follower.fetchers.follow(followed)
        channel = await follower.idle()
        follower.fetchers.stop(followed)
        await until(lambda: not (follower.metrics.fetchers))
        assert channel.is_closed
        assert len(follower.fetchers) == 0
        write(led)
        follower.fetchers.follow(followed)
        await follower.idle()
        assert log_of(followed).log_end_offset == 1


@on_loop
async def test_a_late_answer_changes_nothing_after_the_follower_has_become_leader(
    tmp_path: Path,
) -> None:
    led, followed = pair(tmp_path, 2)
    leader = Leader(led)
    async with following(leader) as follower:
        for partition in followed:
            follower.fetchers.follow(partition)
        channel = await follower.idle()
        write(led[0])
        channel.nudge()
        followed[0].follow(image(leader=NODE, epoch=2), 0)
        follower.fetchers.stop(followed[0])
        followed[0].enter_epoch()
        await follower.idle()
        assert log_of(followed[0]).log_end_offset == 0


@on_loop
async def test_a_partition_moves_to_its_new_leader(tmp_path: Path) -> None:
    (led,), (followed,) = pair(tmp_path)
    (other,) = hosted(tmp_path, OTHER, image())
    write(led, b"1", b"uncommitted")
    append(log_of(other), b"1", leader_epoch=1)
    async with following(Leader([led]), Leader([other])) as follower:
        follower.fetchers.follow(followed)
        await follower.idle()
        for partition in (other, followed):
            partition.follow(image(leader=OTHER, epoch=2), 0)
        other.enter_epoch()
        write(other, b"2")
        follower.fetchers.follow(followed)
        await until(lambda: stored(log_of(followed)) == stored(log_of(other)))
        assert log_of(followed).leader_epochs.entries == log_of(other).leader_epochs.entries


@on_loop
async def test_batches_that_are_cut_off_are_fetched_again(tmp_path: Path) -> None:
    (led,), (followed,) = pair(tmp_path)
    leader = Leader([led])
    leader.cut_bytes = 20
    write(led, *[b"x" * 50] * 5)
    async with following(leader) as follower:
        follower.fetchers.follow(followed)
        await follower.idle()
        assert stored(log_of(followed)) == stored(log_of(led))
        assert len(leader.requests) == 3


@on_loop
async def test_damaged_records_are_fetched_again(tmp_path: Path) -> None:
    (led,), (followed,) = pair(tmp_path)
    leader = Leader([led])
    write(led)
    path = Path(log_of(led).segments[0].path(".log"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + b"!")

    def mend(partition: Partition, asked: FetchPartition) -> None:
        if len(leader.requests) > 3:
            path.write_bytes(whole)

    leader.on_fetch = mend
    async with following(leader) as follower:
        follower.fetchers.follow(followed)
        await follower.idle()
        assert stored(log_of(followed)) == whole


@on_loop
async def test_a_full_disk_delays_a_partition_and_a_broken_one_stops_it(tmp_path: Path) -> None:
    led, followed = pair(tmp_path, 2)
    leader = Leader(led)
    async with following(leader) as follower:
        for partition in followed:
            follower.fetchers.follow(partition)
        await follower.idle()
        write(led[0], b"x" * 100)
        with failing_writes(after_bytes=0, code=errno.ENOSPC):
            (await follower.idle()).nudge()
            await until(lambda: any(one.failures for one in _followed(follower)))
        await until(lambda: log_of(followed[0]).log_end_offset == 1)
        log_of(followed[1]).fail(OSError(errno.EIO, "Input/output error"))
        write(led[1])
        await follower.news()
        assert follower.metrics.failed_partitions == 1


def _followed(follower: Follower) -> list[Any]:
    return [
        one
        for fetcher in follower.fetchers._fetchers.values()
        for one in fetcher._session.followed.values()
    ]


@on_loop
async def test_a_topic_that_syncs_each_message_is_synced_before_the_next_fetch(
    tmp_path: Path,
) -> None:
    (led,), (followed,) = pair(tmp_path, flush_messages=1)
    leader = Leader([led])
    unsynced: list[int] = []
    leader.on_fetch = lambda partition, asked: unsynced.append(log_of(followed).unflushed_messages)
    write(led)
    async with following(leader) as follower:
        follower.fetchers.follow(followed)
        await follower.idle()
        assert set(unsynced) == {0}
        assert log_of(followed).recovery_point == 1


@on_loop
async def test_records_that_a_broken_disk_did_not_sync_are_not_acknowledged(
    tmp_path: Path,
) -> None:
    (led,), (followed,) = pair(tmp_path, flush_messages=1)
    leader = Leader([led])
    write(led)
    async with following(leader) as follower:
        with failing("fsync"):
            follower.fetchers.follow(followed)
            await until(lambda: follower.metrics.failed_partitions)
        offsets = [p.fetch_offset for r in leader.requests for t in r.topics for p in t.partitions]
        assert offsets == [0]


@on_loop
async def test_without_a_leader_or_a_log_nothing_is_fetched(tmp_path: Path) -> None:
    (led,), (followed,) = pair(tmp_path)
    async with following(Leader([led])) as follower:
        followed.follow(image(leader=-1, epoch=2), 0)
        follower.fetchers.follow(followed)
        followed.follow(image(leader=LEADER, epoch=3), 0)
        followed.log = None
        follower.fetchers.follow(followed)
        assert (len(follower.fetchers), follower.channels) == (0, [])


@on_loop
async def test_a_log_without_epochs_is_cut_to_its_committed_records(tmp_path: Path) -> None:
    (led,), (followed,) = pair(tmp_path)
    write(led, b"1", b"2")
    append(log_of(followed), b"1", leader_epoch=1)
    append(log_of(followed), b"other", leader_epoch=1)
    log_of(followed).high_watermark = 1
    log_of(followed).leader_epochs.clear()
    async with following(Leader([led])) as follower:
        follower.fetchers.follow(followed)
        await follower.idle()
        assert stored(log_of(followed)) == stored(log_of(led))


@on_loop
async def test_partitions_are_spread_over_the_fetchers_of_a_leader(tmp_path: Path) -> None:
    led, followed = pair(tmp_path, 4)
    async with following(Leader(led), Leader(led)) as follower:
        follower.settings = BrokerSettings(num_replica_fetchers=2)
        for partition in followed:
            follower.fetchers.follow(partition)
        assert sorted(follower.metrics.fetchers) == [
            "ReplicaFetcherThread-0-2",
            "ReplicaFetcherThread-1-2",
        ]
        lags = {name: len(list(one.lags())) for name, one in follower.metrics.fetchers.items()}
        assert set(lags.values()) == {2}


@on_loop
async def test_the_lag_is_what_the_leader_has_committed_beyond_the_log(tmp_path: Path) -> None:
    (led,), (followed,) = pair(tmp_path)
    leader = Leader([led])
    write(led, *[b"x" * 100] * 4)
    commit(led)
    async with following(leader) as follower:
        follower.settings = BrokerSettings(replica_fetch_max_bytes=200)
        lags: list[int] = []
        leader.on_fetch = lambda partition, asked: lags.extend(
            one.records for each in follower.metrics.fetchers.values() for one in each.lags()
        )
        follower.fetchers.follow(followed)
        await follower.idle()
        assert lags[:5] == [0, 3, 2, 1, 0]


@on_loop
async def test_throttled_partitions_that_lag_are_held_back(tmp_path: Path) -> None:
    leaders, partitions = pair(tmp_path, count=2)
    write(leaders[0], b"1")
    topic = ConfigResource(ResourceType.TOPIC, "orders")
    broker = ConfigResource(ResourceType.BROKER, "")
    configs = {
        topic: {"follower.replication.throttled.replicas": "*"},
        broker: {"follower.replication.throttled.rate": "1"},
    }
    async with following(Leader(leaders)) as follower:
        follower.throttle.follow(MetadataImage(configs=configs), NODE)
        for partition in partitions:
            follower.fetchers.follow(partition)
        await follower.idle()
        assert follower.throttle.is_exceeded()  # The first record has counted.
        (fetcher,) = follower.fetchers._fetchers.values()
        late, current = fetcher._session.followed.values()
        late.lag = 1
        fetcher._hold_back(0)
        assert (late.due_ms, current.due_ms) == (1000, 0)
