"""Elections: requests for votes, the decisions about them, and the epochs of elected leaders."""

from collections.abc import Sequence
from typing import Any

from headrace import errors
from headrace.protocol.message import Message
from headrace.protocol.schemas import begin_quorum_epoch, end_quorum_epoch, vote
from headrace.protocol.schemas.records import control
from headrace.protocol.uuids import ZERO, Uuid
from headrace.raft import messages, voter_changes
from headrace.raft.leading import Leader
from headrace.raft.log import OffsetAndEpoch
from headrace.raft.messages import Leadership
from headrace.raft.replica import Asked, Replica, State
from headrace.raft.replicas import Node, ReplicaKey
from headrace.raft.states import (
    NEVER,
    UNKNOWN,
    Candidate,
    Follower,
    Prospective,
    Resigned,
    Unattached,
)

# --- decisions --------------------------------------------------------------------------------


def is_up_to_date(candidate: OffsetAndEpoch, own: OffsetAndEpoch) -> bool:
    """Return whether a candidate's log has every record that this log may have committed."""
    return (candidate.epoch, candidate.end_offset) >= (own.epoch, own.end_offset)


def grants_pre_vote(state: State, *, up_to_date: bool) -> bool:
    """Return whether this replica would vote for a candidate; the answer is not binding.

    A follower whose leader answers its fetches refuses. So a replica that was cut off for a while
    does not depose a leader that the others still reach.
    """
    match state:
        case Leader():
            return False
        case Follower():
            return not state.has_fetched and up_to_date
        case _:
            return up_to_date


def grants_vote(state: State, candidate: ReplicaKey, *, up_to_date: bool) -> bool:
    """Return whether this replica votes for a candidate: one per epoch, and none under a leader."""
    match state:
        case Unattached() | Prospective() if state.leader_id != UNKNOWN:
            return False  # The vote for that leader is no longer stored.
        case Unattached() | Prospective() if state.voted is not None:
            return state.voted == candidate
        case Unattached() | Prospective():
            return up_to_date
        case _:
            return False


# --- requests of peers ------------------------------------------------------------------------


def on_vote(replica: Replica, token: int, request: vote.VoteRequest) -> None:
    asked = request.topics[0].partitions[0]
    error = _vote_error(replica, request.voter_id, asked)
    is_granted = False
    if error is None:
        if asked.replica_epoch > replica.epoch:
            replica.become_unattached(asked.replica_epoch)
        is_granted = _decide(replica, asked)
    answer = messages.vote_answer(messages.code(error), replica.leadership, granted=is_granted)
    replica.reply(token, answer)


def _vote_error(
    replica: Replica, voter_id: int, asked: vote.VoteRequestPartitionData
) -> type[errors.KafkaError] | None:
    epoch_max = asked.replica_epoch if asked.pre_vote else asked.replica_epoch - 1
    if min(asked.last_offset, asked.last_offset_epoch, asked.replica_id) < 0:
        return errors.InvalidRequest
    if asked.last_offset_epoch > epoch_max:
        return errors.InvalidRequest
    if not _is_addressed(replica, voter_id, asked.voter_directory_id):
        return errors.InvalidVoterKey
    return errors.FencedLeaderEpoch if asked.replica_epoch < replica.epoch else None


def _is_addressed(replica: Replica, voter_id: int, directory_id: Uuid) -> bool:
    """Return whether a request is for this replica; older versions do not name the voter."""
    mine = replica.local.key
    return voter_id in (UNKNOWN, mine.id) and directory_id in (ZERO, mine.directory_id)


def _decide(replica: Replica, asked: vote.VoteRequestPartitionData) -> bool:
    candidate = ReplicaKey(asked.replica_id, asked.replica_directory_id)
    last = OffsetAndEpoch(asked.last_offset, asked.last_offset_epoch)
    up_to_date = is_up_to_date(last, replica.last)
    if asked.pre_vote:
        return grants_pre_vote(replica.state, up_to_date=up_to_date)
    if not grants_vote(replica.state, candidate, up_to_date=up_to_date):
        return False
    replica.vote_for(candidate)
    return True


def on_begin_epoch(
    replica: Replica, token: int, request: begin_quorum_epoch.BeginQuorumEpochRequest
) -> None:
    """Follow the leader that has been elected."""
    asked = request.topics[0].partitions[0]
    node = replica.node_of(asked.leader_id)
    for one in request.leader_endpoints:
        if one.name == replica.local.listener:
            node = Node(asked.leader_id, one.host, one.port)
    error: type[errors.KafkaError] | None = None
    if asked.leader_id < 0 or node is None:
        error = errors.InvalidRequest
    elif asked.leader_epoch < replica.epoch:
        error = errors.FencedLeaderEpoch
    elif not _is_addressed(replica, request.voter_id, asked.voter_directory_id):
        error = errors.InvalidVoterKey
    elif not replica.observe(asked.leader_epoch, asked.leader_id, node):
        error = errors.InvalidRequest
    answer = messages.begin_epoch_answer(messages.code(error), replica.leadership)
    replica.reply(token, answer)


def on_end_epoch(
    replica: Replica, token: int, request: end_quorum_epoch.EndQuorumEpochRequest
) -> None:
    """Start an election when the leader's list of successors allows it."""
    asked = request.topics[0].partitions[0]
    error: type[errors.KafkaError] | None = None
    if asked.leader_id < 0:
        error = errors.InvalidRequest
    elif asked.leader_epoch < replica.epoch:
        error = errors.FencedLeaderEpoch
    elif not replica.observe(asked.leader_epoch, asked.leader_id, None):
        error = errors.InvalidRequest
    elif isinstance(replica.state, Follower):
        successors = [one.candidate_id for one in asked.preferred_candidates]
        replica.state.deadline_ms = _succession(replica, successors or asked.preferred_successors)
    answer = messages.end_epoch_answer(messages.code(error), replica.leadership)
    replica.reply(token, answer)


def _succession(replica: Replica, successors: Sequence[int]) -> int:
    """Return the time of an election: at once for the first successor, later for others."""
    if not replica.is_voter:
        return NEVER
    limit = replica.timeouts.election_backoff_max_ms
    if replica.local.key.id not in successors:
        return replica.now.ms + limit
    position = successors.index(replica.local.key.id)
    if position == 0:
        return replica.now.ms
    backoff = (limit >> (len(successors) - 1)) << (position - 1)
    return replica.now.ms + min(limit, backoff)


# --- this replica -----------------------------------------------------------------------------


def campaign(replica: Replica) -> None:
    """Ask for the votes that are missing, and enter the next state when they are decided."""
    state = replica.state
    while isinstance(state, Prospective | Candidate):
        if state.ballot.is_won:
            if isinstance(state, Prospective):
                replica.become_candidate()
            else:
                _lead(replica, state)
        elif state.ballot.is_lost and isinstance(state, Prospective):
            replica.end_pre_vote(state)
        else:
            _ask_for_votes(replica, state)
            return
        state = replica.state


def _ask_for_votes(replica: Replica, state: Prospective | Candidate) -> None:
    for voter in state.ballot.open:
        node = messages.node_of(state.ballot.voters, voter.id, replica.local.listener)
        if node is not None:
            request = messages.vote_request(
                replica.local.cluster_id,
                replica.local.key,
                voter,
                replica.epoch,
                replica.last,
                pre_vote=isinstance(state, Prospective),
            )
            replica.ask(node, request)


def vote_answered(replica: Replica, asked: Asked, answer: vote.VoteResponsePartitionData) -> None:
    state = replica.state
    if not isinstance(state, Prospective | Candidate) or answer.error_code:
        replica.back_off(asked)
    elif answer.vote_granted:
        state.ballot.granted.add(asked.peer)
    else:
        state.ballot.rejected.add(asked.peer)


def _lead(replica: Replica, won: Candidate) -> None:
    """Begin a leadership with a record of its epoch, without which nothing can be committed."""
    replica.become_leader()
    voters = [control.LeaderChangeMessageVoter(one) for one in replica.voters.ids]
    granting = [control.LeaderChangeMessageVoter(one) for one in sorted(won.ballot.granted)]
    change = control.LeaderChangeMessage(0, replica.local.key.id, voters, granting)
    records: list[Message] = [change, *voter_changes.records_of_leadership(replica)]
    replica.append_control(records)


def announce_epoch(replica: Replica, leader: Leader) -> None:
    """Send the epoch to voters that do not fetch."""
    silent_ms = replica.timeouts.fetch_ms // 2
    for voter in replica.voters.voters:
        fetched_ms = leader.last_fetch_ms.get(voter.key.id)
        is_silent = fetched_ms is None or replica.now.ms - fetched_ms >= silent_ms
        node = voter.node(replica.local.listener)
        if voter.key.id != replica.local.key.id and node is not None and is_silent:
            request = messages.begin_epoch_request(
                replica.local.cluster_id, voter.key, replica.leadership, replica.local.endpoints
            )
            replica.ask(node, request)


def hand_over(replica: Replica, state: Resigned) -> None:
    """Ask the other voters to elect a successor, until each has confirmed."""
    leadership = Leadership(replica.epoch, replica.local.key.id)
    for voter in replica.voters.voters:
        node = voter.node(replica.local.listener)
        is_done = voter.key.id in (replica.local.key.id, *state.acknowledged)
        if node is not None and state.successors and not is_done:
            request = messages.end_epoch_request(
                replica.local.cluster_id, leadership, state.successors, replica.local.endpoints
            )
            replica.ask(node, request)


def end_answered(replica: Replica, asked: Asked, answer: Any) -> None:
    if isinstance(replica.state, Resigned) and not answer.error_code:
        replica.state.acknowledged.add(asked.peer)
