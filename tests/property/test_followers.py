"""Replicas of a partition agree, through crashes, elections, divergence and answers in pieces.

Three replicas with real logs. One leads at a time, elected among those in sync; the others fetch
from it. Whatever happens, committed records stay, and in the end all logs are the same bytes.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.broker.fetchers import ReplicaFetchers, Surroundings
from headrace.broker.flushing import Flusher
from headrace.broker.replication_throttles import ReplicationThrottle
from headrace.metadata.image import MetadataImage, PartitionImage, TopicImage
from headrace.protocol.batches import headers
from headrace.protocol.schemas.fetch import FetchPartition
from headrace.quotas.rates import Windows
from headrace.replication.metrics import FollowingMetrics, TopicMetrics
from headrace.replication.partition import Partition
from headrace.replication.partitions import Partitions
from headrace.runtime.durations import Durations
from headrace.runtime.tasks import Tasks
from headrace.settings.broker import BrokerSettings
from headrace.storage.config import LogConfig
from headrace.storage.log import Log
from headrace.storage.topic_partition import TopicPartition
from headrace.testing.clock import SimulatedClock
from tests.builders.leaders import Channel, Leader
from tests.builders.logs import NOW, all_records, batch_of, fresh_directories, reopened, stored

REPLICAS = (0, 1, 2)
TOPIC_ID = bytes(range(16))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 4), st.integers(0, 200)),
        st.tuples(st.just("append"), st.integers(1, 4), st.integers(0, 200)),
        st.tuples(st.just("fetch"), st.sampled_from(REPLICAS), st.integers(1, 400)),
        st.tuples(st.just("fetch"), st.sampled_from(REPLICAS), st.integers(1, 400)),
        st.tuples(st.just("fetch"), st.sampled_from(REPLICAS), st.integers(1, 400)),
        st.tuples(st.just("elect"), st.sampled_from(REPLICAS), st.just(0)),
        st.tuples(st.just("shrink"), st.sampled_from(REPLICAS), st.just(0)),
        st.tuples(st.just("crash"), st.sampled_from(REPLICAS), st.just(0)),
        st.tuples(st.just("delete records"), st.integers(0, 100), st.just(0)),
    ),
    min_size=5,
    max_size=60,
)


class Replica:
    """One node's replica of the partition, with the fetchers of the node."""

    def __init__(self, node_id: int, cluster: "Cluster", log: Log) -> None:
        self.node_id = node_id
        self.cluster = cluster
        self.host(log)

    def host(self, log: Log) -> None:
        """Start with a log, as a process does."""
        loop = asyncio.get_running_loop()
        topic = TopicImage("orders", TOPIC_ID, (self.cluster.image,))
        hosted = Partitions(lambda _: None).host(topic, self.node_id, TopicMetrics(), 0).topic
        self.partition = hosted.hosted(0)
        self.partition.attach(log, 0)
        clock = SimulatedClock()
        self.tasks = Tasks(loop)
        flusher = Flusher(
            loop, self.tasks.in_thread, _no_failure, clock=clock, durations=Durations()
        )
        self.channel: Channel | None = None
        self.size_max = 1
        self.fetchers = ReplicaFetchers(
            Surroundings(
                node_id=self.node_id,
                loop=loop,
                clock=clock,
                tasks=self.tasks,
                flusher=flusher,
                metrics=FollowingMetrics(),
                open_channel=self._open,
                broker_epoch=lambda: 1,
                image=lambda: MetadataImage(features={"metadata.version": 25}),
                settings=lambda: BrokerSettings(
                    replica_fetch_backoff_ms=0, replica_fetch_max_bytes=self.size_max
                ),
                checkpoint=_nothing,
                throttle=ReplicationThrottle("follower", clock, Windows()),
            )
        )

    @property
    def log(self) -> Log:
        return self.partition.online_log()

    def _open(self, broker_id: int, client_id: str) -> Channel:
        self.channel = Channel(self.cluster.leader_for(self.node_id))
        return self.channel

    async def fetch(self, rounds: int, size_max: int, cut_bytes: int) -> None:
        """Follow the leader for some requests, then stop in the middle of whatever it does."""
        leader = self.cluster.leader_for(self.node_id)
        leader.cut_bytes = cut_bytes
        self.size_max = size_max
        seen = len(leader.requests)
        self.fetchers.follow(self.partition)
        while len(self.fetchers) and len(leader.requests) - seen <= rounds:
            if self.channel is not None and self.channel.waits.is_set():
                break
            await asyncio.sleep(0)
        self.fetchers.stop(self.partition)

    async def end(self) -> None:
        await self.tasks.stop()


async def _nothing() -> None: ...


def _no_failure(log: Log, error: OSError) -> None:
    raise error


class Cluster:
    """The replicas, their metadata, and the records that were committed."""

    def __init__(self, root: Path, segment_bytes: int) -> None:
        self.image = PartitionImage(
            replicas=REPLICAS, isr=REPLICAS, leader=0, leader_epoch=0, partition_epoch=0
        )
        self.committed: dict[int, bytes] = {}
        """Every committed batch, by its first offset."""
        self.value = 0
        self.failures: list[AssertionError] = []
        self._leaders: dict[int, Leader] = {}
        config = LogConfig(segment_bytes=segment_bytes, file_delete_delay_ms=0)
        self.replicas = []
        for node_id in REPLICAS:
            name = TopicPartition("orders", node_id)
            log = Log.create(name, str(root / str(name)), config)
            self.replicas.append(Replica(node_id, self, log))
        self.leader.enter_epoch()

    @property
    def leader(self) -> Partition:
        return self.replicas[self.image.leader].partition

    def leader_for(self, follower: int) -> Leader:
        """The leader as one follower sees it: each has a session of its own."""
        leader = self._leaders.setdefault(follower, Leader())
        leader.partitions = {(TOPIC_ID, 0): self.leader}
        leader.on_fetch = lambda partition, asked: self.fetched(follower, asked)
        return leader

    def raise_failures(self) -> None:
        """Raise what was found while a fetcher ran, which retries after any error."""
        for failure in self.failures:
            raise failure

    def fetched(self, follower: int, asked: FetchPartition) -> None:
        in_sync = self.leader.in_sync
        assert in_sync is not None
        self.leader.acknowledge(follower, asked.fetch_offset, 0)
        log = self.leader.online_log()
        try:
            if in_sync.may_join(follower, log.high_watermark):
                self.change(isr=(*self.image.isr, follower))
            self.check_committed()
        except AssertionError as failure:
            self.failures.append(failure)

    def change(self, isr: tuple[int, ...], leader: int | None = None) -> None:
        """Publish new metadata; a leader that is named begins an epoch."""
        image = self.image
        self.image = PartitionImage(
            replicas=REPLICAS,
            isr=isr,
            leader=image.leader if leader is None else leader,
            leader_epoch=image.leader_epoch + (leader is not None),
            partition_epoch=image.partition_epoch + 1,
        )
        for replica in self.replicas:
            replica.partition.follow(self.image, 0)
        if leader is not None:
            self.leader.enter_epoch()
        self.check_committed()

    def check_committed(self) -> None:
        """Committed records stay, on the leader and on every replica that is in sync."""
        log = self.leader.online_log()
        for offset, batch in batches(log).items():
            if offset < log.high_watermark:
                assert self.committed.setdefault(offset, batch) == batch
        for node_id in {*self.image.isr, self.image.leader}:
            log = self.replicas[node_id].log
            here = batches(log)
            for offset, batch in self.committed.items():
                if offset >= log.log_start_offset:
                    assert here.get(offset) == batch, f"{node_id} lost {offset}"

    async def perform(self, step: str, first: int, second: int) -> None:
        match step:
            case "append":
                self.value += 1
                records = [b"%d" % self.value + b"x" * (second // first)] * first
                self.leader.append(batch_of(*records), NOW)
            case "fetch" if first != self.image.leader:
                await self.replicas[first].fetch(second % 4, second, second % 70)
            case "elect" if first in self.image.isr:
                self.change(self.image.isr, leader=first)
            case "shrink" if first != self.image.leader and first in self.image.isr:
                self.change(tuple(one for one in self.image.isr if one != first))
            case "delete records":
                log = self.leader.online_log()
                kept = log.high_watermark - log.log_start_offset
                log.delete_records_before(log.log_start_offset + kept * first // 100)
            case "crash":
                await self.crash(first)

    async def crash(self, node_id: int) -> None:
        """End a process; what it has written stays. A leader that returns leads a new epoch."""
        replica = self.replicas[node_id]
        await replica.end()
        was_leader = self.image.leader == node_id
        log = reopened(replica.log, recovery_point=0)
        replica.host(log)
        if was_leader:
            self.change(self.image.isr, leader=node_id)

    async def catch_up(self) -> None:
        for _ in range(20):
            for replica in self.replicas:
                if replica.node_id != self.image.leader:
                    await replica.fetch(100, 300, 30)


def batches(log: Log) -> dict[int, bytes]:
    """The batches that the files of a log hold, by their first offsets."""
    data = stored(log)
    return {
        header.base_offset: data[position : position + header.size]
        for position, header in headers(data)
    }


@pytest.fixture(scope="module")
def directories() -> Iterator[Iterator[Path]]:
    with fresh_directories() as paths:
        yield paths


@given(steps=STEPS, segment_bytes=st.integers(400, 2000))
def test_replicas_agree_and_keep_committed_records(
    steps: list[tuple[str, int, int]], segment_bytes: int, directories: Iterator[Path]
) -> None:
    async def run() -> None:
        cluster = Cluster(next(directories), segment_bytes)
        for step in steps:
            await cluster.perform(*step)
            cluster.raise_failures()
            cluster.check_committed()
        await cluster.catch_up()
        cluster.raise_failures()
        cluster.check_committed()
        led = cluster.leader.online_log()
        expected = batches(led)
        for replica in cluster.replicas:
            log = replica.log
            assert (log.log_end_offset, log.high_watermark) == (
                led.log_end_offset,
                led.high_watermark,
            )
            # A leader that was elected before it heard of a deletion keeps its records.
            start = max(log.log_start_offset, led.log_start_offset)
            assert all_records(log, start) == all_records(led, start)
            for offset, batch in batches(log).items():
                assert offset < start or expected[offset] == batch
            await replica.end()
        for replica in cluster.replicas:
            replica.log.release()

    asyncio.run(asyncio.wait_for(run(), 60))
