"""Followers that are answered only what has changed miss nothing, whatever happens in between.

A follower here names a partition only if its own place has changed, as Kafka's followers do. After
any steps a few fetches bring all records, high watermarks and starts of logs to each of them.
"""

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.broker.replica_sessions import ReplicaSession
from headrace.errors import FencedLeaderEpoch, UnknownLeaderEpoch
from headrace.protocol.batches import headers
from headrace.protocol.schemas.fetch import FetchPartition, PartitionData
from headrace.replication.delayed import Delayed
from tests.builders.logs import fresh_directories
from tests.builders.replicated_partitions import (
    NOT_REPORTED,
    SECOND,
    THIRD,
    AnsweredFetch,
    FollowerClient,
    ReplicatedNode,
    place_at,
)

PARTITIONS = 4
FETCHES_MAX = 12
LONG_MS = 60_000


class Copy:
    """A follower's copy of one partition: only its offsets."""

    def __init__(self) -> None:
        self.end = self.start = self.high_watermark = self.epoch = 0


class Follower:
    """Fetches with a session, and keeps what it got."""

    def __init__(self, node: ReplicatedNode, broker_id: int, version: int) -> None:
        self._node = node
        self._broker_id = broker_id
        self._version = version
        self.copies = [Copy() for _ in range(PARTITIONS)]
        self.followed = set(range(PARTITIONS))
        self._forgotten: set[int] = set()
        self._changed = set(range(PARTITIONS))
        self._waiting: AnsweredFetch | None = None
        self._client = FollowerClient(node, broker_id, version=version)

    def restart(self) -> None:
        """Lose the session, as with a connection that breaks."""
        self._waiting = None
        self._client = FollowerClient(self._node, self._broker_id, version=self._version)
        self._changed, self._forgotten = set(self.followed), set()

    def forget(self, index: int) -> None:
        self.followed.discard(index)
        self._changed.discard(index)
        self._forgotten.add(index)

    def follow(self, index: int) -> None:
        self.followed.add(index)
        self._changed.add(index)

    def fetch(self, wait_ms: int = 0) -> None:
        if self._waiting is not None or not self.followed:
            return
        named = [self._place(index) for index in sorted(self._changed)]
        gone = tuple(sorted(self._forgotten - self.followed))
        self._changed, self._forgotten = set(), set()
        self._waiting = self._client.fetch(*named, forgotten=gone, wait_ms=wait_ms)
        self.take()

    def take(self) -> None:
        """Take the answer, if there is one by now."""
        if self._waiting is None or self._waiting.answer is None:
            return
        fetched, self._waiting = self._waiting, None
        assert fetched.answer is not None
        if fetched.answer.error_code:
            self.restart()
            return
        self._client.session_id = fetched.answer.session_id
        for index, answer in fetched.partitions.items():
            if index in self.followed:
                self._keep(index, answer)

    def _keep(self, index: int, answer: PartitionData) -> None:
        copy = self.copies[index]
        if answer.error_code in (FencedLeaderEpoch.code, UnknownLeaderEpoch.code):
            copy.epoch = self._node.topic.partitions[index].leader_epoch
            self._changed.add(index)
            return
        assert not answer.error_code
        before = copy.end, copy.start
        for _, header in headers(bytes(answer.records or b"")):
            assert header.base_offset == copy.end
            copy.end = header.next_offset
        leader = self._node.broker.log("t", index)
        assert answer.high_watermark <= leader.high_watermark
        copy.high_watermark = max(copy.high_watermark, min(answer.high_watermark, copy.end))
        if answer.log_start_offset <= copy.high_watermark:
            copy.start = max(copy.start, answer.log_start_offset)
        if before != (copy.end, copy.start):
            self._changed.add(index)

    def _place(self, index: int) -> FetchPartition:
        copy = self.copies[index]
        return place_at(
            index,
            copy.end,
            epoch=copy.epoch,
            log_start_offset=copy.start,
            high_watermark=copy.high_watermark if self._version >= 18 else NOT_REPORTED,
        )


async def turn() -> None:
    await asyncio.sleep(0)
    await asyncio.sleep(0)


def expire_waiting(node: ReplicatedNode) -> None:
    """Let the time of all fetches that wait be up."""
    for session in node.broker.fetch_sessions._sessions.values():
        assert isinstance(session, ReplicaSession)
        for waiter in list(session.waiters):
            assert isinstance(waiter, Delayed)
            waiter._expire()


async def scenario(root: Path, seed: int) -> None:
    rng = random.Random(seed)
    node = ReplicatedNode(root, PARTITIONS)
    followers = [Follower(node, one, rng.choice((17, 18))) for one in (SECOND, THIRD)]
    for _ in range(rng.randrange(10, 120)):
        index, follower = rng.randrange(PARTITIONS), rng.choice(followers)
        match rng.choice(_STEPS):
            case "append":
                node.append(*[b"v"] * rng.randrange(1, 4), partition=index)
            case "fetch":
                follower.fetch()
            case "wait":
                follower.fetch(wait_ms=LONG_MS)
            case "turn":
                await turn()
                for one in followers:
                    one.take()
            case "new epoch":
                epoch = node.topic.partitions[index].leader_epoch
                node.change(index, leader_epoch=epoch + 1, partition_epoch=epoch + 1)
                node.partitions[index].enter_epoch()
            case "delete":
                log = node.broker.log("t", index)
                node.partitions[index].delete_records_before(
                    rng.randint(log.log_start_offset, log.high_watermark)
                )
            case "forget":
                follower.forget(index)
            case "follow":
                follower.follow(index)
            case "restart":
                follower.restart()
    for follower in followers:
        for index in range(PARTITIONS):
            if index not in follower.followed:
                follower.follow(index)
    for _ in range(FETCHES_MAX):
        for follower in followers:
            await turn()
            follower.take()
            if follower._waiting is not None:
                expire_waiting(node)
                follower.take()
            follower.fetch()
    for index, partition in enumerate(node.partitions):
        log = partition.online_log()
        assert log.high_watermark == log.log_end_offset
        for follower in followers:
            copy = follower.copies[index]
            found = copy.start, copy.high_watermark, copy.end
            assert found == (log.log_start_offset, log.high_watermark, log.log_end_offset)
    live = {one._client.session_id for one in followers}
    for session in node.broker.fetch_sessions._sessions.values():
        assert isinstance(session, ReplicaSession)
        assert session.id not in live or not session.changed


_STEPS = (
    *("append", "fetch", "wait", "turn") * 4,
    *("new epoch", "delete", "forget", "follow", "restart"),
)


@pytest.fixture(scope="module")
def directories() -> Iterator[Iterator[Path]]:
    with fresh_directories() as made:
        yield made


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=300
)
@given(seed=st.integers(0, 1 << 32))
def test_a_follower_misses_nothing(directories: Iterator[Path], seed: int) -> None:
    asyncio.run(scenario(next(directories), seed))
