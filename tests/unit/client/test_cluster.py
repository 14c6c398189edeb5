"""Routing to leaders, and patience with a cluster that is on the move."""

import pytest

from headrace.client import cluster as module
from headrace.client.addresses import BrokerUnreachable
from headrace.client.admin import Admin
from headrace.client.cluster import Cluster, NoSuchTopic
from headrace.client.connection import Connection, ConnectionLost
from headrace.client.descriptions import NewTopic
from headrace.client.partitions import EARLIEST
from headrace.errors import HeadraceError, InvalidConfig, NotLeaderOrFollower, RequestTimedOut
from headrace.protocol.message import Message
from headrace.protocol.schemas.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from headrace.protocol.schemas.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from headrace.protocol.schemas.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from headrace.protocol.schemas.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.unit.client.scripted import connected, knowing_all


class SmallCluster:
    """Two brokers that lead one partition of `orders` each, until the leadership moves."""

    def __init__(self) -> None:
        self.leaders = {0: 1, 1: 2}
        self.refusals = 0
        self.asked: list[tuple[int, list[int]]] = []
        self.controller_refusals = 0
        self.controller_calls = 0
        self.is_silent = False
        self.is_late = False
        """Whether the topic `news` comes to be when all topics are asked for."""
        self.present = {"orders"}

    def connect(self, node_id: int) -> Connection:
        return connected(knowing_all(lambda request, version: self.answer(node_id, request)))[0]

    def answer(self, node_id: int, request: Message) -> Message | None:
        match request:
            case MetadataRequest():
                return self.metadata(request)
            case ListOffsetsRequest():
                return self.offsets(node_id, request)
            case CreateTopicsRequest():
                return self.create(request)
            case DeleteTopicsRequest():
                names = [topic.name for topic in request.topics]
                return DeleteTopicsResponse(
                    responses=[DeletableTopicResult(name=name) for name in names]
                )
        raise AssertionError(request)

    def metadata(self, request: MetadataRequest) -> MetadataResponse:
        assert not request.allow_auto_topic_creation
        partitions = [
            MetadataResponsePartition(partition_index=index, leader_id=leader)
            for index, leader in self.leaders.items()
        ]
        if request.topics is None and self.is_late:
            self.present.add("news")
        return MetadataResponse(
            controller_id=2,
            brokers=[MetadataResponseBroker(node_id=node, host="h", port=node) for node in (1, 2)],
            topics=[
                MetadataResponseTopic(name=name, partitions=partitions)
                if name in self.present
                else MetadataResponseTopic(name=name, error_code=3)
                for name in self.asked_for(request)
            ],
        )

    def asked_for(self, request: MetadataRequest) -> list[str]:
        if request.topics is None:
            return sorted(self.present)
        return [topic.name or "" for topic in request.topics]

    def offsets(self, node_id: int, request: ListOffsetsRequest) -> ListOffsetsResponse:
        wanted = request.topics[0].partitions
        self.asked.append((node_id, [part.partition_index for part in wanted]))
        refused = node_id == 2 and self.refusals > 0
        self.refusals -= refused
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=request.topics[0].name,
                    partitions=[
                        ListOffsetsPartitionResponse(
                            partition_index=part.partition_index,
                            error_code=NotLeaderOrFollower.code if refused else 0,
                            offset=100 * node_id,
                        )
                        for part in wanted
                    ],
                )
            ]
        )

    def create(self, request: CreateTopicsRequest) -> CreateTopicsResponse | None:
        self.controller_calls += 1
        if self.is_silent:
            return None
        refused = self.controller_refusals > 0
        self.controller_refusals -= refused
        return CreateTopicsResponse(
            topics=[
                CreatableTopicResult(name=topic.name, error_code=41 if refused else 0)
                for topic in request.topics
            ]
        )


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> SmallCluster:
    small = SmallCluster()
    monkeypatch.setattr(Cluster, "_open", lambda self, node_id: small.connect(node_id))
    monkeypatch.setattr(module, "BACKOFF_S", 0.001)
    return small


@pytest.fixture
def admin(brokers: SmallCluster) -> Admin:
    return Admin("broker:9092", timeout_s=1)


def test_requests_are_sent_to_the_leader_of_each_partition(
    admin: Admin, brokers: SmallCluster
) -> None:
    offsets = admin.partitions.offsets("orders", EARLIEST)
    assert [(one.partition, one.offset) for one in offsets] == [(0, 100), (1, 200)]
    assert sorted(brokers.asked) == [(1, [0]), (2, [1])]


def test_only_rejected_partitions_are_requested_again(admin: Admin, brokers: SmallCluster) -> None:
    brokers.refusals = 2
    offsets = admin.partitions.offsets("orders", EARLIEST)
    assert [one.offset for one in offsets] == [100, 200]
    assert sorted(brokers.asked) == [(1, [0]), (2, [1]), (2, [1]), (2, [1])]


def test_retries_end_after_the_timeout(admin: Admin, brokers: SmallCluster) -> None:
    brokers.refusals = 1_000_000
    admin.cluster.timeout_s = 0.05
    with pytest.raises(NotLeaderOrFollower, match="orders-1"):
        admin.partitions.offsets("orders", EARLIEST)


def test_a_missing_topic_is_reported_at_once(admin: Admin, brokers: SmallCluster) -> None:
    with pytest.raises(NoSuchTopic, match="'odrers' does not exist"):
        admin.partitions.offsets("odrers", EARLIEST)


def test_a_topic_created_between_two_lookups_is_found(admin: Admin, brokers: SmallCluster) -> None:
    brokers.is_late = True
    assert [one.offset for one in admin.partitions.offsets("news", EARLIEST)] == [100, 200]


def test_a_missing_partition_is_reported_at_once(admin: Admin) -> None:
    with pytest.raises(HeadraceError, match="orders has no partition 5; it has 0 to 1"):
        admin.partitions.offsets("orders", EARLIEST, [5])


def test_existing_topics_are_described_and_missing_ones_reported(admin: Admin) -> None:
    found, missing = admin.topics.describe(["orders", "nope"])
    assert [topic.name for topic in found] == ["orders"]
    assert [part.leader for part in found[0].partitions] == [1, 2]
    assert [(one.name, one.error) for one in missing] == [("nope", "UNKNOWN_TOPIC_OR_PARTITION")]


def test_a_controller_that_moved_is_asked_again(admin: Admin, brokers: SmallCluster) -> None:
    brokers.controller_refusals = 2
    (created,) = admin.topics.create([NewTopic(name="new")])
    assert created.error is None
    assert brokers.controller_calls == 3


def test_another_node_forwards_for_a_controller_that_just_died(
    admin: Admin, brokers: SmallCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_node(cluster: Cluster, node_id: int) -> Connection:
        if node_id == 2:
            raise BrokerUnreachable("cannot reach h:2: connection refused")
        return brokers.connect(node_id)

    monkeypatch.setattr(Cluster, "_open", open_node)
    (created,) = admin.topics.create([NewTopic(name="new")])
    assert created.error is None


def test_an_unanswered_change_is_not_repeated(admin: Admin, brokers: SmallCluster) -> None:
    brokers.is_silent = True
    with pytest.raises(ConnectionLost):
        admin.topics.create([NewTopic(name="new")])
    assert brokers.controller_calls == 1


def test_topics_are_deleted_by_name(admin: Admin) -> None:
    assert [one.name for one in admin.topics.delete(["a", "b"])] == ["a", "b"]


def test_a_topic_id_must_be_one(admin: Admin) -> None:
    with pytest.raises(HeadraceError, match="is not a UUID"):
        admin.topics.delete_by_id(["short"])


def test_a_permanent_error_is_not_retried(admin: Admin, brokers: SmallCluster) -> None:
    calls = []

    def attempt() -> None:
        calls.append(1)
        raise InvalidConfig("no")

    with pytest.raises(InvalidConfig):
        admin.cluster.retry(attempt)
    assert len(calls) == 1


def test_a_temporary_error_is_retried(admin: Admin, brokers: SmallCluster) -> None:
    calls = []

    def attempt() -> str:
        calls.append(1)
        if len(calls) < 3:
            raise RequestTimedOut("busy")
        return "done"

    assert admin.cluster.retry(attempt) == "done"
