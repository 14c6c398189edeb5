"""The registry's topic as a broker reads it, here or at the leader of the topic."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headrace.errors import KafkaError, LeaderNotAvailable, NetworkException
from headrace.protocol.batches import Record, build_batch
from headrace.protocol.schemas.fetch import FetchRequest
from headrace.transactions.markers import marker_batch
from tests.unit.broker.api.builders import a_topic
from tests.unit.broker.api.networks import Cluster
from tests.unit.serdes.test_registered_ids import schema_key, schema_value

TOPIC = "_schemas"
LED_BY: dict[int, dict[str, Any]] = {
    number: {"replicas": (number,), "isr": (number,), "leader": number, "directories": ()}
    for number in (1, 2)
}


def cluster_of(directory: Path, leader: int) -> Cluster:
    """Broker 1 validates; `leader` leads the registry's topic."""
    return Cluster(directory, a_topic(TOPIC, **LED_BY[leader]))


def schema(id_: int) -> Record:
    subject = f"subject-{id_}"
    return Record(0, 1_700_000_000_000, schema_key(subject, 1), schema_value(subject, 1, id_))


async def register(cluster: Cluster, *ids: int, **producer: Any) -> None:
    for id_ in ids:
        batch = bytearray(build_batch([schema(id_)], **producer))
        if producer:
            leader = cluster.published.image.topics[TOPIC].partitions[0].leader
            partition = cluster[leader].partitions.led(TOPIC, 0)
            partition.append(memoryview(batch), cluster[leader].clock.now_ms(), 0)
        else:
            await cluster[1].leaders.produce(TOPIC, 0, batch)


def known(cluster: Cluster, *ids: int) -> list[bool]:
    return [bool(cluster[1].registered_schemas.subjects_of(id_)) for id_ in ids]


@pytest.mark.parametrize("leader", [1, 2])
async def test_schemas_are_read_where_they_are_led(tmp_path: Path, leader: int) -> None:
    cluster = cluster_of(tmp_path, leader)
    schemas = cluster[1].registered_schemas
    await register(cluster, 1, 2)
    assert not schemas.is_current
    await schemas.catch_up()
    assert known(cluster, 1, 2, 3) == [True, True, False]
    await register(cluster, 3)
    assert not schemas.is_current
    await schemas.catch_up()
    assert known(cluster, 1, 2, 3) == [True, True, True]


@pytest.mark.parametrize("leader", [1, 2])
async def test_a_topic_longer_than_a_slice_is_read_to_its_end(
    tmp_path: Path, leader: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.broker.registered_schemas._SLICE_BYTES", 500)
    cluster = cluster_of(tmp_path, leader)
    await register(cluster, *range(1, 21))
    await cluster[1].registered_schemas.catch_up()
    assert all(known(cluster, *range(1, 21)))


@pytest.mark.parametrize("leader", [1, 2])
@pytest.mark.parametrize("is_commit", [True, False])
async def test_schemas_of_a_transaction_count_when_it_commits(
    tmp_path: Path, leader: int, is_commit: bool
) -> None:
    cluster = cluster_of(tmp_path, leader)
    producer = {"producer_id": 9, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    await register(cluster, 1, **producer)
    schemas = cluster[1].registered_schemas
    await schemas.catch_up()
    assert known(cluster, 1) == [False]
    partition = cluster[leader].partitions.led(TOPIC, 0)
    partition.append_marker(marker_batch(9, 0, 0, 0, is_commit=is_commit), 0, 0)
    await schemas.catch_up()
    assert known(cluster, 1) == [is_commit]


async def test_records_that_arrive_during_a_fetch_share_the_next_one(tmp_path: Path) -> None:
    """Its end is newer than they are; one that began before them may miss a schema."""
    cluster = cluster_of(tmp_path, 2)
    schemas = cluster[1].registered_schemas
    await asyncio.gather(*(schemas.catch_up() for _ in range(6)))
    assert len(cluster.network.requests(FetchRequest)) == 2


async def test_nothing_passes_while_the_leader_is_unreachable(tmp_path: Path) -> None:
    """A broker that cannot look must not take a topic for empty."""
    cluster = cluster_of(tmp_path, 2)
    cluster.network.away.add(2)
    schemas = cluster[1].registered_schemas
    with pytest.raises(NetworkException):
        await schemas.catch_up()
    assert not schemas.is_current
    cluster.move(TOPIC, -1)
    with pytest.raises(LeaderNotAvailable) as refusal:
        await schemas.catch_up()
    assert isinstance(refusal.value, KafkaError)
    assert refusal.value.retriable


async def test_a_topic_that_is_replaced_is_read_again(tmp_path: Path) -> None:
    cluster = cluster_of(tmp_path, 2)
    await register(cluster, 1)
    schemas = cluster[1].registered_schemas
    await schemas.catch_up()
    old = cluster.published.image.topics[TOPIC]
    for broker in (cluster[1], cluster[2]):
        broker.partitions.drop(old.id)
        for partition in (broker.partitions.by_id, broker.partitions.by_wire_name):
            assert not partition
    cluster.put(msgspec.structs.replace(a_topic(TOPIC, **LED_BY[1])))
    await register(cluster, 2)
    await schemas.catch_up()
    assert known(cluster, 1, 2) == [False, True]


async def test_a_log_whose_start_was_moved_is_read_from_there(tmp_path: Path) -> None:
    cluster = cluster_of(tmp_path, 2)
    await register(cluster, 1)
    schemas = cluster[1].registered_schemas
    await schemas.catch_up()
    await register(cluster, 2, 3)
    cluster[2].log(TOPIC, 0).delete_records_before(2)
    await schemas.catch_up()
    assert known(cluster, 1, 2, 3) == [False, False, True]


async def test_a_registry_without_a_topic_has_no_schemas(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    schemas = cluster[1].registered_schemas
    assert schemas.is_current
    await schemas.catch_up()
    assert known(cluster, 1) == [False]
