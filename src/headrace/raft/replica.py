"""The state of one replica of the quorum, and the transitions between its states.

A transition changes the state and stores it. Nothing is sent here: `Quorum` sends what the new
state wants at the end of each call.
"""

from collections.abc import Iterable, Sequence
from random import Random
from typing import NamedTuple, TypeAlias

from headrace import errors
from headrace.protocol.message import Message
from headrace.protocol.quorum_records import encode_control_batch
from headrace.protocol.uuids import ZERO
from headrace.raft import messages
from headrace.raft.effects import LocalReplica, Now, Output, Reply, Request, Sync, Timeouts
from headrace.raft.leading import Leader
from headrace.raft.log import OffsetAndEpoch, RaftLog
from headrace.raft.messages import Leadership
from headrace.raft.quorum_state import NOBODY, QuorumState
from headrace.raft.replicas import Node, ReplicaKey, VoterHistory, VoterSet
from headrace.raft.states import (
    NEVER,
    UNKNOWN,
    Ballot,
    Candidate,
    Follower,
    Prospective,
    Resigned,
    Unattached,
)

State: TypeAlias = Unattached | Follower | Prospective | Candidate | Leader | Resigned


class QuorumFailure(errors.HeadraceError):
    """Committed records are missing, here or at the leader: the replica must stop."""


class Asked(NamedTuple):
    """A request that has no answer yet, and the state that sent it."""

    peer: int
    message: Message
    state: State


class Replica:
    """A voter, or an observer that only follows the log."""

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
        """`stored` is the content of `quorum-state`, `history` the voter sets of the log.

        The log is synced up to its end.
        """
        self.local = local
        self.log = log
        self.history = history
        self.timeouts = timeouts
        self.chance = chance
        self.now = now
        self.epoch = max(stored.leader_epoch, log.last_epoch)
        self.high_watermark: int | None = None
        self.synced_offset = log.end_offset
        self.truncations = 0
        self.output = Output()
        self.is_stopping = False
        self.asks_leader = True
        """Whether the next fetch goes to the leader, or to a bootstrap server."""
        self.ended: list[Leader] = []
        """Leaderships that have ended, with requests that wait for a refusal."""
        self._stored = stored
        self._tokens = 0
        self._asked: dict[int, Asked] = {}
        self._retry_at_ms: dict[tuple[int, type[Message]], int] = {}
        self.state: State = self._first_state(stored)

    def _first_state(self, stored: QuorumState) -> State:
        """Return the state after a restart. A former leader has resigned."""
        deadline = self._election_deadline()
        if stored.leader_epoch < self.epoch:
            return Unattached(deadline)
        if stored.leader_id == self.local.key.id:
            return Resigned(self.now.ms + self._election_ms(), [])
        if stored.leader_id != NOBODY:
            leader = self.node_of(stored.leader_id)
            if leader is not None:
                return Follower(leader, self.fetch_deadline())
            return Unattached(deadline, leader_id=stored.leader_id)
        if stored.voted_id == NOBODY:
            return Unattached(deadline)
        voted = ReplicaKey(stored.voted_id, stored.voted_directory_id)
        if voted == self.local.key and self.is_voter:
            return Candidate(deadline, self._ballot())
        return Unattached(deadline, voted)

    # --- facts --------------------------------------------------------------------------------

    @property
    def voters(self) -> VoterSet:
        return self.history.voters

    @property
    def is_voter(self) -> bool:
        return self.local.is_controller and self.voters.has(self.local.key)

    @property
    def last(self) -> OffsetAndEpoch:
        return OffsetAndEpoch(self.log.end_offset, self.log.last_epoch)

    @property
    def leadership(self) -> Leadership:
        """The epoch, and its leader if that is known here."""
        match self.state:
            case Leader():
                node = self.local.voter.node(self.local.listener)
                return Leadership(self.epoch, self.local.key.id, node)
            case Follower(leader=leader) | Prospective(leader=Node() as leader):
                return Leadership(self.epoch, leader.id, leader)
            case Unattached(leader_id=leader_id) | Prospective(leader_id=leader_id):
                return Leadership(self.epoch, leader_id)
            case _:
                return Leadership(self.epoch)

    @property
    def known_high_watermark(self) -> int:
        """The high watermark as messages carry it; -1 as long as it is unknown."""
        return -1 if self.high_watermark is None else self.high_watermark

    def node_of(self, voter_id: int) -> Node | None:
        """Return the address of a voter."""
        return messages.node_of(self.voters, voter_id, self.local.listener)

    def leader_error(self, epoch: int) -> type[errors.KafkaError] | None:
        """Return the reason to refuse a request for the leader of an epoch; -1 is any epoch."""
        if self.is_stopping:
            return errors.BrokerNotAvailable
        if 0 <= epoch < self.epoch:
            return errors.FencedLeaderEpoch
        if epoch > self.epoch:
            return errors.UnknownLeaderEpoch
        return None if isinstance(self.state, Leader) else errors.NotLeaderOrFollower

    # --- messages -----------------------------------------------------------------------------

    def reply(self, token: int, answer: Message) -> None:
        self.output.replies.append(Reply(token, answer))

    def ask(self, to: Node, message: Message) -> None:
        """Send a request, unless the same kind is on its way to the peer, or waits for a retry."""
        key = (to.id, type(message))
        if key in self._retry_at_ms or key in {
            (one.peer, type(one.message)) for one in self.open()
        }:
            return
        self._tokens += 1
        self._asked[self._tokens] = Asked(to.id, message, self.state)
        self.output.requests.append(Request(self._tokens, to, message))

    def open(self) -> Iterable[Asked]:
        """Return the requests of the present state that have no answer yet."""
        return (one for one in self._asked.values() if one.state is self.state)

    def close(self, token: int) -> Asked | None:
        """Forget a request, because it has an answer or has failed."""
        return self._asked.pop(token, None)

    def back_off(self, asked: Asked) -> None:
        """Let this kind of request to the peer wait for a while."""
        retry_at_ms = self.now.ms + self.timeouts.retry_backoff_ms
        self._retry_at_ms[asked.peer, type(asked.message)] = retry_at_ms

    def next_retry_ms(self) -> int:
        """Return the earliest time of a retry, after dropping those that have passed."""
        later = {key: at_ms for key, at_ms in self._retry_at_ms.items() if at_ms > self.now.ms}
        self._retry_at_ms = later
        return min(later.values(), default=NEVER)

    # --- the log ------------------------------------------------------------------------------

    def append(self, data: memoryview) -> None:
        """Write batches. What a controller has written counts when it is synced."""
        self.log.append(data)
        if self.local.is_controller:  # It may become a voter by a record further on.
            self.output.sync = Sync(self.log.end_offset, self.truncations)
        else:
            self.synced_offset = self.log.end_offset

    def append_control(self, records: Sequence[Message]) -> int:
        """Append control records as a batch; returns the offset of the last one."""
        offset = self.log.end_offset
        data = encode_control_batch(records, offset, self.epoch, self.now.wall_ms)
        self.append(memoryview(data))
        for at, record in enumerate(records, offset):
            self.history.append(at, record)
        return self.log.end_offset - 1

    def truncate(self, end_offset: int) -> None:
        self.log.truncate(end_offset)
        self.history.truncate(end_offset)
        self.truncations += 1
        self.synced_offset = min(self.synced_offset, end_offset)

    def raise_high_watermark(self, offset: int) -> None:
        if offset > self.known_high_watermark:
            self.high_watermark = offset
            self.output.high_watermark = offset

    # --- transitions --------------------------------------------------------------------------

    def become(self, state: State) -> None:
        """Enter a state of the present epoch; it is durable before anything is sent."""
        if isinstance(self.state, Leader):
            self.ended.append(self.state)
        self.state = state
        self.asks_leader = True
        self._retry_at_ms.clear()
        self._store()

    def _store(self) -> None:
        """Note the state for the disk. The vote is stored until the leader is known."""
        leader, voted = self.leadership.leader_id, None
        match self.state:
            case Candidate():
                voted = self.local.key
            case Resigned():
                leader = self.local.key.id
            case Unattached() | Prospective():
                voted = self.state.voted
        if voted is None or leader != UNKNOWN:
            voted = ReplicaKey(NOBODY, ZERO)
        stored = QuorumState(
            leader_id=leader,
            leader_epoch=self.epoch,
            voted_id=voted.id,
            voted_directory_id=voted.directory_id,
            static_voters=None if self.history.is_dynamic else self.voters.ids,
        )
        if stored != self._stored:
            self._stored = stored
            self.output.state = stored

    def observe(self, epoch: int, leader_id: int, node: Node | None) -> bool:
        """Follow a newer epoch, or the leader of this one; returns false for a contradiction."""
        if epoch < self.epoch or (epoch == self.epoch and leader_id == UNKNOWN):
            return True
        node = node or self.node_of(leader_id)
        if epoch > self.epoch:
            is_other = leader_id not in (UNKNOWN, self.local.key.id)
            if is_other and node is not None:
                self.become_follower(epoch, node)
            else:
                self.become_unattached(epoch, leader_id if is_other else UNKNOWN)
            return True
        is_mine = isinstance(self.state, Resigned)
        known = self.local.key.id if is_mine else self.leadership.leader_id
        if known not in (UNKNOWN, leader_id):
            return False
        is_news = known == UNKNOWN or isinstance(self.state, Unattached)
        if is_news and node is not None and leader_id != self.local.key.id:
            self.become_follower(epoch, node)
        return True

    def become_unattached(self, epoch: int, leader_id: int = UNKNOWN) -> None:
        """Enter a newer epoch, in which this replica has not voted."""
        assert epoch > self.epoch, "a vote is forgotten only with its epoch"
        self.epoch = epoch
        self.become(Unattached(self._election_deadline(), None, leader_id))

    def vote_for(self, candidate: ReplicaKey) -> None:
        self.become(Unattached(self._election_deadline(), candidate))

    def become_follower(self, epoch: int, leader: Node) -> None:
        self.epoch = epoch
        self.become(Follower(leader, self.fetch_deadline()))

    def become_prospective(self) -> None:
        """Start an election, without a new epoch until a majority would vote for it."""
        state = self.state
        voted = state.voted if isinstance(state, Prospective | Unattached) else None
        if isinstance(state, Candidate):
            voted = self.local.key
        leadership = self.leadership
        deadline = self._election_deadline()
        self.become(
            Prospective(deadline, self._ballot(), leadership.node, voted, leadership.leader_id)
        )

    def end_pre_vote(self, state: Prospective) -> None:
        """Return to the leader of the epoch, if there is one, or wait for the next election."""
        if state.leader is not None:
            self.become(Follower(state.leader, self.fetch_deadline()))
        else:
            self.become(Unattached(self._election_deadline(), state.voted, state.leader_id))

    def become_candidate(self) -> None:
        self.epoch += 1
        self.become(Candidate(self._election_deadline(), self._ballot()))

    def become_leader(self) -> Leader:
        leader = Leader(self.log.end_offset, self.check_quorum_deadline())
        self.become(leader)
        return leader

    def become_resigned(self, leader: Leader) -> None:
        others = [one for one in self.voters.voters if one.key.id != self.local.key.id]
        others.sort(key=lambda one: leader.progress_of(one).end_offset, reverse=True)
        deadline = self.now.ms + self._election_ms()
        self.become(Resigned(deadline, [one.key for one in others]))

    def _ballot(self) -> Ballot:
        return Ballot(self.voters, granted={self.local.key.id})

    # --- times --------------------------------------------------------------------------------

    def _election_ms(self) -> int:
        """Return a random time, so that two voters seldom start elections at the same moment."""
        return self.timeouts.election_ms + self.chance.randrange(self.timeouts.election_ms)

    def _election_deadline(self) -> int:
        return self.now.ms + self._election_ms() if self.is_voter else NEVER

    def fetch_deadline(self) -> int:
        return self.now.ms + self.timeouts.fetch_ms if self.is_voter else NEVER

    def check_quorum_deadline(self) -> int:
        return self.now.ms + self.timeouts.fetch_ms * 3 // 2
