"""Share partitions in a cluster: new leaders, lag and dead letters at leaders elsewhere."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from headrace.broker.shares.led_partition import LedSharePartition
from headrace.broker.topics.internal_topics import CONSUMER_OFFSETS, SHARE_GROUP_STATE
from headrace.errors import (
    LeaderNotAvailable,
    NetworkException,
    NotLeaderOrFollower,
    UnknownTopicOrPartition,
)
from headrace.metadata.image import ResourceType, TopicImage
from headrace.protocol.acknowledge_types import AcknowledgeType
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.batches import Record, build_batch
from headrace.protocol.schemas.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from headrace.protocol.schemas.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from headrace.shares.partition import Acknowledgement
from headrace.shares.selection import Pick
from headrace.shares.sessions import SessionKey, Target
from headrace.shares.state import SharePartitionKey
from tests.builders.logs import append
from tests.unit.broker.api.builders import a_topic, ask, with_configs
from tests.unit.broker.api.networks import Cluster, until

GROUP, ADA = "workers", "ada"
ON_ONE: dict[str, Any] = {"directories": ()}
ON_TWO: dict[str, Any] = {"replicas": (2,), "isr": (2,), "leader": 2, "directories": ()}
ON_BOTH: dict[str, Any] = {"replicas": (1, 2), "isr": (1, 2), "leader": 1, "directories": ()}
LETTERS = "dlq.letters"


def cluster_with(directory: Path, orders: TopicImage, **letters: Any) -> Cluster:
    """Broker 1 leads the share partitions; the parameters place the letters."""
    return Cluster(
        directory,
        a_topic(SHARE_GROUP_STATE, **ON_ONE),
        a_topic(CONSUMER_OFFSETS, **ON_ONE),
        orders,
        a_topic(LETTERS, **(ON_TWO | letters)),
    )


def configure(cluster: Cluster, **configs: str) -> None:
    image = with_configs(
        cluster.published.image, ResourceType.GROUP, GROUP, share_auto_offset_reset="earliest"
    )
    if configs:
        merged = {"share_auto_offset_reset": "earliest", **configs}
        image = with_configs(image, ResourceType.GROUP, GROUP, **merged)
    image = with_configs(
        image, ResourceType.TOPIC, LETTERS, errors_deadletterqueue_group_enable="true"
    )
    cluster.published.image = image


async def opened(cluster: Cluster, orders: TopicImage) -> LedSharePartition:
    """A share partition of broker 1 with three records, loaded."""
    broker = cluster[1]
    key = SharePartitionKey(GROUP, orders.id, 0)
    await broker.share_persister.initialize(key, 1, -1)
    partition = broker.partitions.led("orders", 0)
    if not partition.online_log().log_end_offset:
        append(partition.online_log(), b"a", b"b", b"c")
        cluster.follow_up("orders")
    led = broker.share_partitions.open(key, partition)
    await until(lambda: led.core is not None or led.failure is not None)
    assert led.failure is None
    return led


def archiving(led: LedSharePartition) -> bool:
    assert led.core is not None
    return bool(led.core.archiving())


async def test_a_share_partition_is_loaded_again_in_a_new_epoch(tmp_path: Path) -> None:
    """RMQ-1: also by the same leader, because another one may have delivered in between."""
    orders = a_topic("orders", **ON_BOTH)
    cluster = cluster_with(tmp_path, orders)
    configure(cluster)
    led = await opened(cluster, orders)
    shares = cluster[1].share_partitions
    assert shares.find(led.key) is led
    cluster.move("orders", 1)
    assert not led.is_live
    assert shares.find(led.key) is None
    again = shares.open(led.key, cluster[1].partitions.led("orders", 0))
    await until(lambda: again.core is not None)
    assert again.leader_epoch == led.leader_epoch + 1


async def test_a_share_partition_is_unloaded_when_another_broker_leads(tmp_path: Path) -> None:
    orders = a_topic("orders", **ON_BOTH)
    cluster = cluster_with(tmp_path, orders)
    configure(cluster)
    led = await opened(cluster, orders)
    cluster.move("orders", 2)
    assert not led.is_live
    assert cluster[1].share_partitions.find(led.key) is None


async def describe(cluster: Cluster) -> Any:
    topics = [DescribeShareGroupOffsetsRequestTopic(topic_name="orders", partitions=[0])]
    group = DescribeShareGroupOffsetsRequestGroup(group_id=GROUP, topics=topics)
    request = DescribeShareGroupOffsetsRequest(groups=[group])
    response = await ask(cluster[1], ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, request)
    return response.groups[0].topics[0].partitions[0]


async def test_the_lag_is_computed_with_the_end_at_another_leader(tmp_path: Path) -> None:
    """KIP-1226"""
    orders = a_topic("orders", **ON_TWO)
    cluster = cluster_with(tmp_path, orders)
    await cluster[1].share_persister.initialize(SharePartitionKey(GROUP, orders.id, 0), 1, 1)
    batch = build_batch([Record(0, 1_700_000_000_000, None, b"x")] * 1)
    for _ in range(4):
        await cluster[1].leaders.produce("orders", 0, bytearray(batch))
    row = await describe(cluster)
    assert (row.start_offset, row.lag, row.error_code) == (1, 3, 0)
    cluster.network.away.add(2)
    row = await describe(cluster)
    assert row.error_code == NetworkException.code


async def test_offsets_of_other_leaders_are_listed_in_one_request(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, a_topic("orders", 3, **ON_TWO), a_topic("none", leader=-1))
    leaders = cluster[1].leaders
    ends = await asyncio.gather(*(leaders.end_offset("orders", index) for index in range(3)))
    assert ends == [0, 0, 0]
    assert len(cluster.network.asked) == 1
    with pytest.raises(UnknownTopicOrPartition):
        await leaders.end_offset("orders", 9)
    with pytest.raises(LeaderNotAvailable):
        await leaders.end_offset("none", 0)


async def reject_all(cluster: Cluster, led: LedSharePartition) -> None:
    shares = cluster[1].share_partitions
    taken = shares.take(led, Pick(ADA, 500, 500), 1 << 20, at_least_one=True)
    assert taken is not None
    await shares.acknowledge(led, ADA, [Acknowledgement(0, 2, [AcknowledgeType.REJECT])])


@pytest.mark.parametrize("leader", [1, 2])
async def test_a_record_is_archived_when_its_letter_is_committed(
    tmp_path: Path, leader: int
) -> None:
    """KIP-1191: whichever broker leads the dead letter topic."""
    orders = a_topic("orders", **ON_ONE)
    cluster = cluster_with(tmp_path, orders, **{**ON_BOTH, "leader": leader})
    configure(cluster, errors_deadletterqueue_topic_name=LETTERS)
    led = await opened(cluster, orders)
    await reject_all(cluster, led)
    target = cluster[leader].partitions.led(LETTERS, 0)
    await until(lambda: target.online_log().log_end_offset == 3)
    await asyncio.sleep(0.01)
    assert archiving(led)
    cluster.follow_up(LETTERS)
    await until(lambda: not archiving(led))
    assert led.core is not None
    assert led.core.start_offset == 3
    assert cluster[1].share_partitions.dead_letters.written == 3


async def test_an_acknowledgement_at_a_former_leader_names_the_new_one(tmp_path: Path) -> None:
    """KIP-951"""
    orders = a_topic("orders", **ON_BOTH)
    cluster = cluster_with(tmp_path, orders)
    configure(cluster)
    await opened(cluster, orders)
    broker = cluster[1]
    target = Target(orders.id, 0)
    session = SessionKey(GROUP, ADA)
    broker.share_partitions.sessions.fetch(
        session, 0, [target], (), ADA, has_acknowledgements=False
    )
    cluster.move("orders", 2)
    batch = AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=[1])
    partition = AcknowledgePartition(partition_index=0, acknowledgement_batches=[batch])
    request = ShareAcknowledgeRequest(
        group_id=GROUP,
        member_id=ADA,
        share_session_epoch=1,
        topics=[AcknowledgeTopic(topic_id=orders.id, partitions=[partition])],
    )
    response = await ask(broker, ApiKey.SHARE_ACKNOWLEDGE, request)
    row = response.responses[0].partitions[0]
    assert row.error_code == NotLeaderOrFollower.code
    assert (row.current_leader.leader_id, row.current_leader.leader_epoch) == (2, 1)
    assert [one.host for one in response.node_endpoints] == ["broker2.example"]
