"""Quorums in a storm: replicas crash, the network fails, voters change, and no commit is lost.

Each seed ends with a calm: then there must be a leader, and all replicas must have its log.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from headrace.protocol.message import Message
from headrace.protocol.schemas.records.control import LeaderChangeMessage
from headrace.protocol.schemas.vote import VoteRequest
from headrace.raft.effects import Now, Output
from headrace.raft.leading import Leader
from headrace.raft.quorum import Quorum
from headrace.raft.quorum_state import QuorumState
from headrace.raft.replica import QuorumFailure
from headrace.raft.replicas import ReplicaKey, VoterHistory
from headrace.raft.states import Unattached
from tests.builders.quorums import Replica, World
from tests.builders.seeds import seeds

CALM_MS = 20_000


def simulate(seed: int, make: Any = Quorum, replica: type[Replica] = Replica) -> World:
    """Run one simulation: three to five replicas, of which some may join and leave the voters."""
    kind = seed % 4
    world = World(
        seed,
        voter_count=5 if kind == 1 else 3,
        observer_count=2 if kind >= 2 else 0,
        kraft_version=0 if kind == 3 else 1,
        make=make,
        replica=replica,
    )
    world.run(2_000, until=world.is_whole)
    world.storm(150, changes_voters=kind == 2)
    world.heal()
    world.append()
    assert world.run(CALM_MS, until=world.is_whole), "the quorum does not recover"
    world.append()
    assert world.run(CALM_MS, until=world.is_whole), "the quorum does not commit"
    return world


@pytest.mark.parametrize("seed", seeds(200))
def test_a_quorum_keeps_what_it_has_committed(seed: int) -> None:
    world = simulate(seed)
    assert world.checker.end_offset > 0


# --- planted bugs ------------------------------------------------------------------------------


class ForgetsVotes(Quorum):
    """After a restart a replica has no record of its vote."""

    def _first_state(self, stored: QuorumState) -> Any:
        return super()._first_state(msgspec.structs.replace(stored, voted_id=-1))


class VotesTwice(Quorum):
    """A replica votes for every candidate of an epoch that is up to date."""

    def vote_for(self, candidate: ReplicaKey) -> None:
        super().vote_for(candidate)
        assert isinstance(self.state, Unattached)
        self.state.voted = None


class AcknowledgesBeforeSync(Quorum):
    """A follower fetches on before the records that it got are synced."""

    def append(self, data: memoryview) -> None:
        super().append(data)
        if not self.is_leader:
            self.synced_offset = self.log.end_offset


class CountsItselfBeforeSync(Quorum):
    """A leader counts its own records before they are synced."""

    def append(self, data: memoryview) -> None:
        super().append(data)
        if self.is_leader:
            self.synced_offset = self.log.end_offset


class CommitsOlderEpochs(Quorum):
    """A leader commits records of an older epoch by their number of copies alone."""

    def become_leader(self) -> Leader:
        leader = super().become_leader()
        leader.epoch_start = -1
        return leader

    def append_control(self, records: Sequence[Message]) -> int:
        """Leave out the record of the epoch, which hides the fault mostly."""
        kept = [one for one in records if not isinstance(one, LeaderChangeMessage)]
        return super().append_control(kept) if kept else self.log.end_offset - 1


class NeverTruncates(Quorum):
    """A follower keeps records that the leader lacks."""

    def truncate(self, end_offset: int) -> None:
        pass


class TruncatesToHighWatermark(Quorum):
    """A follower that diverges drops all records that it does not know to be committed."""

    def truncate(self, end_offset: int) -> None:
        super().truncate(min(end_offset, self.high_watermark or 0))


class KeepsOldVoters(Quorum):
    """A truncated log leaves the voters of the removed records in force."""

    def truncate(self, end_offset: int) -> None:
        history = self.history
        self.history = VoterHistory(history.voters, history.kraft_version)
        super().truncate(end_offset)
        self.history = history


class VotesForAnyLog(Quorum):
    """A replica votes for candidates that lack committed records."""

    def receive(self, token: int, request: Message, now: Now) -> None:
        if isinstance(request, VoteRequest):
            asked = request.topics[0].partitions[0]
            asked.last_offset, asked.last_offset_epoch = 1 << 40, asked.replica_epoch - 1
        super().receive(token, request, now)


class SnapshotsTheUncommitted(Replica):
    """A replica takes snapshots of its whole log."""

    def snapshot_limit(self) -> int:
        return self.quorum.log.end_offset


class StoresVotesLate(Replica):
    """A vote is sent before it is on disk."""

    def _carry_out(self, output: Output) -> None:
        state, output.state = output.state, None
        super()._carry_out(output)
        if state is not None:
            self.later(30, lambda: setattr(self.disk, "state", state))
            self.world.stored(self, state)


BUGS = {
    AcknowledgesBeforeSync: 0,
    CommitsOlderEpochs: 140,
    CountsItselfBeforeSync: 0,
    ForgetsVotes: 110,
    KeepsOldVoters: 100,
    NeverTruncates: 0,
    SnapshotsTheUncommitted: 0,
    StoresVotesLate: 60,
    TruncatesToHighWatermark: 0,
    VotesForAnyLog: 0,
    VotesTwice: 0,
}
"""Each bug with the seed at which its search begins, so that the tests stay short."""

SEEDS_OF_A_BUG = 200


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_a_planted_bug_is_found(bug: Any) -> None:
    """A simulation that finds none of them would prove nothing."""
    kinds = {"replica": bug} if issubclass(bug, Replica) else {"make": bug}
    for seed in range(BUGS[bug], BUGS[bug] + SEEDS_OF_A_BUG):
        try:
            simulate(seed, **kinds)
        except (AssertionError, QuorumFailure):
            return
    pytest.fail(f"{SEEDS_OF_A_BUG} seeds do not find it")
