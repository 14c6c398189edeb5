"""Waiting for the replicas of a partition."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from headrace.broker.commit_waits import committed
from headrace.errors import NotLeaderOrFollower, RequestTimedOut
from headrace.replication.partition import Partition
from headrace.transactions.coordinator import ProducerIdAndEpoch
from tests.unit.broker.api.builders import a_topic
from tests.unit.broker.api.networks import Cluster
from tests.unit.broker.api.transactions.coordinated import record_of

ON_BOTH: dict[str, Any] = {"replicas": (1, 2), "isr": (1, 2), "leader": 1, "directories": ()}


def appended(cluster: Cluster) -> Partition:
    """A partition with a record that its follower does not have."""
    partition = cluster[1].partitions.led("orders", 0)
    batch = record_of(ProducerIdAndEpoch(-1, -1), -1, transactional=False)
    partition.append(batch, cluster[1].clock.now_ms())
    return partition


@pytest.fixture
async def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path, a_topic("orders", **ON_BOTH))


async def test_a_wait_ends_with_the_commit(cluster: Cluster) -> None:
    partition = appended(cluster)
    waiting = asyncio.ensure_future(committed(partition, 1, 10))
    await asyncio.sleep(0)
    assert not waiting.done()
    cluster.follow_up("orders")
    await waiting
    assert not partition.waiters


async def test_a_wait_ends_with_the_leadership(cluster: Cluster) -> None:
    waiting = asyncio.ensure_future(committed(appended(cluster), 1, 10))
    await asyncio.sleep(0)
    cluster.move("orders", 2)
    with pytest.raises(NotLeaderOrFollower):
        await waiting


async def test_a_wait_ends_with_its_time(cluster: Cluster) -> None:
    with pytest.raises(RequestTimedOut):
        await committed(appended(cluster), 1, 0)


async def test_a_caller_that_is_gone_leaves_no_wait_behind(cluster: Cluster) -> None:
    partition = appended(cluster)
    waiting = asyncio.ensure_future(committed(partition, 1, 10))
    await asyncio.sleep(0)
    assert partition.waiters
    waiting.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not partition.waiters
