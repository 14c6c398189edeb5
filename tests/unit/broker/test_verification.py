"""Admission of a transaction's first batch in a partition, by a coordinator on another broker."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from headrace.broker.produce.admission import admit
from headrace.broker.topics.internal_topics import TRANSACTION_STATE
from headrace.broker.transactions import Verification
from headrace.errors import (
    CoordinatorNotAvailable,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTxnState,
    KafkaError,
    NetworkException,
    NotEnoughReplicas,
    TransactionAbortable,
)
from headrace.protocol.hot_produce import ProduceView
from headrace.protocol.schemas.add_partitions_to_txn import AddPartitionsToTxnRequest
from headrace.storage.topic_partition import TopicPartition
from headrace.transactions.coordinator import ProducerIdAndEpoch
from headrace.transactions.states import State
from tests.unit.broker.api.builders import a_topic
from tests.unit.broker.api.networks import Cluster
from tests.unit.broker.api.transactions.coordinated import record_of

NAME = "t"
ON_TWO: dict[str, Any] = {"replicas": (2,), "isr": (2,), "leader": 2, "directories": ()}
PLACE = TopicPartition("orders", 0)


@pytest.fixture
async def cluster(tmp_path: Path) -> Cluster:
    """The coordinator is broker 1, and the partitions belong to broker 2."""
    state = a_topic(TRANSACTION_STATE, directories=())
    return Cluster(tmp_path, state, a_topic("orders", 2, **ON_TWO))


async def claim(cluster: Cluster, name: str = NAME) -> ProducerIdAndEpoch:
    return await cluster[1].transactions.claim(name, 60_000, None)


async def refused(
    cluster: Cluster, producer: ProducerIdAndEpoch, verification: Verification
) -> dict[TopicPartition, type[KafkaError]]:
    found = await cluster[2].transactions.admit(NAME, producer, {PLACE}, verification)
    return {place: type(error) for place, error in found.items()}


async def test_a_partition_is_added_at_the_coordinator(cluster: Cluster) -> None:
    """KIP-890: the coordinator has it before the first record is appended."""
    producer = await claim(cluster)
    assert await refused(cluster, producer, Verification.ADD) == {}
    found = cluster[1].transactions.find(NAME)
    assert found is not None
    assert (found.state, found.partitions) == (State.ONGOING, frozenset({PLACE}))
    assert found.client_version == 2


@pytest.mark.parametrize(
    ("verification", "error"),
    [(Verification.PLAIN, InvalidTxnState), (Verification.ABORTABLE, TransactionAbortable)],
)
async def test_a_partition_outside_of_the_transaction_is_refused(
    cluster: Cluster, verification: Verification, error: type[KafkaError]
) -> None:
    producer = await claim(cluster)
    await cluster[1].transactions.add(NAME, producer, {TopicPartition("orders", 1)}, 0)
    assert await refused(cluster, producer, verification) == {PLACE: error}
    await cluster[1].transactions.add(NAME, producer, {PLACE}, 0)
    assert await refused(cluster, producer, verification) == {}


async def test_a_replaced_producer_is_refused(cluster: Cluster) -> None:
    """PRD-16"""
    old = await claim(cluster)
    await claim(cluster)
    for verification in Verification:
        assert await refused(cluster, old, verification) == {PLACE: InvalidProducerEpoch}
    stranger = ProducerIdAndEpoch(999, 0)
    assert await refused(cluster, stranger, Verification.ADD) == {PLACE: InvalidProducerIdMapping}


async def test_transactions_of_one_turn_share_a_request(cluster: Cluster) -> None:
    producers = {name: await claim(cluster, name) for name in "abc"}
    admit_all = [
        cluster[2].transactions.admit(name, producer, {PLACE}, Verification.ADD)
        for name, producer in producers.items()
    ]
    assert await asyncio.gather(*admit_all) == [{}, {}, {}]
    ((receiver, request),) = cluster.network.requests(AddPartitionsToTxnRequest)
    assert receiver == 1
    assert [one.transactional_id for one in request.transactions] == ["a", "b", "c"]


async def test_two_partitions_of_one_transaction_in_one_turn_are_both_added(
    cluster: Cluster,
) -> None:
    """The response has one result per transactional id, so they need two requests."""
    producer = await claim(cluster)
    places = [TopicPartition("orders", index) for index in (0, 1)]
    admit_both = [
        cluster[2].transactions.admit(NAME, producer, {place}, Verification.ADD) for place in places
    ]
    assert await asyncio.gather(*admit_both) == [{}, {}]
    found = cluster[1].transactions.find(NAME)
    assert found is not None
    assert found.partitions == set(places)


async def test_an_unreachable_coordinator_makes_producers_retry(cluster: Cluster) -> None:
    producer = await claim(cluster)
    cluster.network.away.add(1)
    assert await refused(cluster, producer, Verification.ADD) == {PLACE: NetworkException}
    records: list[tuple[int, memoryview | None]] = [(0, record_of(producer))]
    request = ProduceView(NAME, -1, 1000, [(b"orders", records)])
    verdict = await admit(cluster[2], request, 12)  # type: ignore[arg-type]
    assert [type(error) for error in verdict.refused.values()] == [NotEnoughReplicas]


async def test_a_coordinator_without_a_leader_makes_producers_retry(cluster: Cluster) -> None:
    producer = await claim(cluster)
    cluster.move(TRANSACTION_STATE, -1)
    found = await refused(cluster, producer, Verification.ADD)
    assert issubclass(found[PLACE], KafkaError)
    assert found[PLACE].code in (16, CoordinatorNotAvailable.code)


async def test_verification_that_is_switched_off_asks_no_other_broker(tmp_path: Path) -> None:
    state = a_topic(TRANSACTION_STATE, directories=())
    settings = {"transaction_partition_verification_enable": False}
    cluster = Cluster(tmp_path, state, a_topic("orders", **ON_TWO), **settings)
    producer = await claim(cluster)
    assert await refused(cluster, producer, Verification.PLAIN) == {}
    assert cluster.network.asked == []
