"""Health of a cluster: every kind of problem, and none that is not there."""

import pytest

from headrace.client.admin import Admin
from headrace.client.cluster import Cluster
from headrace.client.descriptions import (
    BrokerDescription,
    PartitionDescription,
    QuorumDescription,
    QuorumReplica,
    TopicDescription,
)
from headrace.client.health import Health, Problem, problems_of
from headrace.protocol.message import Message
from headrace.protocol.schemas.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from headrace.protocol.schemas.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from headrace.protocol.schemas.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    ReplicaState,
)
from headrace.protocol.schemas.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.unit.client.scripted import connected, knowing_all


def broker(number: int, *, is_fenced: bool = False) -> BrokerDescription:
    return BrokerDescription(
        id=number, host="h", port=9092, rack=None, is_controller=False, is_fenced=is_fenced
    )


def topic(
    name: str, *, isr: str = "123", replicas: str = "123", leader: int | None = 1
) -> TopicDescription:
    part = PartitionDescription(
        partition=0,
        leader=leader,
        leader_epoch=1,
        replicas=[int(one) for one in replicas],
        isr=[int(one) for one in isr],
        offline_replicas=[],
    )
    return TopicDescription(
        name=name, topic_id=None, is_internal=name.startswith("__"), partitions=[part]
    )


def voter(number: int, *, end: int = 100, lag: int = 0, behind_ms: int | None = 0) -> QuorumReplica:
    return QuorumReplica(id=number, role="voter", log_end_offset=end, lag=lag, behind_ms=behind_ms)


def quorum(*replicas: QuorumReplica, leader: int = 1) -> QuorumDescription:
    return QuorumDescription(
        leader=leader, leader_epoch=3, high_watermark=100, replicas=list(replicas)
    )


def health(
    *topics: TopicDescription,
    brokers: tuple[BrokerDescription, ...] = (broker(1), broker(2), broker(3)),
    described: QuorumDescription | None = None,
    min_isr: int = 2,
) -> Health:
    return Health(
        brokers=brokers,
        quorum=described,
        topics=topics,
        min_isr={one.name: min_isr for one in topics},
        internal_factors={"__consumer_offsets": 3},
    )


def kinds(found: Health) -> list[tuple[str, str]]:
    return [(problem.kind, problem.subject) for problem in problems_of(found)]


def test_a_cluster_in_sync_is_healthy() -> None:
    found = health(
        topic("orders"),
        topic("__consumer_offsets"),
        topic("one", replicas="1", isr="1"),
        described=quorum(voter(1), voter(2, lag=3, behind_ms=400), voter(3)),
    )
    assert problems_of(found) == []
    assert found.partition_count == 3


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (health(topic("orders", isr="12")), ("under-replicated", "orders-0")),
        (health(topic("orders", isr="1")), ("under min ISR", "orders-0")),
        (health(topic("orders", isr="", leader=None)), ("no leader", "orders-0")),
        (
            health(topic("__consumer_offsets", replicas="1", isr="1")),
            ("few replicas", "__consumer_offsets"),
        ),
        (health(brokers=(broker(1), broker(2, is_fenced=True))), ("fenced", "broker 2")),
        (health(topic("orders", replicas="4", isr="4", leader=4)), ("missing", "broker 4")),
        (health(described=quorum(voter(1), leader=-1)), ("no leader", "metadata quorum")),
        (
            health(described=quorum(voter(1), voter(2, behind_ms=9_000))),
            ("lagging", "controller 2"),
        ),
        (health(described=quorum(voter(2, end=-1, behind_ms=None))), ("lagging", "controller 2")),
        (
            health(described=quorum(voter(2, lag=2_000, behind_ms=None))),
            ("lagging", "controller 2"),
        ),
    ],
)
def test_each_problem_is_named(found: Health, expected: tuple[str, str]) -> None:
    assert kinds(found) == [expected]


def test_observers_may_lag() -> None:
    observer = QuorumReplica(id=4, role="observer", log_end_offset=-1, lag=10_000, behind_ms=None)
    assert kinds(health(described=quorum(voter(1), observer))) == []


def test_internal_topics_need_no_more_replicas_than_brokers() -> None:
    small = health(topic("__consumer_offsets", replicas="1", isr="1"), brokers=(broker(1),))
    assert kinds(small) == []


def test_a_factor_below_min_isr_needs_all_its_replicas_only() -> None:
    assert kinds(health(topic("orders", replicas="1", isr="1"), min_isr=2)) == []


def test_the_worst_problems_come_first() -> None:
    found = health(topic("a", isr="12"), topic("b", isr="", leader=None), topic("c", isr="1"))
    assert [kind for kind, _ in kinds(found)] == ["no leader", "under min ISR", "under-replicated"]


def answer(request: Message) -> Message:
    """A cluster of two brokers, one of them fenced, whose offsets have one replica."""
    match request:
        case MetadataRequest():
            part = MetadataResponsePartition(leader_id=1, replica_nodes=[1], isr_nodes=[1])
            return MetadataResponse(
                brokers=[MetadataResponseBroker(1, "h", 9092)],
                topics=[MetadataResponseTopic(name="__consumer_offsets", partitions=[part])],
            )
        case DescribeClusterRequest():
            assert request.include_fenced_brokers
            brokers = [
                DescribeClusterBroker(1, "h", 9092),
                DescribeClusterBroker(2, "h", 9093, None, True),
            ]
            return DescribeClusterResponse(cluster_id="c", brokers=brokers)
        case DescribeQuorumRequest():
            states = [
                ReplicaState(1, bytes(15) + b"\1", 90, 5_000, 5_000),
                ReplicaState(2, bytes(16), 80, 1_000, 1_000),
            ]
            part_data = DescribeQuorumResponsePartitionData(leader_id=1, current_voters=states)
            topics = [DescribeQuorumResponseTopicData("__cluster_metadata", [part_data])]
            return DescribeQuorumResponse(topics=topics)
        case DescribeConfigsRequest():
            values = {
                "min.insync.replicas": "1",
                "offsets.topic.replication.factor": "3",
            }
            results = [
                DescribeConfigsResult(
                    resource_type=one.resource_type,
                    resource_name=one.resource_name,
                    configs=[
                        DescribeConfigsResourceResult(name=name, value=value)
                        for name, value in values.items()
                    ],
                )
                for one in request.resources
            ]
            return DescribeConfigsResponse(results=results)
    raise AssertionError(request)


def test_the_facts_are_read_from_any_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = connected(knowing_all(lambda request, _: answer(request)))[0]
    monkeypatch.setattr(Cluster, "_open", lambda self, node_id: opened)
    found = Health.read(Admin("broker:9092", timeout_s=1))
    assert found.min_isr == {"__consumer_offsets": 1}
    assert found.internal_factors == {"__consumer_offsets": 3}
    assert found.quorum is not None
    assert [one.behind_ms for one in found.quorum.replicas] == [0, 4_000]
    assert [one.directory_id for one in found.quorum.replicas] == ["AAAAAAAAAAAAAAAAAAAAAQ", None]
    assert problems_of(found) == [
        Problem("fenced", "broker 2", "sends no heartbeats: is it running?"),
        Problem("few replicas", "__consumer_offsets", "has 1 replicas instead of 2; reassign it"),
    ]
