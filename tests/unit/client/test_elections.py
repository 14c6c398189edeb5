"""Elections of leaders by the wire."""

import pytest

from headrace.client.admin import Admin
from headrace.client.cluster import Cluster
from headrace.client.descriptions import PartitionOutcome
from headrace.client.elections import ElectionType
from headrace.errors import ClusterAuthorizationFailed, ElectionNotNeeded
from headrace.protocol.message import Message
from headrace.protocol.schemas.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from headrace.protocol.schemas.metadata import MetadataRequest, MetadataResponse
from tests.unit.client.scripted import connected, knowing_all


class Electing:
    """A broker that elects a leader of one partition, needs none for another, or refuses."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error_code: int = 0) -> None:
        self.error_code = error_code
        self.asked: list[ElectLeadersRequest] = []
        opened = connected(knowing_all(lambda request, _: self.answer(request)))[0]
        monkeypatch.setattr(Cluster, "_open", lambda self, node_id: opened)
        self.elections = Admin("broker:9092", timeout_s=1).elections

    def answer(self, request: Message) -> Message:
        if isinstance(request, MetadataRequest):
            return MetadataResponse()
        assert isinstance(request, ElectLeadersRequest)
        self.asked.append(request)
        results = [
            PartitionResult(1, ElectionNotNeeded.code, "it leads"),
            PartitionResult(0, 0, "ignored"),
        ]
        return ElectLeadersResponse(
            error_code=self.error_code,
            replica_election_results=[ReplicaElectionResult("orders", results)],
        )


def test_each_partition_has_its_outcome_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    electing = Electing(monkeypatch)
    found = electing.elections.hold(ElectionType.UNCLEAN, [("b", 1), ("a", 0), ("b", 0), ("b", 1)])
    assert found == [
        PartitionOutcome("orders", 0),
        PartitionOutcome("orders", 1, "ELECTION_NOT_NEEDED", "it leads"),
    ]
    (asked,) = electing.asked
    assert asked.election_type == 1
    assert [(one.topic, one.partitions) for one in asked.topic_partitions or ()] == [
        ("a", [0]),
        ("b", [0, 1]),
    ]


def test_a_request_without_partitions_is_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    electing = Electing(monkeypatch)
    electing.elections.hold(ElectionType.PREFERRED)
    assert electing.asked[0].topic_partitions is None


def test_a_refusal_of_all_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ClusterAuthorizationFailed):
        Electing(monkeypatch, ClusterAuthorizationFailed.code).elections.hold(
            ElectionType.PREFERRED
        )
