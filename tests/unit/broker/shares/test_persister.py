"""States of share partitions at a coordinator on another broker, and while it fails over."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from headrace.broker.shares.group_states import begin_states, forget_states
from headrace.broker.topics.internal_topics import CONSUMER_OFFSETS, SHARE_GROUP_STATE
from headrace.errors import (
    CoordinatorNotAvailable,
    FencedLeaderEpoch,
    FencedStateEpoch,
    InvalidRequest,
)
from headrace.groups.share.protocol import share_group_or_new
from headrace.groups.share.states import alter
from headrace.metadata.image import TopicImage
from headrace.protocol.schemas.delete_share_group_state import DeleteShareGroupStateRequest
from headrace.protocol.schemas.initialize_share_group_state import InitializeShareGroupStateRequest
from headrace.protocol.schemas.write_share_group_state import WriteShareGroupStateRequest
from headrace.shares.state import (
    UNINITIALIZED,
    SharePartitionKey,
    SharePartitionState,
    StateBatch,
    StateChange,
)
from tests.unit.broker.api.builders import a_topic
from tests.unit.broker.api.networks import Cluster, until, while_following

GROUP = "workers"
ON_ONE: dict[str, Any] = {"directories": ()}
ON_TWO: dict[str, Any] = {"replicas": (2,), "isr": (2,), "leader": 2, "directories": ()}
ON_BOTH: dict[str, Any] = {"replicas": (1, 2), "isr": (1, 2), "leader": 2, "directories": ()}
ORDERS: TopicImage = a_topic("orders", 150, directories=())


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.broker.shares.persister._BACKOFF_S", 0.001)
    monkeypatch.setattr("headrace.broker.shares.persister._BACKOFF_S_MAX", 0.002)


@pytest.fixture
async def cluster(tmp_path: Path) -> Cluster:
    """Broker 1 leads the share partitions and the group; broker 2 coordinates the states."""
    states, groups = a_topic(SHARE_GROUP_STATE, **ON_TWO), a_topic(CONSUMER_OFFSETS, **ON_ONE)
    return Cluster(tmp_path, states, groups, ORDERS)


def key(partition: int = 0) -> SharePartitionKey:
    return SharePartitionKey(GROUP, ORDERS.id, partition)


async def test_a_state_is_kept_by_another_broker(cluster: Cluster) -> None:
    persister = cluster[1].share_persister
    await persister.initialize(key(), 1, 7)
    assert (await persister.read(key(), 3)).start_offset == 7
    batch = StateBatch(9, 9, 2, 1)
    await persister.write(key(), StateChange(1, 3, 8, 1, [batch]))
    assert await persister.read(key(), 3) == SharePartitionState(1, 3, 8, batches=(batch,))
    assert await persister.summary(key()) == SharePartitionState(1, 3, 8, 1)
    await persister.delete(key())
    assert (await persister.summary(key())).start_offset == UNINITIALIZED


async def test_both_brokers_see_one_state(cluster: Cluster) -> None:
    await cluster[1].share_persister.initialize(key(), 1, 7)
    assert (await cluster[2].share_persister.summary(key())).start_offset == 7


async def test_errors_of_another_broker_are_raised(cluster: Cluster) -> None:
    persister = cluster[1].share_persister
    with pytest.raises(InvalidRequest):
        await persister.read(key(), 1)
    await persister.initialize(key(), 5, 0)
    with pytest.raises(FencedStateEpoch):
        await persister.initialize(key(), 4, 0)
    await persister.read(key(), 9)
    with pytest.raises(FencedLeaderEpoch):
        await persister.write(key(), StateChange(5, 8, 0, 0))


async def test_operations_of_one_turn_share_a_request(cluster: Cluster) -> None:
    persister = cluster[1].share_persister
    await asyncio.gather(*(persister.initialize(key(number), 1, 0) for number in range(3)))
    ((receiver, request),) = cluster.network.requests(InitializeShareGroupStateRequest)
    assert receiver == 2
    assert [one.partition for one in request.topics[0].partitions] == [0, 1, 2]


async def test_writes_of_one_state_are_sent_in_order(cluster: Cluster) -> None:
    persister = cluster[1].share_persister
    await persister.initialize(key(), 1, 0)
    changes = [StateChange(1, 0, start, start) for start in (4, 5)]
    await asyncio.gather(*(persister.write(key(), change) for change in changes))
    assert len(cluster.network.requests(WriteShareGroupStateRequest)) == 2
    assert (await persister.summary(key())).start_offset == 5


async def test_an_operation_outlasts_a_failover(tmp_path: Path) -> None:
    """RMQ-1: members see a delay, not an error."""
    cluster = Cluster(tmp_path, a_topic(SHARE_GROUP_STATE, **ON_BOTH), ORDERS)
    cluster.network.away.add(2)
    writing = asyncio.ensure_future(cluster[1].share_persister.initialize(key(), 1, 7))
    await until(lambda: len(cluster.network.asked) > 2)
    assert not writing.done()
    cluster.move(SHARE_GROUP_STATE, -1)
    await asyncio.sleep(0.005)
    cluster.move(SHARE_GROUP_STATE, 1)
    await while_following(cluster, SHARE_GROUP_STATE, writing)
    assert (await cluster[1].share_persister.summary(key())).start_offset == 7


async def test_a_coordinator_that_stays_away_is_given_up(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.broker.shares.persister._RETRY_FOR_S", 0.01)
    cluster.network.away.add(2)
    with pytest.raises(CoordinatorNotAvailable):
        await cluster[1].share_persister.read(key(), 1)


async def test_the_states_of_a_group_are_begun_and_deleted_in_few_requests(
    cluster: Cluster,
) -> None:
    """RMQ-1: 150 partitions in two turns."""
    broker = cluster[1]
    shard = broker.groups.shard_for(GROUP)
    group = share_group_or_new(shard.state, GROUP)
    offsets = {ORDERS.id: dict.fromkeys(range(150), 5)}
    alteration = await shard.applied(alter(shard.state, group, offsets, 0))
    states = broker.share_persister
    begun = await begin_states(states, shard, GROUP, alteration.state_epoch, alteration.offsets)
    assert begun == {}
    group = share_group_or_new(shard.state, GROUP)
    assert group.states.initialized[ORDERS.id].partitions == frozenset(range(150))
    assert len(cluster.network.requests(InitializeShareGroupStateRequest)) == 2
    everything = {ORDERS.id: frozenset(range(150))}
    assert await forget_states(states, shard, GROUP, everything) == {}
    assert len(cluster.network.requests(DeleteShareGroupStateRequest)) == 2


async def test_a_state_is_shown_when_it_is_committed(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, a_topic(SHARE_GROUP_STATE, **ON_BOTH), ORDERS)
    initializing = asyncio.ensure_future(cluster[1].share_persister.initialize(key(), 1, 7))
    await until(lambda: cluster[2].log(SHARE_GROUP_STATE, 0).log_end_offset == 1)
    summing = asyncio.ensure_future(cluster[2].share_persister.summary(key()))
    await asyncio.sleep(0.005)
    assert not initializing.done()
    assert not summing.done()
    cluster.follow_up(SHARE_GROUP_STATE)
    await initializing
    assert (await summing).start_offset == 7


async def test_records_are_not_pruned_before_the_newer_ones_are_committed(tmp_path: Path) -> None:
    """A failover that takes back the newest snapshot needs the one before it."""
    cluster = Cluster(tmp_path, a_topic(SHARE_GROUP_STATE, **ON_BOTH), ORDERS)
    coordinator = cluster[2].share_coordinator
    first = cluster[2].share_persister.initialize(key(), 1, 0)
    await while_following(cluster, SHARE_GROUP_STATE, first)
    second = asyncio.ensure_future(cluster[2].share_persister.initialize(key(), 2, 0))
    await asyncio.sleep(0)
    coordinator.prune()
    log = cluster[2].log(SHARE_GROUP_STATE, 0)
    assert (log.log_start_offset, log.log_end_offset) == (0, 2)
    cluster.follow_up(SHARE_GROUP_STATE)
    await second
    await until(lambda: log.log_start_offset == 1)
