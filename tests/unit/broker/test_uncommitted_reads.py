"""Answers of a coordinator with followers: no client sees what a failover may take back."""

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from headrace.broker.coordinators import Shard
from headrace.broker.topics.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from headrace.coordination.effects import Effects
from headrace.errors import CoordinatorLoadInProgress, CoordinatorNotAvailable, NotCoordinator
from headrace.groups.offset_records import CommittedOffset, OffsetKey, offset_record
from headrace.groups.shard import GroupShard
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.message import Message
from headrace.protocol.schemas.consumer_group_describe import ConsumerGroupDescribeRequest
from headrace.protocol.schemas.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from headrace.protocol.schemas.describe_groups import DescribeGroupsRequest
from headrace.protocol.schemas.describe_transactions import DescribeTransactionsRequest
from headrace.protocol.schemas.heartbeat import HeartbeatRequest
from headrace.protocol.schemas.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from headrace.protocol.schemas.list_groups import ListGroupsRequest
from headrace.protocol.schemas.list_transactions import ListTransactionsRequest
from headrace.protocol.schemas.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.protocol.schemas.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from headrace.protocol.schemas.sync_group import SyncGroupRequest
from headrace.storage.appending import append_as_is
from headrace.storage.topic_partition import TopicPartition
from tests.unit.broker.api.builders import a_topic, ask
from tests.unit.broker.api.networks import Cluster, until, while_following

ON_BOTH: dict[str, Any] = {"replicas": (1, 2), "isr": (1, 2), "leader": 1, "directories": ()}


@pytest.fixture
async def cluster(tmp_path: Path) -> Cluster:
    """Broker 1 coordinates; broker 2 follows when the test lets it."""
    return Cluster(
        tmp_path,
        a_topic(CONSUMER_OFFSETS, **ON_BOTH),
        a_topic(TRANSACTION_STATE, **ON_BOTH),
        a_topic("orders", directories=()),
        group_initial_rebalance_delay_ms=0,
    )


def shard_of(cluster: Cluster, broker: int = 1) -> Shard[GroupShard]:
    return cluster[broker].groups.shard_for("g")


async def commit(cluster: Cluster, offset: int) -> Any:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topics = [OffsetCommitRequestTopic(name="orders", partitions=[partition])]
    request = OffsetCommitRequest(group_id="g", topics=topics)
    return await ask(cluster[1], ApiKey.OFFSET_COMMIT, request, 8)


async def fetched(cluster: Cluster) -> Any:
    topics = [OffsetFetchRequestTopics(name="orders", partition_indexes=[0])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=topics)])
    return (await ask(cluster[1], ApiKey.OFFSET_FETCH, request, 9)).groups[0]


async def is_held(answer: Awaitable[Any]) -> "asyncio.Future[Any]":
    """Return a request that is not answered yet; fail if it is."""
    task = asyncio.ensure_future(answer)
    for _ in range(10):
        await asyncio.sleep(0)
    assert not task.done()
    return task


async def test_an_offset_is_shown_when_it_is_committed(cluster: Cluster) -> None:
    """DEL-2"""
    committing = await is_held(commit(cluster, 5))
    reading = await is_held(fetched(cluster))
    cluster.follow_up(CONSUMER_OFFSETS)
    assert (await committing).topics[0].partitions[0].error_code == 0
    assert (await reading).topics[0].partitions[0].committed_offset == 5
    assert (await fetched(cluster)).topics[0].partitions[0].committed_offset == 5


async def test_a_read_sees_the_state_of_its_arrival(cluster: Cluster) -> None:
    first = await is_held(commit(cluster, 5))
    reading = await is_held(fetched(cluster))
    cluster[1].partitions.led(CONSUMER_OFFSETS, 0)
    end = cluster[1].log(CONSUMER_OFFSETS, 0).log_end_offset
    second = await is_held(commit(cluster, 6))
    partition = cluster[1].partitions.led(CONSUMER_OFFSETS, 0)
    partition.acknowledge(2, end, 0)
    assert (await reading).topics[0].partitions[0].committed_offset == 5
    assert first.done()
    assert not second.done()
    cluster.follow_up(CONSUMER_OFFSETS)
    await second


async def test_an_offset_that_is_lost_was_never_shown(cluster: Cluster) -> None:
    """DEL-2: the next leader does not have it."""
    committing = await is_held(commit(cluster, 5))
    reading = await is_held(fetched(cluster))
    cluster.move(CONSUMER_OFFSETS, 2)
    assert (await committing).topics[0].partitions[0].error_code == NotCoordinator.code
    assert (await reading).error_code == NotCoordinator.code


READS: list[tuple[ApiKey, Message]] = [
    (ApiKey.LIST_GROUPS, ListGroupsRequest()),
    (ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest(groups=["g"])),
    (ApiKey.CONSUMER_GROUP_DESCRIBE, ConsumerGroupDescribeRequest(group_ids=["g"])),
]


@pytest.mark.parametrize(("key", "request_"), READS)
async def test_groups_are_shown_when_they_are_committed(
    cluster: Cluster, key: ApiKey, request_: Message
) -> None:
    await ask(cluster[1], key, request_)  # Answered at once while nothing waits.
    committing = await is_held(commit(cluster, 5))
    reading = await is_held(ask(cluster[1], key, request_))
    cluster.follow_up(CONSUMER_OFFSETS)
    await reading
    await committing


async def test_a_commit_that_waits_too_long_is_sent_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka's offsets.commit.timeout.ms; later answers still wait for its record."""
    monkeypatch.setattr("headrace.broker.coordinators._COMMIT_TIMEOUT_S", 0.01)
    first = await commit(cluster, 5)
    assert first.topics[0].partitions[0].error_code == CoordinatorNotAvailable.code
    monkeypatch.setattr("headrace.broker.coordinators._COMMIT_TIMEOUT_S", 5.0)
    reading = await is_held(fetched(cluster))
    cluster.follow_up(CONSUMER_OFFSETS)
    assert (await reading).topics[0].partitions[0].committed_offset == 5


async def test_each_request_waits_for_its_own_time(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.broker.coordinators._COMMIT_TIMEOUT_S", 0.03)
    first = asyncio.ensure_future(commit(cluster, 5))
    await asyncio.sleep(0.02)
    second = asyncio.ensure_future(commit(cluster, 6))
    await first
    assert not second.done()
    assert (await second).topics[0].partitions[0].error_code == CoordinatorNotAvailable.code


async def test_a_list_that_fails_over_is_one_that_clients_retry(cluster: Cluster) -> None:
    committing = await is_held(commit(cluster, 5))
    reading = await is_held(ask(cluster[1], ApiKey.LIST_GROUPS, ListGroupsRequest()))
    cluster.move(CONSUMER_OFFSETS, 2)
    assert (await reading).error_code == CoordinatorLoadInProgress.code
    await committing


async def test_a_heartbeat_without_records_waits_for_the_join(cluster: Cluster) -> None:
    """CON-9: its answer depends on the member, whose record may be lost."""
    join = ConsumerGroupHeartbeatRequest(
        group_id="h",
        member_id="m",
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["orders"],
        topic_partitions=[],
    )
    joining = await is_held(ask(cluster[1], ApiKey.CONSUMER_GROUP_HEARTBEAT, join))
    beat = ConsumerGroupHeartbeatRequest(group_id="h", member_id="m", member_epoch=2)
    beating = await is_held(ask(cluster[1], ApiKey.CONSUMER_GROUP_HEARTBEAT, beat))
    cluster.follow_up(CONSUMER_OFFSETS)
    assert (await joining).member_epoch == 2
    assert (await beating).error_code == 0


async def test_a_classic_heartbeat_waits_for_the_decision_before_it(cluster: Cluster) -> None:
    broker = cluster[1]
    protocols = [JoinGroupRequestProtocol("range", b"")]
    join = JoinGroupRequest("g", 10_000, 10_000, "", None, "consumer", protocols)
    asked = ask(broker, ApiKey.JOIN_GROUP, join, 3)
    joined = await while_following(cluster, CONSUMER_OFFSETS, asked)
    member, generation = joined.member_id, joined.generation_id
    sync = SyncGroupRequest("g", generation, member)
    await while_following(cluster, CONSUMER_OFFSETS, ask(broker, ApiKey.SYNC_GROUP, sync, 3))
    beat = HeartbeatRequest("g", generation, member)
    assert (await ask(broker, ApiKey.HEARTBEAT, beat)).error_code == 0
    broker.groups.shard_for("g").post(unimportant())
    beating = await is_held(ask(broker, ApiKey.HEARTBEAT, beat))
    cluster.follow_up(CONSUMER_OFFSETS)
    assert (await beating).error_code == 0


def unimportant() -> Effects[None]:
    """A decision with a record, of another group."""
    return Effects(records=[offset_record(OffsetKey("other", "orders", 0), CommittedOffset(1))])


async def test_transactions_are_shown_when_they_are_committed(cluster: Cluster) -> None:
    transactions = cluster[1].transactions
    claiming = await is_held(transactions.claim("t", 60_000, None))
    describe = DescribeTransactionsRequest(transactional_ids=["t"])
    describing = await is_held(ask(cluster[1], ApiKey.DESCRIBE_TRANSACTIONS, describe))
    listing = await is_held(ask(cluster[1], ApiKey.LIST_TRANSACTIONS, ListTransactionsRequest()))
    cluster.follow_up(TRANSACTION_STATE)
    producer = await claiming
    assert (await describing).transaction_states[0].producer_id == producer.id
    assert len((await listing).transaction_states) == 1


async def test_a_repeated_decision_waits_for_the_first(cluster: Cluster) -> None:
    """DEL-5: the second AddPartitionsToTxn finds its partition, which may be lost."""
    transactions = cluster[1].transactions
    claiming = transactions.claim("t", 60_000, None)
    producer = await while_following(cluster, TRANSACTION_STATE, claiming)
    place = {TopicPartition("orders", 0)}
    adding = [
        await is_held(transactions.add("t", producer, place, 0)),
        await is_held(transactions.add("t", producer, place, 0)),
        await is_held(transactions.verify("t", producer, place)),
    ]
    cluster.follow_up(TRANSACTION_STATE)
    await asyncio.gather(*adding)


def copy_to_follower(cluster: Cluster, name: str) -> None:
    source = cluster[1].log(name, 0)
    records = source.read(0, 1 << 20, source.log_end_offset).read()
    append_as_is(cluster[2].partitions.hosted(name, 0).online_log(), memoryview(records))


async def test_a_new_leader_shows_nothing_that_it_has_not_committed(cluster: Cluster) -> None:
    """It loads up to the end of its log, as in Kafka; the next leader may have less."""
    committing = await is_held(commit(cluster, 5))
    copy_to_follower(cluster, CONSUMER_OFFSETS)
    cluster.move(CONSUMER_OFFSETS, 2)
    await committing
    await until(lambda: not cluster[2].groups.is_loading)
    shard = shard_of(cluster, 2)
    assert shard.state.offsets.of("g")
    reading = await is_held(shard.applied(Effects("the reply")))
    cluster.follow_up(CONSUMER_OFFSETS)
    assert await reading == "the reply"


async def test_a_decision_for_a_shard_that_is_gone_is_refused(cluster: Cluster) -> None:
    """A request that waited meanwhile must not write past the new shard of a later epoch."""
    shard = shard_of(cluster)
    cluster.move(CONSUMER_OFFSETS, 2)
    cluster.move(CONSUMER_OFFSETS, 1)
    with pytest.raises(NotCoordinator):
        shard.apply(Effects("the reply"))
    assert shard_of(cluster) is not shard


async def test_a_shard_is_loaded_again_in_a_new_epoch_of_the_same_leader(
    cluster: Cluster,
) -> None:
    shard = shard_of(cluster)
    cluster.move(CONSUMER_OFFSETS, 1)
    assert not shard.is_live
    assert shard_of(cluster).leader_epoch == shard.leader_epoch + 1
