"""Internal topics of a cluster: their factors, and the coordinators that all brokers name."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from headrace.broker.topics.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from headrace.errors import CoordinatorNotAvailable
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.find_coordinator import Coordinator, FindCoordinatorRequest
from tests.unit.broker.api.builders import ask
from tests.unit.broker.api.networks import Cluster


async def find(cluster: Cluster, broker: int, kind: int = 0) -> Coordinator:
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=["g"])
    response = await ask(cluster[broker], ApiKey.FIND_COORDINATOR, request)
    found: Coordinator = response.coordinators[0]
    return found


@pytest.mark.parametrize(("brokers", "factor"), [(1, 1), (2, 2), (3, 3), (5, 3)])
async def test_there_are_as_many_replicas_as_registered_brokers(
    tmp_path: Path, brokers: int, factor: int
) -> None:
    """CON-1: at most as many as the settings want."""
    cluster = Cluster(tmp_path, brokers=brokers)
    await find(cluster, 1)
    (partition,) = cluster.published.image.topics[CONSUMER_OFFSETS].partitions
    assert len(partition.replicas) == factor


async def test_brokers_that_are_down_count(tmp_path: Path) -> None:
    """The first client may come while one of three brokers is up: one replica would stay one."""
    cluster = Cluster(tmp_path, brokers=3)
    image = cluster.published.image
    fenced = {
        number: msgspec.structs.replace(broker, fenced=number != 1)
        for number, broker in image.brokers.items()
    }
    cluster.published.image = msgspec.structs.replace(image, brokers=fenced)
    await find(cluster, 1, 1)
    topic = cluster.published.image.topics[TRANSACTION_STATE]
    assert len(topic.partitions[0].replicas) == 3


async def test_every_broker_names_the_same_coordinator(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, brokers=3)
    found = [await find(cluster, broker) for broker in (1, 2, 3)]
    leader = cluster.published.image.topics[CONSUMER_OFFSETS].partitions[0].leader
    assert {(one.error_code, one.node_id, one.host) for one in found} == {
        (0, leader, f"broker{leader}.example")
    }
    cluster.move(CONSUMER_OFFSETS, leader % 3 + 1)
    assert (await find(cluster, 1)).node_id == leader % 3 + 1


async def test_there_is_no_coordinator_without_a_leader(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    await find(cluster, 1)
    cluster.move(CONSUMER_OFFSETS, -1)
    assert (await find(cluster, 2)).error_code == CoordinatorNotAvailable.code


async def test_brokers_that_create_one_topic_at_once_agree(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    found = await asyncio.gather(*(find(cluster, broker) for broker in (1, 2)))
    assert {one.error_code for one in found} == {0}
    assert len({one.node_id for one in found}) == 1
