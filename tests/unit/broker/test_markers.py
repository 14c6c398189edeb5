"""Transaction markers in partitions of other brokers, and in partitions with followers."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headrace.broker.topics.internal_topics import TRANSACTION_STATE
from headrace.broker.transactions import Verification
from headrace.errors import (
    ConcurrentTransactions,
    CoordinatorNotAvailable,
    KafkaError,
    NotCoordinator,
    NotEnoughReplicas,
    UnknownTopicOrPartition,
)
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from headrace.storage.topic_partition import TopicPartition
from headrace.transactions.coordinator import ProducerIdAndEpoch
from headrace.transactions.states import State
from tests.unit.broker.api.builders import a_topic, ask
from tests.unit.broker.api.networks import Cluster, NetworkBroker, until, while_following
from tests.unit.broker.api.transactions.coordinated import record_of

NAME = "t"
ON_TWO: dict[str, Any] = {"replicas": (2,), "isr": (2,), "leader": 2, "directories": ()}
ON_BOTH: dict[str, Any] = {"replicas": (1, 2), "isr": (1, 2), "leader": 1, "directories": ()}
STATE = a_topic(TRANSACTION_STATE, directories=())
REPLICATED_STATE = a_topic(TRANSACTION_STATE, **ON_BOTH)


class Client:
    """A transactional producer whose coordinator is broker 1."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.coordinator = cluster[1].transactions
        self.producer: ProducerIdAndEpoch

    async def begin(self, *places: tuple[str, int]) -> None:
        self.producer = await self.coordinator.claim(NAME, 60_000, None)
        await self.coordinator.add(NAME, self.producer, set(of(*places)), 2)

    def write(self, broker: NetworkBroker, topic: str, index: int = 0) -> None:
        partition = broker.partitions.led(topic, index)
        partition.append(record_of(self.producer), broker.clock.now_ms(), 2)

    async def commit(self) -> ProducerIdAndEpoch:
        return await self.coordinator.end(NAME, self.producer, 2, is_commit=True)

    @property
    def state(self) -> State:
        found = self.coordinator.find(NAME)
        assert found is not None
        return found.state


def of(*places: tuple[str, int]) -> list[TopicPartition]:
    return [TopicPartition(*place) for place in places]


def is_open(broker: NetworkBroker, topic: str, index: int = 0) -> bool:
    log = broker.log(topic, index)
    return log.last_stable_offset < log.log_end_offset


def cluster_of(directory: Path, *topics: Any, brokers: int = 2, **settings: Any) -> Cluster:
    return Cluster(directory, *topics, brokers=brokers, **settings)


async def test_markers_reach_the_leaders_of_other_brokers(tmp_path: Path) -> None:
    """DEL-5: one request for both partitions of a broker."""
    cluster = cluster_of(tmp_path, STATE, a_topic("orders", 2, **ON_TWO))
    client = Client(cluster)
    await client.begin(("orders", 0), ("orders", 1))
    client.write(cluster[2], "orders", 0)
    client.write(cluster[2], "orders", 1)
    assert await client.commit() == ProducerIdAndEpoch(client.producer.id, 1)
    assert client.state is State.COMPLETE_COMMIT
    assert [is_open(cluster[2], "orders", index) for index in (0, 1)] == [False, False]
    ((receiver, request),) = cluster.network.requests(WriteTxnMarkersRequest)
    assert (receiver, len(request.markers)) == (2, 1)
    assert request.markers[0].transaction_version == 2


async def test_transactions_that_end_in_one_turn_share_a_request(tmp_path: Path) -> None:
    cluster = cluster_of(tmp_path, STATE, a_topic("orders", **ON_TWO))
    coordinator = cluster[1].transactions
    producers = {name: await coordinator.claim(name, 60_000, None) for name in "abc"}
    for name, producer in producers.items():
        await coordinator.add(name, producer, set(of(("orders", 0))), 2)
    ends = [coordinator.end(name, one, 2, is_commit=True) for name, one in producers.items()]
    await asyncio.gather(*ends)
    ((_, request),) = cluster.network.requests(WriteTxnMarkersRequest)
    assert len(request.markers) == 3


async def test_no_marker_is_written_before_the_decision_is_committed(tmp_path: Path) -> None:
    """DEL-5: a failover could take the decision back, but not the marker."""
    cluster = cluster_of(tmp_path, REPLICATED_STATE, a_topic("orders", **ON_TWO))
    client = Client(cluster)
    await while_following(cluster, TRANSACTION_STATE, client.begin(("orders", 0)))
    client.write(cluster[2], "orders")
    ending = asyncio.ensure_future(client.commit())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not ending.done()
    assert cluster.network.requests(WriteTxnMarkersRequest) == []
    assert is_open(cluster[2], "orders")
    await while_following(cluster, TRANSACTION_STATE, ending)
    await until(lambda: client.state is State.COMPLETE_COMMIT)
    assert not is_open(cluster[2], "orders")


async def test_a_transaction_is_complete_when_its_markers_are_committed(tmp_path: Path) -> None:
    """DEL-5: on this broker and on another one; EndTxn does not wait for long."""
    away = {**ON_BOTH, "leader": 2}
    cluster = cluster_of(tmp_path, STATE, a_topic("here", **ON_BOTH), a_topic("there", **away))
    client = Client(cluster)
    await client.begin(("here", 0), ("there", 0))
    client.write(cluster[1], "here")
    client.write(cluster[2], "there")
    await client.commit()
    assert client.state is State.PREPARE_COMMIT
    cluster.follow_up("here")
    await asyncio.sleep(0.01)
    assert client.state is State.PREPARE_COMMIT
    cluster.follow_up("there")
    await until(lambda: client.state is State.COMPLETE_COMMIT)
    assert not is_open(cluster[1], "here")
    assert not is_open(cluster[2], "there")


async def test_markers_for_an_unreachable_broker_are_written_later(tmp_path: Path) -> None:
    cluster = cluster_of(tmp_path, STATE, a_topic("orders", **ON_TWO))
    client = Client(cluster)
    await client.begin(("orders", 0))
    client.write(cluster[2], "orders")
    cluster.network.away.add(2)
    next_producer = await client.commit()
    assert client.state is State.PREPARE_COMMIT
    with pytest.raises(ConcurrentTransactions):
        await client.coordinator.add(NAME, next_producer, set(of(("orders", 0))), 2)
    cluster.network.away.clear()
    cluster[1].clock.time_ms += 1000
    cluster[1].timers._run()
    await until(lambda: client.state is State.COMPLETE_COMMIT)
    assert not is_open(cluster[2], "orders")
    await client.coordinator.add(NAME, next_producer, set(of(("orders", 0))), 2)


async def test_markers_follow_a_leader_that_moves(tmp_path: Path) -> None:
    cluster = cluster_of(tmp_path, STATE, a_topic("orders", **{**ON_BOTH, "leader": 2}))
    client = Client(cluster)
    await client.begin(("orders", 0))
    client.write(cluster[2], "orders")
    ending = asyncio.ensure_future(client.commit())
    await until(lambda: cluster[2].log("orders", 0).log_end_offset == 2)
    cluster.move("orders", 1)
    await ending
    assert client.state is State.PREPARE_COMMIT
    cluster[1].clock.time_ms += 1000
    cluster[1].timers._run()
    await until(lambda: cluster[1].log("orders", 0).log_end_offset == 1)
    cluster.follow_up("orders")
    await until(lambda: client.state is State.COMPLETE_COMMIT)


async def test_a_partition_without_a_leader_is_waited_for(tmp_path: Path) -> None:
    cluster = cluster_of(tmp_path, STATE, a_topic("orders", **{**ON_TWO, "leader": -1}))
    client = Client(cluster)
    await client.begin(("orders", 0))
    await client.commit()
    assert client.state is State.PREPARE_COMMIT
    cluster.move("orders", 2)
    cluster[1].clock.time_ms += 1000
    cluster[1].timers._run()
    await until(lambda: client.state is State.COMPLETE_COMMIT)


async def test_a_deleted_topic_of_another_broker_needs_no_marker(tmp_path: Path) -> None:
    topic = a_topic("orders", **ON_TWO)
    cluster = cluster_of(tmp_path, STATE, topic)
    client = Client(cluster)
    await client.begin(("orders", 0))
    image = cluster.published.image
    topics = {name: one for name, one in image.topics.items() if name != "orders"}
    cluster.published.image = msgspec.structs.replace(image, topics=topics)
    await client.commit()
    assert client.state is State.COMPLETE_COMMIT
    assert cluster.network.requests(WriteTxnMarkersRequest) == []


async def test_a_new_coordinator_finishes_what_it_loads(tmp_path: Path) -> None:
    """DEL-5: the decision was committed, and its coordinator died before the markers."""
    cluster = cluster_of(tmp_path, REPLICATED_STATE, a_topic("orders", **ON_TWO))
    client = Client(cluster)
    await while_following(cluster, TRANSACTION_STATE, client.begin(("orders", 0)))
    client.write(cluster[2], "orders")
    cluster.network.away.add(2)
    await while_following(cluster, TRANSACTION_STATE, client.commit())
    source = cluster[1].log(TRANSACTION_STATE, 0)
    records = source.read(0, 1 << 20, source.log_end_offset).read()
    follower = cluster[2].partitions.hosted(TRANSACTION_STATE, 0).online_log()
    from headrace.storage.appending import append_as_is

    append_as_is(follower, memoryview(records))
    cluster.move(TRANSACTION_STATE, 2)
    cluster.network.away = {1}
    new = cluster[2].transactions
    await until(lambda: not new.coordinator.is_loading)
    await asyncio.sleep(0.005)
    assert is_open(cluster[2], "orders"), "the loaded decision is not committed here yet"
    cluster.follow_up(TRANSACTION_STATE)
    await until(lambda: not is_open(cluster[2], "orders"))
    found = new.find(NAME)
    assert found is not None
    assert found.state is State.COMPLETE_COMMIT


async def test_a_loaded_decision_waits_for_slow_replicas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DEL-5: the wait is repeated until the decision is committed."""
    cluster = cluster_of(tmp_path, REPLICATED_STATE, a_topic("orders", **ON_TWO))
    client = Client(cluster)
    await while_following(cluster, TRANSACTION_STATE, client.begin(("orders", 0)))
    client.write(cluster[2], "orders")
    ending = asyncio.ensure_future(client.commit())
    await asyncio.sleep(0)
    monkeypatch.setattr("headrace.broker.coordinators._COMMIT_TIMEOUT_S", 0.01)
    cluster.move(TRANSACTION_STATE, 1)  # The same leader, which loads its decision.
    with pytest.raises(NotCoordinator):
        await ending
    await until(lambda: not client.coordinator.coordinator.is_loading)
    await asyncio.sleep(0.03)
    assert client.state is State.PREPARE_COMMIT
    cluster.follow_up(TRANSACTION_STATE)
    cluster[1].clock.time_ms += 1000
    cluster[1].timers._run()
    await until(lambda: client.state is State.COMPLETE_COMMIT)


async def mark(cluster: Cluster, broker: int, topic: str) -> int:
    """Send a marker to a broker, and return the code for its partition."""
    marker = WritableTxnMarker(
        producer_id=9,
        producer_epoch=1,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[0])],
    )
    request = WriteTxnMarkersRequest(markers=[marker])
    response: WriteTxnMarkersResponse = await ask(
        cluster[broker], ApiKey.WRITE_TXN_MARKERS, request
    )
    return response.markers[0].topics[0].partitions[0].error_code


async def test_a_broker_writes_no_markers_into_partitions_of_others(tmp_path: Path) -> None:
    cluster = cluster_of(tmp_path, a_topic("orders", **ON_BOTH))
    assert await mark(cluster, 2, "orders") == UnknownTopicOrPartition.code
    assert cluster[2].partitions.hosted("orders", 0).online_log().log_end_offset == 0


async def test_a_request_for_markers_waits_for_the_replicas(tmp_path: Path) -> None:
    cluster = cluster_of(tmp_path, a_topic("orders", **ON_BOTH))
    answer = asyncio.ensure_future(mark(cluster, 1, "orders"))
    await asyncio.sleep(0.01)
    assert not answer.done()
    cluster.follow_up("orders")
    assert await answer == 0


async def test_a_marker_that_is_lost_with_the_leadership_is_refused(tmp_path: Path) -> None:
    cluster = cluster_of(tmp_path, a_topic("orders", **ON_BOTH))
    answer = asyncio.ensure_future(mark(cluster, 1, "orders"))
    await asyncio.sleep(0)
    cluster.move("orders", 2)
    cluster.move("orders", 1)
    assert await answer == UnknownTopicOrPartition.code


async def test_no_marker_is_written_below_the_min_isr(tmp_path: Path) -> None:
    alone = {**ON_BOTH, "isr": (1,)}
    cluster = cluster_of(tmp_path, a_topic("orders", **alone), min_insync_replicas=2)
    assert await mark(cluster, 1, "orders") == NotEnoughReplicas.code
    assert cluster[1].log("orders", 0).log_end_offset == 0


async def test_a_coordinator_writes_nothing_below_the_min_isr(tmp_path: Path) -> None:
    """PRD-13: it would answer only when the replicas are back."""
    alone = a_topic(TRANSACTION_STATE, **{**ON_BOTH, "isr": (1,)})
    cluster = cluster_of(tmp_path, alone, min_insync_replicas=2)
    with pytest.raises(KafkaError):
        await cluster[1].transactions.claim(NAME, 60_000, None)
    assert cluster[1].log(TRANSACTION_STATE, 0).log_end_offset == 0


async def test_a_decision_whose_replicas_are_slow_is_carried_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DEL-5: EndTxn is refused after a while, but its record may be committed later."""
    monkeypatch.setattr("headrace.broker.coordinators._COMMIT_TIMEOUT_S", 0.01)
    cluster = cluster_of(tmp_path, REPLICATED_STATE, a_topic("orders", **ON_TWO))
    client = Client(cluster)
    beginning = asyncio.ensure_future(client.begin(("orders", 0)))
    await while_following(cluster, TRANSACTION_STATE, beginning)
    client.write(cluster[2], "orders")
    with pytest.raises(CoordinatorNotAvailable):
        await client.commit()
    with pytest.raises(ConcurrentTransactions):
        await client.commit()
    assert cluster.network.requests(WriteTxnMarkersRequest) == []
    cluster.follow_up(TRANSACTION_STATE)
    cluster[1].clock.time_ms += 1000
    cluster[1].timers._run()
    await until(lambda: client.state is State.COMPLETE_COMMIT)
    assert not is_open(cluster[2], "orders")


async def test_the_next_transaction_waits_a_little_for_the_last_one(tmp_path: Path) -> None:
    """KIP-890: its first Produce would meet CONCURRENT_TRANSACTIONS otherwise."""
    cluster = cluster_of(tmp_path, STATE, a_topic("here", **ON_BOTH))
    client = Client(cluster)
    await client.begin(("here", 0))
    client.write(cluster[1], "here")
    following = await client.commit()
    assert client.state is State.PREPARE_COMMIT
    place = set(of(("here", 0)))
    admitting = asyncio.ensure_future(
        client.coordinator.admit(NAME, following, place, Verification.ADD)
    )
    await asyncio.sleep(0.01)
    assert not admitting.done()
    cluster.follow_up("here")
    assert await admitting == {}


async def test_a_transaction_that_stays_busy_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.broker.transactions._ADD_RETRY_S_MAX", 0.01)
    cluster = cluster_of(tmp_path, STATE, a_topic("here", **ON_BOTH))
    client = Client(cluster)
    await client.begin(("here", 0))
    following = await client.commit()
    place = TopicPartition("here", 0)
    refused = await client.coordinator.admit(NAME, following, {place}, Verification.ADD)
    assert [type(error) for error in refused.values()] == [ConcurrentTransactions]
