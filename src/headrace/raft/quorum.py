"""KRaft without input and output: one replica of the quorum that agrees on the metadata log.

Requests, answers, the end of a sync and the passing of time come in as method calls. Each call
changes the state and fills an `Output`, which the caller takes and carries out in this order:

1. `state` is written and synced.
2. `replies` and `requests` are sent.
3. If `sync` is set, the log is synced, and then `synced` is called with it.

So nothing that is sent promises more than the disk holds. A vote leaves after it is durable. A
follower's next fetch, which acknowledges records, leaves after their sync. The leader counts its
own records only when they are synced; Kafka's leader counts them earlier.

`replica.py` has the state and its transitions. `elections.py`, `following.py`, `serving.py` and
`voter_changes.py` handle messages; `leading.py` is a leader's knowledge of its followers.
"""

import logging
from collections.abc import Callable
from random import Random
from typing import Any

from headrace import errors
from headrace.protocol.message import Message
from headrace.protocol.metadata_topic import METADATA_TOPIC, METADATA_TOPIC_ID
from headrace.protocol.schemas import (
    add_raft_voter,
    api_versions,
    begin_quorum_epoch,
    describe_quorum,
    end_quorum_epoch,
    fetch,
    fetch_snapshot,
    remove_raft_voter,
    update_raft_voter,
    vote,
)
from headrace.raft import elections, following, messages, serving, voter_changes
from headrace.raft.effects import LocalReplica, Now, Output, Sync, Timeouts
from headrace.raft.leading import Leader
from headrace.raft.log import RaftLog
from headrace.raft.messages import Leadership
from headrace.raft.quorum_state import QuorumState
from headrace.raft.replica import Asked, Replica
from headrace.raft.replicas import VoterHistory
from headrace.raft.states import NEVER, Candidate, Follower, Prospective, Resigned, Unattached

_log = logging.getLogger(__name__)


class Quorum(Replica):
    """A replica with the calls of its surroundings; each ends by sending what is due."""

    def __init__(
        self,
        local: LocalReplica,
        log: RaftLog,
        history: VoterHistory,
        stored: QuorumState,
        timeouts: Timeouts,
        chance: Random,
        now: Now,
    ) -> None:
        super().__init__(local, log, history, stored, timeouts, chance, now)
        self._announced = Leadership(-1)
        if self.voters.is_only(local.key):
            self.become_prospective()
        self._pursue()

    @property
    def is_leader(self) -> bool:
        return isinstance(self.state, Leader)

    def next_deadline_ms(self) -> int:
        """Return the time at which `tick` has work."""
        deadlines = [self.state.deadline_ms, self.next_retry_ms()]
        if isinstance(self.state, Leader):
            deadlines += [one.deadline_ms for one in self.state.parked.values()]
            deadlines.append(self.now.ms + self.timeouts.fetch_ms // 2)
            if self.state.change is not None:
                deadlines.append(self.state.change.deadline_ms)
        return min(deadlines)

    def take(self) -> Output:
        """Return the effects since the last call."""
        taken, self.output = self.output, Output()
        return taken

    # --- calls --------------------------------------------------------------------------------

    def tick(self, now: Now) -> None:
        """Act on the time: elections, retries, fetches, and requests that wait too long."""
        self.now = now
        self.next_retry_ms()
        if now.ms >= self.state.deadline_ms:
            self._time_is_up()
        self._pursue()

    def _time_is_up(self) -> None:
        match self.state:
            case Leader():
                if self.state.is_supported(self.voters, self.local.key):
                    self.state.deadline_ms = self.check_quorum_deadline()
                else:
                    _log.warning("resigned: no majority fetches", extra={"epoch": self.epoch})
                    self.become_resigned(self.state)
            case Resigned():
                self.become_unattached(self.epoch + 1)
            case Prospective():
                self.end_pre_vote(self.state)
            case Candidate():
                self.become_prospective()
            case Follower() | Unattached() if self.is_voter and not self.is_stopping:
                self.become_prospective()
            case Follower() | Unattached():
                self.state.deadline_ms = NEVER

    def synced(self, sync: Sync, now: Now) -> None:
        """Count records as durable, unless the log was truncated in the meantime."""
        self.now = now
        if sync.truncations == self.truncations and sync.end_offset > self.synced_offset:
            self.synced_offset = sync.end_offset
            if self.synced_offset < self.log.end_offset:
                self.output.sync = Sync(self.log.end_offset, self.truncations)
        self._pursue()

    def propose(self, data: bytearray, now: Now) -> int:
        """Append batches of the state machine, with offsets from the log's end and this epoch.

        Returns the offset after them; they are committed when the high watermark reaches it.
        """
        self.now = now
        if not self.is_leader:
            raise errors.NotLeaderOrFollower("this node does not lead the quorum")
        self.append(memoryview(data))
        self._pursue()
        return self.log.end_offset

    def resign(self, now: Now) -> None:
        """Hand over the leadership: the other voters are asked to elect a successor."""
        self.now = now
        if isinstance(self.state, Leader):
            self.become_resigned(self.state)
        self._pursue()

    def stop(self, now: Now) -> None:
        """Resign for good; requests to a leader are refused from now on."""
        self.is_stopping = True
        self.resign(now)

    def leader_refuses_connections(self, now: Now) -> None:
        """Start an election at once: the process of the leader is gone, and not merely slow."""
        self.now = now
        if isinstance(self.state, Follower) and self.is_voter and not self.is_stopping:
            self.become_prospective()
        self._pursue()

    def upgrade(self, kraft_version: int, now: Now) -> int:
        """Raise kraft.version; returns the offset after the records."""
        self.now = now
        end_offset = voter_changes.upgrade(self, kraft_version)
        self._pursue()
        return end_offset

    def receive(self, token: int, request: Message, now: Now) -> None:
        """Handle a request of a peer; its reply may come with a later call."""
        self.now = now
        handler, answer = _REQUESTS[type(request)]
        cluster_id = getattr(request, "cluster_id", None)
        if cluster_id not in (None, self.local.cluster_id):
            self.reply(token, answer(error_code=errors.InconsistentClusterId.code))
        elif not _is_for_metadata(request):
            self.reply(token, answer(error_code=errors.InvalidRequest.code))
        else:
            handler(self, token, request)
        self._pursue()

    def abandon(self, token: int) -> None:
        """Forget a request whose sender is gone."""
        if isinstance(self.state, Leader):
            self.state.parked.pop(token, None)

    def failed(self, token: int, now: Now) -> None:
        """Retry a request that timed out or whose connection was lost, after a pause."""
        self.now = now
        asked = self.close(token)
        if asked is not None and asked.state is self.state:
            self._retry(asked)
            voter_changes.peer_failed(self, asked.message)
        self._pursue()

    def answered(self, token: int, answer: Any, now: Now) -> None:
        """Handle the answer of a peer to a request of this replica."""
        self.now = now
        asked = self.close(token)
        if asked is None:
            return
        if isinstance(asked.message, api_versions.ApiVersionsRequest):
            if asked.state is self.state:
                voter_changes.versions_answered(self, answer)
        elif answer.error_code or (part := _part_with_leader(answer)) is None:
            self._retry(asked)
        else:
            self._handle(asked, answer, part)
        self._pursue()

    def _handle(self, asked: Asked, answer: Any, part: Any) -> None:
        """Follow the leader that an answer names, then use the rest if it is not outdated."""
        current = getattr(part, "current_leader", part)
        node = messages.node_in(answer, current.leader_id)
        if not self.observe(current.leader_epoch, current.leader_id, node):
            _log.error(
                "two leaders of one epoch reported",
                extra={"epoch": self.epoch, "peer": asked.peer, "leader": current.leader_id},
            )
        elif asked.state is self.state:
            if part.error_code:
                self._retry(asked)
            match answer:
                case vote.VoteResponse():
                    elections.vote_answered(self, asked, part)
                case fetch.FetchResponse():
                    following.fetch_answered(self, asked, part)
                case fetch_snapshot.FetchSnapshotResponse():
                    following.snapshot_answered(self, asked, part)
                case end_quorum_epoch.EndQuorumEpochResponse():
                    elections.end_answered(self, asked, part)
                case update_raft_voter.UpdateRaftVoterResponse():
                    if isinstance(self.state, Follower):
                        self.state.is_recorded = not part.error_code

    def _retry(self, asked: Asked) -> None:
        """Send a request again after a pause; a fetch to another node."""
        self.back_off(asked)
        if isinstance(asked.message, following.FETCHES):
            self.asks_leader = not self.asks_leader

    # --- what the state wants -----------------------------------------------------------------

    def _pursue(self) -> None:
        """Send what the present state wants to be sent, and report what has changed."""
        if isinstance(self.state, Prospective | Candidate):
            elections.campaign(self)
        if isinstance(self.state, Leader):
            self._pursue_leadership(self.state)
        if isinstance(self.state, Follower | Unattached):
            following.pursue(self, self.state)
        if isinstance(self.state, Resigned):
            elections.hand_over(self, self.state)
        for ended in self.ended:
            serving.refuse_parked(self, ended)
            voter_changes.abandon(self, ended)
        self.ended.clear()
        if self.leadership != self._announced:
            self._announced = self.output.leadership = self.leadership

    def _pursue_leadership(self, leader: Leader) -> None:
        serving.commit(self, leader)
        voter_changes.pursue(self, leader)
        if self.state is leader:
            serving.answer_parked(self, leader)
            elections.announce_epoch(self, leader)


_REQUESTS: dict[type[Message], tuple[Callable[..., None], Callable[..., Message]]] = {
    vote.VoteRequest: (elections.on_vote, vote.VoteResponse),
    begin_quorum_epoch.BeginQuorumEpochRequest: (
        elections.on_begin_epoch,
        begin_quorum_epoch.BeginQuorumEpochResponse,
    ),
    end_quorum_epoch.EndQuorumEpochRequest: (
        elections.on_end_epoch,
        end_quorum_epoch.EndQuorumEpochResponse,
    ),
    fetch.FetchRequest: (serving.on_fetch, fetch.FetchResponse),
    fetch_snapshot.FetchSnapshotRequest: (
        serving.on_fetch_snapshot,
        fetch_snapshot.FetchSnapshotResponse,
    ),
    describe_quorum.DescribeQuorumRequest: (
        serving.on_describe,
        describe_quorum.DescribeQuorumResponse,
    ),
    add_raft_voter.AddRaftVoterRequest: (voter_changes.add, add_raft_voter.AddRaftVoterResponse),
    remove_raft_voter.RemoveRaftVoterRequest: (
        voter_changes.remove,
        remove_raft_voter.RemoveRaftVoterResponse,
    ),
    update_raft_voter.UpdateRaftVoterRequest: (
        voter_changes.update,
        update_raft_voter.UpdateRaftVoterResponse,
    ),
}


def _is_for_metadata(request: Any) -> bool:
    """Return whether a request is for the one partition that has a quorum."""
    topics = getattr(request, "topics", None)
    if topics is None:
        return True  # Changes of voters name no partition.
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return False
    topic, partition = topics[0], topics[0].partitions[0]
    if isinstance(topic, fetch.FetchTopic):
        is_metadata = topic.topic_id == METADATA_TOPIC_ID or topic.topic == METADATA_TOPIC
        return is_metadata and partition.partition == 0
    if isinstance(topic, fetch_snapshot.FetchSnapshotRequestTopicSnapshot):
        return topic.name == METADATA_TOPIC and partition.partition == 0
    return bool(topic.topic_name == METADATA_TOPIC and partition.partition_index == 0)


def _part_with_leader(answer: Any) -> Any:
    """Return the part of an answer that names the leader; None if it has none."""
    if isinstance(answer, update_raft_voter.UpdateRaftVoterResponse):
        return answer
    topics = answer.responses if isinstance(answer, fetch.FetchResponse) else None
    topics = topics or getattr(answer, "topics", None)
    return topics[0].partitions[0] if topics and topics[0].partitions else None
