"""Partitions that are being moved."""

import pytest

from headrace.client.admin import Admin
from headrace.client.cluster import Cluster
from headrace.client.descriptions import PartitionOutcome
from headrace.client.reassignments import Reassignment
from headrace.errors import ClusterAuthorizationFailed, NoReassignmentInProgress
from headrace.protocol.message import Message
from headrace.protocol.schemas.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from headrace.protocol.schemas.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from headrace.protocol.schemas.metadata import MetadataRequest, MetadataResponse
from tests.unit.client.scripted import connected, knowing_all


class Moving:
    """A broker that moves one partition, or refuses to tell."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error_code: int = 0) -> None:
        self.error_code = error_code
        self.asked: list[ListPartitionReassignmentsRequest] = []
        opened = connected(knowing_all(lambda request, _: self.answer(request)))[0]
        monkeypatch.setattr(Cluster, "_open", lambda self, node_id: opened)
        self.admin = Admin("broker:9092", timeout_s=1)

    def answer(self, request: Message) -> Message:
        if isinstance(request, MetadataRequest):
            return MetadataResponse()
        assert isinstance(request, ListPartitionReassignmentsRequest)
        self.asked.append(request)
        if self.error_code:
            return ListPartitionReassignmentsResponse(error_code=self.error_code)
        partition = OngoingPartitionReassignment(4, [1, 2], [2], [1])
        return ListPartitionReassignmentsResponse(
            topics=[OngoingTopicReassignment("orders", [partition])]
        )


def test_all_reassignments_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    moving = Moving(monkeypatch)
    assert moving.admin.reassignments.under_way() == [Reassignment("orders", 4, [1, 2], [2], [1])]
    assert moving.asked[0].topics is None


def test_reassignments_of_one_topic_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    moving = Moving(monkeypatch)
    moving.admin.reassignments.under_way("orders", [4])
    assert moving.asked[0].topics is not None
    assert (moving.asked[0].topics[0].name, moving.asked[0].topics[0].partition_indexes) == (
        "orders",
        [4],
    )


def test_a_refusal_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    moving = Moving(monkeypatch, ClusterAuthorizationFailed.code)
    with pytest.raises(ClusterAuthorizationFailed):
        moving.admin.reassignments.under_way()


def test_moves_go_topic_by_topic_and_each_partition_has_its_outcome(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, int, list[int] | None]] = []

    def answer(request: Message, _: int) -> Message:
        if isinstance(request, MetadataRequest):
            return MetadataResponse()
        assert isinstance(request, AlterPartitionReassignmentsRequest)
        for topic in request.topics:
            asked.extend(
                (topic.name, one.partition_index, one.replicas) for one in topic.partitions
            )
        none = ReassignablePartitionResponse(0, NoReassignmentInProgress.code, "nothing moves")
        return AlterPartitionReassignmentsResponse(
            responses=[
                ReassignableTopicResponse("b", [none]),
                ReassignableTopicResponse("a", [ReassignablePartitionResponse(1)]),
            ]
        )

    opened = connected(knowing_all(answer))[0]
    monkeypatch.setattr(Cluster, "_open", lambda self, node_id: opened)
    admin = Admin("broker:9092", timeout_s=1)
    assert admin.reassignments.alter({("b", 0): None, ("a", 1): [3, 2]}) == [
        PartitionOutcome("a", 1),
        PartitionOutcome("b", 0, "NO_REASSIGNMENT_IN_PROGRESS", "nothing moves"),
    ]
    assert asked == [("a", 1, [3, 2]), ("b", 0, None)]
