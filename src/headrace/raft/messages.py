"""The requests and answers of a quorum: Kafka's messages, filled in for the one partition.

Each answer names the leader and its address as far as the sender has them, so that a peer with old
knowledge needs no further request.
"""

from typing import NamedTuple

from headrace.errors import KafkaError
from headrace.protocol.message import Message
from headrace.protocol.metadata_topic import METADATA_TOPIC, METADATA_TOPIC_ID
from headrace.protocol.schemas import (
    begin_quorum_epoch,
    end_quorum_epoch,
    fetch,
    fetch_snapshot,
    update_raft_voter,
    vote,
)
from headrace.raft.log import OffsetAndEpoch
from headrace.raft.replicas import Endpoint, Node, ReplicaKey, VoterSet
from headrace.raft.states import UNKNOWN

FETCH_WAIT_MS = 500


class Leadership(NamedTuple):
    """An epoch, and its leader as far as it is known."""

    epoch: int
    leader_id: int = UNKNOWN
    node: Node | None = None


# --- requests ---------------------------------------------------------------------------------


def vote_request(
    cluster_id: str,
    candidate: ReplicaKey,
    voter: ReplicaKey,
    epoch: int,
    last: OffsetAndEpoch,
    *,
    pre_vote: bool,
) -> vote.VoteRequest:
    partition = vote.VoteRequestPartitionData(
        0,
        epoch,
        candidate.id,
        candidate.directory_id,
        voter.directory_id,
        last.epoch,
        last.end_offset,
        pre_vote,
    )
    topic = vote.VoteRequestTopicData(METADATA_TOPIC, [partition])
    return vote.VoteRequest(cluster_id, voter.id, [topic])


def begin_epoch_request(
    cluster_id: str, voter: ReplicaKey, leader: Leadership, endpoints: tuple[Endpoint, ...]
) -> begin_quorum_epoch.BeginQuorumEpochRequest:
    partition = begin_quorum_epoch.BeginQuorumEpochRequestPartitionData(
        0, voter.directory_id, leader.leader_id, leader.epoch
    )
    topic = begin_quorum_epoch.BeginQuorumEpochRequestTopicData(METADATA_TOPIC, [partition])
    listeners = [
        begin_quorum_epoch.LeaderEndpoint(one.name, one.host, one.port) for one in endpoints
    ]
    return begin_quorum_epoch.BeginQuorumEpochRequest(cluster_id, voter.id, [topic], listeners)


def end_epoch_request(
    cluster_id: str,
    leader: Leadership,
    successors: list[ReplicaKey],
    endpoints: tuple[Endpoint, ...],
) -> end_quorum_epoch.EndQuorumEpochRequest:
    partition = end_quorum_epoch.EndQuorumEpochRequestPartitionData(
        0,
        leader.leader_id,
        leader.epoch,
        [one.id for one in successors],
        [end_quorum_epoch.ReplicaInfo(one.id, one.directory_id) for one in successors],
    )
    topic = end_quorum_epoch.EndQuorumEpochRequestTopicData(METADATA_TOPIC, [partition])
    listeners = [end_quorum_epoch.LeaderEndpoint(one.name, one.host, one.port) for one in endpoints]
    return end_quorum_epoch.EndQuorumEpochRequest(cluster_id, [topic], listeners)


def fetch_request(
    cluster_id: str,
    replica: ReplicaKey,
    epoch: int,
    last: OffsetAndEpoch,
    high_watermark: int,
    size_max: int,
) -> fetch.FetchRequest:
    partition = fetch.FetchPartition(
        partition=0,
        current_leader_epoch=epoch,
        fetch_offset=last.end_offset,
        last_fetched_epoch=last.epoch,
        partition_max_bytes=size_max,
        replica_directory_id=replica.directory_id,
        high_watermark=high_watermark,
    )
    return fetch.FetchRequest(
        cluster_id=cluster_id,
        replica_state=fetch.ReplicaState(replica.id),
        max_wait_ms=FETCH_WAIT_MS,
        max_bytes=size_max,
        topics=[fetch.FetchTopic(METADATA_TOPIC, METADATA_TOPIC_ID, [partition])],
    )


def snapshot_request(
    cluster_id: str,
    replica: ReplicaKey,
    epoch: int,
    snapshot: OffsetAndEpoch,
    position: int,
    size_max: int,
) -> fetch_snapshot.FetchSnapshotRequest:
    partition = fetch_snapshot.FetchSnapshotRequestPartitionSnapshot(
        0,
        epoch,
        fetch_snapshot.FetchSnapshotRequestSnapshotId(*snapshot),
        position,
        replica.directory_id,
    )
    topic = fetch_snapshot.FetchSnapshotRequestTopicSnapshot(METADATA_TOPIC, [partition])
    return fetch_snapshot.FetchSnapshotRequest(cluster_id, replica.id, size_max, [topic])


def update_voter_request(
    cluster_id: str,
    epoch: int,
    replica: ReplicaKey,
    endpoints: tuple[Endpoint, ...],
    kraft_versions: tuple[int, int],
) -> update_raft_voter.UpdateRaftVoterRequest:
    return update_raft_voter.UpdateRaftVoterRequest(
        cluster_id,
        epoch,
        replica.id,
        replica.directory_id,
        [update_raft_voter.Listener(one.name, one.host, one.port) for one in endpoints],
        update_raft_voter.KRaftVersionFeature(*kraft_versions),
    )


# --- answers ----------------------------------------------------------------------------------


def code(error: type[KafkaError] | None) -> int:
    return 0 if error is None else error.code


def vote_answer(error: int, leader: Leadership, *, granted: bool) -> vote.VoteResponse:
    partition = vote.VoteResponsePartitionData(0, error, leader.leader_id, leader.epoch, granted)
    topic = vote.VoteResponseTopicData(METADATA_TOPIC, [partition])
    nodes = [vote.NodeEndpoint(*leader.node)] if leader.node else []
    return vote.VoteResponse(0, [topic], nodes)


def begin_epoch_answer(
    error: int, leader: Leadership
) -> begin_quorum_epoch.BeginQuorumEpochResponse:
    module = begin_quorum_epoch
    partition = module.BeginQuorumEpochResponsePartitionData(
        0, error, leader.leader_id, leader.epoch
    )
    topic = module.BeginQuorumEpochResponseTopicData(METADATA_TOPIC, [partition])
    nodes = [module.NodeEndpoint(*leader.node)] if leader.node else []
    return module.BeginQuorumEpochResponse(0, [topic], nodes)


def end_epoch_answer(error: int, leader: Leadership) -> end_quorum_epoch.EndQuorumEpochResponse:
    module = end_quorum_epoch
    partition = module.EndQuorumEpochResponsePartitionData(0, error, leader.leader_id, leader.epoch)
    topic = module.EndQuorumEpochResponseTopicData(METADATA_TOPIC, [partition])
    nodes = [module.NodeEndpoint(*leader.node)] if leader.node else []
    return module.EndQuorumEpochResponse(0, [topic], nodes)


def fetch_answer(partition: fetch.PartitionData, leader: Leadership) -> fetch.FetchResponse:
    partition.current_leader = fetch.LeaderIdAndEpoch(leader.leader_id, leader.epoch)
    topic = fetch.FetchableTopicResponse(METADATA_TOPIC, METADATA_TOPIC_ID, [partition])
    nodes = [fetch.NodeEndpoint(*leader.node)] if leader.node else []
    return fetch.FetchResponse(responses=[topic], node_endpoints=nodes)


def snapshot_answer(
    partition: fetch_snapshot.FetchSnapshotResponsePartitionSnapshot, leader: Leadership
) -> fetch_snapshot.FetchSnapshotResponse:
    partition.current_leader = fetch_snapshot.LeaderIdAndEpoch(leader.leader_id, leader.epoch)
    topic = fetch_snapshot.FetchSnapshotResponseTopicSnapshot(METADATA_TOPIC, [partition])
    nodes = [fetch_snapshot.NodeEndpoint(*leader.node)] if leader.node else []
    return fetch_snapshot.FetchSnapshotResponse(0, 0, [topic], nodes)


def update_voter_answer(
    error: int, leader: Leadership
) -> update_raft_voter.UpdateRaftVoterResponse:
    node = leader.node or Node(UNKNOWN, "", 0)
    current = update_raft_voter.CurrentLeader(leader.leader_id, leader.epoch, node.host, node.port)
    return update_raft_voter.UpdateRaftVoterResponse(0, error, current)


# --- reading ----------------------------------------------------------------------------------


def node_in(answer: Message, leader_id: int) -> Node | None:
    """Return the address of a leader that an answer contains."""
    current = getattr(answer, "current_leader", None)
    if current is not None and current.leader_id == leader_id and current.host:
        return Node(leader_id, current.host, current.port)
    for one in getattr(answer, "node_endpoints", ()):
        if one.node_id == leader_id:
            return Node(leader_id, one.host, one.port)
    return None


def node_of(voters: VoterSet, voter_id: int, listener: str) -> Node | None:
    """Return the address of a voter as its set records it."""
    voter = voters.find(voter_id)
    return voter.node(listener) if voter is not None else None
