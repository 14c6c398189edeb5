"""`headrace cluster`: exit codes for scripts, and changes of controllers."""

import json
from pathlib import Path

import pytest

from headrace.cli.cluster import _controller_of, _directory_of
from headrace.cli.main import main
from headrace.client.cluster import Cluster
from headrace.client.descriptions import ClusterDescription, QuorumDescription, QuorumReplica
from headrace.errors import ElectionNotNeeded, HeadraceError, InvalidConfig
from headrace.protocol.message import Message
from headrace.protocol.schemas.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from headrace.protocol.schemas.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from headrace.protocol.schemas.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
)
from headrace.protocol.schemas.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    ReplicaState,
)
from headrace.protocol.schemas.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from headrace.protocol.schemas.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.protocol.schemas.remove_raft_voter import (
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from headrace.protocol.uuids import to_text
from tests.unit.client.scripted import connected, knowing_all

DIRECTORY = bytes(range(16))


class FakeCluster:
    """Three brokers behind one script; the third may be fenced."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, is_fenced: bool = False) -> None:
        self.is_fenced = is_fenced
        self.asked: list[Message] = []
        opened = connected(knowing_all(lambda request, _: self.answer(request)))[0]
        monkeypatch.setattr(Cluster, "_open", lambda self, node_id: opened)

    def answer(self, request: Message) -> Message:
        self.asked.append(request)
        match request:
            case MetadataRequest():
                in_sync = [1, 2] if self.is_fenced else [1, 2, 3]
                part = MetadataResponsePartition(
                    leader_id=1, replica_nodes=[1, 2, 3], isr_nodes=in_sync
                )
                return MetadataResponse(
                    brokers=[MetadataResponseBroker(one, "h", 9092) for one in in_sync],
                    topics=[MetadataResponseTopic(name="orders", partitions=[part])],
                )
            case DescribeClusterRequest():
                brokers = [
                    DescribeClusterBroker(one, "h", 9092, None, one == 3 and self.is_fenced)
                    for one in (1, 2, 3)
                ]
                return DescribeClusterResponse(cluster_id="c", brokers=brokers)
            case DescribeQuorumRequest():
                part_data = DescribeQuorumResponsePartitionData(
                    leader_id=1, current_voters=[ReplicaState(1, DIRECTORY, 9, 1, 1)]
                )
                topics = [DescribeQuorumResponseTopicData("__cluster_metadata", [part_data])]
                return DescribeQuorumResponse(topics=topics)
            case DescribeConfigsRequest():
                return DescribeConfigsResponse()
            case ElectLeadersRequest():
                results = [PartitionResult(0, 0, None), PartitionResult(1, ElectionNotNeeded.code)]
                return ElectLeadersResponse(
                    replica_election_results=[ReplicaElectionResult("orders", results)]
                )
            case AddRaftVoterRequest():
                return AddRaftVoterResponse()
            case RemoveRaftVoterRequest():
                return RemoveRaftVoterResponse()
        raise AssertionError(request)


def test_a_healthy_cluster_exits_with_zero(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    FakeCluster(monkeypatch)
    assert main(["cluster", "health"]) == 0
    assert capsys.readouterr().out.startswith("healthy: 3 brokers and 1 partitions of 1 topics")


def test_an_unhealthy_cluster_exits_with_one_and_names_the_problems(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    FakeCluster(monkeypatch, is_fenced=True)
    assert main(["cluster", "health", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert not report["is_healthy"]
    assert [(one["kind"], one["subject"]) for one in report["problems"]] == [
        ("fenced", "broker 3"),
        ("under-replicated", "orders-0"),
    ]
    assert main(["cluster", "health"]) == 1
    assert "in sync: 1, 2; replicas: 1, 2, 3" in capsys.readouterr().out


def test_describe_is_the_command_without_a_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    FakeCluster(monkeypatch)
    assert main(["cluster", "describe"]) == 0
    described = capsys.readouterr().out
    assert main(["cluster"]) == 0
    assert capsys.readouterr().out == described
    assert to_text(DIRECTORY) in described


def test_leaders_are_elected_and_unneeded_elections_are_no_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = FakeCluster(monkeypatch)
    assert main(["cluster", "elect", "--topic", "orders", "-p", "0", "--unclean", "--yes"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "orders-0 elected a leader",
        "orders-1 has the right leader already",
    ]
    asked = cluster.asked[-1]
    assert isinstance(asked, ElectLeadersRequest)
    assert asked.election_type == 1
    assert main(["cluster", "elect", "-p", "0"]) == 2


def test_a_controller_is_added_from_its_own_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = properties_of_controller(tmp_path)
    main(["format", "--config", str(file), "--cluster-id", "c", "--no-initial-controllers"])
    cluster = FakeCluster(monkeypatch)
    assert main(["cluster", "add-controller", "--config", str(file)]) == 0
    assert "controller 4 is a voter" in capsys.readouterr().out
    asked = cluster.asked[-1]
    assert isinstance(asked, AddRaftVoterRequest)
    assert asked.voter_id == 4
    assert [(one.name, one.host, one.port) for one in asked.listeners] == [
        ("CONTROLLER", "d.example", 9093)
    ]
    assert asked.ack_when_committed


def properties_of_controller(directory: Path) -> Path:
    file = directory / "controller.properties"
    file.write_text(
        "process.roles=controller\nnode.id=4\nlisteners=CONTROLLER://d.example:9093\n"
        f"controller.quorum.bootstrap.servers=a.example:9093\nlog.dirs={directory}/data\n"
    )
    return file


def test_only_a_formatted_controller_can_be_added(tmp_path: Path) -> None:
    with pytest.raises(HeadraceError, match="--no-initial-controllers"):
        _controller_of(str(properties_of_controller(tmp_path)))
    file = properties_of_controller(tmp_path)
    file.write_text(file.read_text() + "listeners=CONTROLLER://:9093\n")
    main(["format", "--config", str(file), "--cluster-id", "c", "--no-initial-controllers"])
    with pytest.raises(InvalidConfig, match="give its host in advertised"):
        _controller_of(str(file))
    single = tmp_path / "single.properties"
    single.write_text("node.id=1\n")
    with pytest.raises(InvalidConfig, match="starts no controller"):
        _controller_of(str(single))


def test_a_voter_is_removed_by_its_number(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = FakeCluster(monkeypatch)
    assert main(["cluster", "remove-controller", "1", "--yes"]) == 0
    assert "controller 1 is no voter any more" in capsys.readouterr().out
    assert cluster.asked[-1] == RemoveRaftVoterRequest(None, 1, DIRECTORY)


def described(*replicas: QuorumReplica) -> ClusterDescription:
    quorum = QuorumDescription(leader=1, leader_epoch=1, high_watermark=1, replicas=list(replicas))
    return ClusterDescription(cluster_id="c", brokers=[], quorum=quorum, features=[])


def replica(number: int, directory_id: str | None, role: str = "voter") -> QuorumReplica:
    return QuorumReplica(id=number, role=role, log_end_offset=1, lag=0, directory_id=directory_id)


def test_a_lost_disk_is_named_by_its_directory() -> None:
    """A controller that came back with an empty disk has two entries."""
    both = described(replica(1, "old"), replica(1, "new"))
    with pytest.raises(HeadraceError, match="directory id of controller 1"):
        _directory_of(both, 1)
    with pytest.raises(HeadraceError, match="the voters are 1, 2"):
        _directory_of(described(replica(1, "a"), replica(2, "b"), replica(3, "c", "observer")), 3)
