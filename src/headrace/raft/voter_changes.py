"""Changes of the voters: one at a time, each a record of the whole new set (KIP-853).

The new set counts from the append on. The leader answers a change when its record is committed by
the new set. A replica that is added must support the kraft.version, and must have the log already.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from headrace import errors
from headrace.protocol.message import Message
from headrace.protocol.schemas import (
    add_raft_voter,
    api_versions,
    remove_raft_voter,
    update_raft_voter,
)
from headrace.protocol.schemas.records.control import KRaftVersionRecord
from headrace.protocol.uuids import ZERO
from headrace.raft import messages
from headrace.raft.leading import CAUGHT_UP_MS, NEVER_MS, Leader, VoterChange
from headrace.raft.replica import Replica
from headrace.raft.replicas import DYNAMIC_VOTERS, Endpoint, ReplicaKey, Voter, VoterSet

KRAFT_VERSION = "kraft.version"
_JOIN_TIMEOUT_MS = 60_000

_Request = (
    add_raft_voter.AddRaftVoterRequest
    | remove_raft_voter.RemoveRaftVoterRequest
    | update_raft_voter.UpdateRaftVoterRequest
)


# --- requests ---------------------------------------------------------------------------------


def add(replica: Replica, token: int, request: add_raft_voter.AddRaftVoterRequest) -> None:
    """Add a voter: first ask it for its versions, then append the new set."""
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    joining = Voter(key, _endpoints(request.listeners), (0, DYNAMIC_VOTERS))
    leader, refusal = _leader_of_change(replica)
    node = joining.node(replica.local.listener)
    if refusal is None and (key.directory_id == ZERO or key.id < 0):
        refusal = errors.InvalidRequest("a voter needs the id of its metadata directory")
    elif refusal is None and node is None:
        refusal = errors.InvalidRequest(
            f"the new voter needs an endpoint of the listener {replica.local.listener}"
        )
    elif refusal is None and replica.voters.find(key.id) is not None:
        refusal = errors.DuplicateVoter(f"node {key.id} is a voter already")
    if refusal is not None or leader is None or node is None:
        _refuse(replica, token, request, refusal)
        return
    leader.change = VoterChange(
        token,
        request,
        replica.voters.with_voter(joining),
        replica.now.ms + request.timeout_ms,
        request.ack_when_committed,
        joining,
    )
    replica.ask(node, api_versions.ApiVersionsRequest("headrace", "0"))


def remove(replica: Replica, token: int, request: remove_raft_voter.RemoveRaftVoterRequest) -> None:
    """Remove a voter; a leader that removes itself resigns when that is committed."""
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    leader, refusal = _leader_of_change(replica)
    if refusal is None and not any(voter.key == key for voter in replica.voters.voters):
        refusal = errors.VoterNotFound(f"node {key.id} with that directory is not a voter")
    elif refusal is None and len(replica.voters.voters) == 1:
        refusal = errors.InvalidRequest("the last voter cannot be removed")
    if refusal is not None or leader is None:
        _refuse(replica, token, request, refusal)
        return
    change = VoterChange(token, request, replica.voters.without(key), _deadline(replica))
    _append(replica, leader, change)


def update(replica: Replica, token: int, request: update_raft_voter.UpdateRaftVoterRequest) -> None:
    """Follow the endpoints and versions that a voter reports of itself."""
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    feature = request.kraft_version_feature
    versions = (feature.min_supported_version, feature.max_supported_version)
    voter = Voter(key, _endpoints(request.listeners), versions)
    refusal: errors.KafkaError | None = _epoch_error(replica, request.current_leader_epoch)
    is_static = not replica.history.is_dynamic
    leader: Leader | None = replica.state if isinstance(replica.state, Leader) else None
    if refusal is None and not is_static:
        leader, refusal = _leader_of_change(replica)
    if refusal is None and voter.node(replica.local.listener) is None:
        refusal = errors.InvalidRequest(
            f"the voter needs an endpoint of the listener {replica.local.listener}"
        )
    elif refusal is None and not replica.voters.has(key):
        refusal = errors.VoterNotFound(f"node {key.id} with that directory is not a voter")
    elif refusal is None and not voter.supports(replica.history.kraft_version):
        refusal = errors.InvalidRequest("the voter does not support the kraft.version in use")
    if refusal is not None or leader is None:
        _refuse(replica, token, request, refusal)
    elif is_static:
        leader.learned[key.id] = voter
        _reply(replica, token, request, None)
    elif replica.voters.find(key.id) == voter:
        _reply(replica, token, request, None)
    else:
        voters = replica.voters.with_voter(voter)
        _append(replica, leader, VoterChange(token, request, voters, _deadline(replica)))


def _leader_of_change(replica: Replica) -> tuple[Leader | None, errors.KafkaError | None]:
    """Return the leader's state, or the reason why no change can begin now."""
    if not isinstance(replica.state, Leader):
        return None, errors.NotLeaderOrFollower("this node does not lead the quorum")
    if not replica.history.is_dynamic:
        return None, errors.UnsupportedVersion(
            "voters can change from kraft.version 1 on; upgrade it first"
        )
    if replica.high_watermark is None or replica.high_watermark <= replica.state.epoch_start:
        return None, errors.RequestTimedOut("the leader has not committed a record yet; retry")
    if replica.state.change is not None or replica.history.offset >= replica.high_watermark:
        return None, errors.RequestTimedOut("another change of the voters is under way; retry")
    return replica.state, None


def _epoch_error(replica: Replica, epoch: int) -> errors.KafkaError | None:
    if epoch < replica.epoch:
        return errors.FencedLeaderEpoch(f"the epoch is {replica.epoch}")
    if epoch > replica.epoch:
        return errors.UnknownLeaderEpoch(f"the epoch is {replica.epoch}")
    if not isinstance(replica.state, Leader):
        return errors.NotLeaderOrFollower("this node does not lead the quorum")
    return None


def _endpoints(listeners: Iterable[Any]) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(one.name, one.host, one.port) for one in listeners)


def _deadline(replica: Replica) -> int:
    return replica.now.ms + replica.timeouts.fetch_ms


# --- answers ----------------------------------------------------------------------------------


def versions_answered(replica: Replica, answer: api_versions.ApiVersionsResponse) -> None:
    """Add the voter that has reported its versions, if it supports ours and has the log."""
    leader = replica.state
    if not isinstance(leader, Leader) or leader.change is None or leader.change.joining is None:
        return
    change, joining = leader.change, leader.change.joining
    supported = [one for one in answer.supported_features if one.name == KRAFT_VERSION]
    versions = [(one.min_version, one.max_version) for one in supported] or [(0, 0)]
    joining = msgspec.structs.replace(joining, kraft_versions=versions[0])
    refusal: errors.KafkaError | None = None
    if answer.error_code or not joining.supports(replica.history.kraft_version):
        refusal = errors.InvalidRequest("the new voter does not support the kraft.version in use")
    elif not _is_caught_up(replica, leader, joining):
        refusal = errors.RequestTimedOut(
            "the new voter has not caught up with the metadata log yet; retry"
        )
    if refusal is not None:
        leader.change = None
        _refuse(replica, change.token, change.request, refusal)
        return
    change.joining = None
    change.voters = replica.voters.with_voter(joining)
    _append(replica, leader, change)


def _is_caught_up(replica: Replica, leader: Leader, joining: Voter) -> bool:
    progress = leader.progress_of(joining)
    is_recent = replica.now.wall_ms - progress.fetched_ms <= CAUGHT_UP_MS
    return progress.caught_up_ms != NEVER_MS and is_recent


def peer_failed(replica: Replica, message: Message) -> None:
    """Refuse to add a voter that cannot be reached."""
    leader = replica.state
    if isinstance(message, api_versions.ApiVersionsRequest) and isinstance(leader, Leader):
        change, leader.change = leader.change, None
        if change is not None:
            refusal = errors.RequestTimedOut("the new voter does not answer at its endpoint")
            _refuse(replica, change.token, change.request, refusal)


def _append(replica: Replica, leader: Leader, change: VoterChange) -> None:
    leader.change = change
    change.offset = replica.append_control([change.voters.record()])
    if not change.replies_at_commit:
        _reply(replica, change.token, change.request, None)


# --- time, commits, and the end of a leadership -----------------------------------------------


def pursue(replica: Replica, leader: Leader) -> None:
    """Answer a change that is committed or takes too long; a leader that was removed resigns."""
    change, high_watermark = leader.change, replica.known_high_watermark
    if change is not None and change.offset is not None and change.offset < high_watermark:
        leader.change = None
        if change.replies_at_commit:
            _reply(replica, change.token, change.request, None)
    elif change is not None and replica.now.ms >= change.deadline_ms:
        leader.change = None
        if change.offset is None or change.replies_at_commit:
            refusal = errors.RequestTimedOut("the change is not committed yet")
            _refuse(replica, change.token, change.request, refusal)
    if replica.history.offset < high_watermark and not replica.voters.has(replica.local.key):
        replica.become_resigned(leader)


def abandon(replica: Replica, leader: Leader) -> None:
    """Refuse a change that waits for a leader which leads no longer."""
    change, leader.change = leader.change, None
    if change is not None and (change.offset is None or change.replies_at_commit):
        refusal = errors.NotLeaderOrFollower("this node does not lead the quorum any more")
        _refuse(replica, change.token, change.request, refusal)


def _refuse(
    replica: Replica, token: int, request: Message, refusal: errors.KafkaError | None
) -> None:
    assert refusal is not None, "a change is refused for a reason"
    _reply(replica, token, request, refusal)


def _reply(
    replica: Replica, token: int, request: Message, refusal: errors.KafkaError | None
) -> None:
    code = refusal.code if refusal is not None else 0
    text = str(refusal) if refusal is not None else None
    match request:
        case update_raft_voter.UpdateRaftVoterRequest():
            answer: Message = messages.update_voter_answer(code, replica.leadership)
        case add_raft_voter.AddRaftVoterRequest():
            answer = add_raft_voter.AddRaftVoterResponse(0, code, text)
        case _:
            answer = remove_raft_voter.RemoveRaftVoterResponse(0, code, text)
    replica.reply(token, answer)


# --- this replica -----------------------------------------------------------------------------


def records_of_leadership(replica: Replica) -> list[Message]:
    """Return the voters for the first batch of a leader, if the log lacks them or they changed."""
    if not replica.history.is_dynamic:
        return []
    voters = replica.voters
    if voters.find(replica.local.key.id) is not None and replica.local.endpoints:
        voters = voters.with_voter(replica.local.voter)
    if replica.history.offset >= 0 and voters == replica.voters:
        return []
    return [KRaftVersionRecord(0, replica.history.kraft_version), voters.record()]


def wanted_request(replica: Replica, *, is_recorded: bool) -> Message | None:
    """Return the request to the leader by which this controller becomes or stays a voter."""
    local = replica.local
    if not local.is_controller:
        return None
    recorded = replica.voters.find(local.key.id)
    is_static = not replica.history.is_dynamic
    if replica.is_voter:
        is_current = is_recorded if is_static else recorded == local.voter
        if is_current or not local.endpoints:
            return None
        return messages.update_voter_request(
            local.cluster_id, replica.epoch, local.key, local.endpoints, local.kraft_versions
        )
    if is_static or not local.joins_automatically:
        return None
    if recorded is not None:  # The same node with the directory that it has lost.
        return remove_raft_voter.RemoveRaftVoterRequest(local.cluster_id, *recorded.key)
    return add_raft_voter.AddRaftVoterRequest(
        local.cluster_id,
        _JOIN_TIMEOUT_MS,
        *local.key,
        [add_raft_voter.Listener(one.name, one.host, one.port) for one in local.endpoints],
        ack_when_committed=False,
    )


def upgrade(replica: Replica, kraft_version: int) -> int:
    """Raise kraft.version from 0 to 1: the voters move from the configuration into the log."""
    leader = replica.state
    if not isinstance(leader, Leader):
        raise errors.NotLeaderOrFollower("this node does not lead the quorum")
    if kraft_version < replica.history.kraft_version:
        raise errors.InvalidUpdateVersion("kraft.version cannot be lowered")
    if kraft_version > DYNAMIC_VOTERS:
        raise errors.InvalidUpdateVersion(f"kraft.version {kraft_version} is not supported")
    if kraft_version == replica.history.kraft_version:
        return replica.log.end_offset
    voters = []
    for voter in replica.voters.voters:
        is_local = voter.key.id == replica.local.key.id
        known = replica.local.voter if is_local else leader.learned.get(voter.key.id)
        if known is None or not known.supports(kraft_version):
            raise errors.InvalidUpdateVersion(
                f"voter {voter.key.id} has not reported yet that it supports kraft.version"
                f" {kraft_version}; retry when all voters are up"
            )
        voters.append(known)
    records: list[Message] = [
        KRaftVersionRecord(0, kraft_version),
        VoterSet.of(voters).record(),
    ]
    return replica.append_control(records) + 1
