"""The states of a replica in a quorum, except `leading.Leader`.

    Unattached    has no leader; a voter starts an election when its time is up
    Follower      fetches from the leader of its epoch
    Prospective   asks the voters whether they would vote for it (pre-vote, KIP-996)
    Candidate     has begun an epoch, voted for itself, and asks for votes
    Resigned      led this epoch, and gives the other voters time to elect a successor

A deadline of `NEVER` means that no time limits the state: an observer starts no elections.
"""

import sys
from typing import Final

import msgspec

from headrace.raft.log import OffsetAndEpoch
from headrace.raft.replicas import Node, ReplicaKey, VoterSet

NEVER: Final = sys.maxsize
UNKNOWN: Final = -1
"""The id of an unknown leader."""


class Ballot(msgspec.Struct):
    """Answers of the voters to one request for votes."""

    voters: VoterSet
    granted: set[int] = set()
    rejected: set[int] = set()

    @property
    def is_won(self) -> bool:
        return len(self.granted) >= self.voters.majority

    @property
    def is_lost(self) -> bool:
        return len(self.voters.voters) - len(self.rejected) < self.voters.majority

    @property
    def open(self) -> list[ReplicaKey]:
        """The voters without an answer."""
        answered = self.granted | self.rejected
        return [one.key for one in self.voters.voters if one.key.id not in answered]


class Unattached(msgspec.Struct):
    deadline_ms: int
    voted: ReplicaKey | None = None
    leader_id: int = UNKNOWN
    """The leader of the epoch, if its id is known but no address."""


class Download(msgspec.Struct):
    """A snapshot of the leader that is being received."""

    snapshot: OffsetAndEpoch
    position: int = 0


class Follower(msgspec.Struct):
    leader: Node
    deadline_ms: int
    voted: ReplicaKey | None = None
    has_fetched: bool = False
    """Whether this leader has answered a fetch; until then a pre-vote may still be granted."""
    download: Download | None = None
    update_at_ms: int = 0
    """The earliest time of the next request that keeps this voter's record current."""
    is_recorded: bool = False
    """Whether this leader has this voter's record; for kraft.version 0, where it is no log."""


class Prospective(msgspec.Struct):
    deadline_ms: int
    ballot: Ballot
    leader: Node | None = None
    """The leader of the epoch, to whom a lost pre-vote returns."""
    voted: ReplicaKey | None = None
    leader_id: int = UNKNOWN


class Candidate(msgspec.Struct):
    deadline_ms: int
    ballot: Ballot


class Resigned(msgspec.Struct):
    deadline_ms: int
    successors: list[ReplicaKey]
    acknowledged: set[int] = set()
