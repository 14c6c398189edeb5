"""The leader's knowledge of its followers, and the commits that follow from it.

A record is committed when a majority of the voters has it, and a record of the leader's own epoch
is among the committed ones (Raft, section 5.4.2). The leader counts itself by the records that it
has synced.
"""

from typing import NamedTuple

import msgspec

from headrace.protocol.message import Message
from headrace.raft.log import OffsetAndEpoch, RaftLog
from headrace.raft.replicas import ReplicaKey, Voter, VoterSet

NEVER_MS = -1
OBSERVER_LIFETIME_MS = 5 * 60 * 1000
CAUGHT_UP_MS = 60 * 60 * 1000
"""The time in which a replica must have caught up before it becomes a voter."""


class Progress(msgspec.Struct):
    """The log of another replica, as its fetches show it; times are of the wall clock."""

    end_offset: int = -1
    fetched_ms: int = NEVER_MS
    caught_up_ms: int = NEVER_MS
    leader_end_at_fetch: int = -1

    def acknowledge(self, offset: int, leader_end: int, wall_ms: int) -> None:
        """Record a fetch: the replica has synced all records before the offset."""
        if offset >= leader_end:
            self.caught_up_ms = wall_ms
        elif self.fetched_ms != NEVER_MS and offset >= self.leader_end_at_fetch:
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        self.end_offset = offset
        self.leader_end_at_fetch = leader_end
        self.fetched_ms = wall_ms


class ParkedFetch(NamedTuple):
    """A fetch that waits for records or for a new high watermark."""

    token: int
    offset: int
    last_epoch: int
    size_max: int
    deadline_ms: int
    high_watermark: int
    """The high watermark that the follower has."""


class VoterChange(msgspec.Struct):
    """A change of the voters under way; one at a time."""

    token: int
    request: Message
    voters: VoterSet
    """The voters after the change."""
    deadline_ms: int
    replies_at_commit: bool = True
    joining: Voter | None = None
    offset: int | None = None
    """The offset of the record; None while the new voter is asked for its versions."""


class Leader(msgspec.Struct):
    epoch_start: int
    deadline_ms: int
    """The end of the time in which a majority of the voters must fetch."""
    progress: dict[ReplicaKey, Progress] = {}
    heard: set[int] = set()
    """The voters that have fetched since the deadline was set."""
    last_fetch_ms: dict[int, int] = {}
    parked: dict[int, ParkedFetch] = {}
    change: VoterChange | None = None
    learned: dict[int, Voter] = {}
    """Directories and versions of static voters, which the upgrade of kraft.version needs."""

    def progress_of(self, voter: Voter) -> Progress:
        """Return the progress of a voter; of the newest directory if its own is unknown."""
        found = [one for key, one in self.progress.items() if voter.matches(key)]
        return max(found, key=lambda one: one.fetched_ms, default=Progress())

    def high_watermark(self, voters: VoterSet, local: ReplicaKey, synced: int) -> int:
        """Return the offset before which a majority of the voters has all records."""
        offsets = [
            synced if voter.matches(local) else self.progress_of(voter).end_offset
            for voter in voters.voters
        ]
        offsets.sort(reverse=True)
        return offsets[len(offsets) // 2]

    def is_supported(self, voters: VoterSet, local: ReplicaKey) -> bool:
        """Return whether enough voters have fetched for a majority with this leader."""
        others = len(self.heard & set(voters.ids))
        return others + voters.has(local) >= voters.majority

    def forget_observers(self, voters: VoterSet, wall_ms: int) -> None:
        """Forget observers that have not fetched for five minutes."""
        self.progress = {
            key: one
            for key, one in self.progress.items()
            if voters.has(key) or wall_ms - one.fetched_ms < OBSERVER_LIFETIME_MS
        }


class Diverging(NamedTuple):
    """The follower has records that the leader lacks: it must truncate to this end, or below."""

    epoch: int
    end_offset: int


def position_of(log: RaftLog, offset: int, last_epoch: int) -> OffsetAndEpoch | Diverging | None:
    """Compare a follower's log with the leader's.

    Return None if the follower's log is a prefix, a snapshot if the leader's log begins too late
    for it, and the point of divergence otherwise.
    """
    newest, oldest = log.newest_snapshot, log.oldest_snapshot
    if offset == 0 and newest is not None:
        return newest
    if offset == log.start_offset == 0:
        return None
    if newest is not None and oldest is not None and oldest.end_offset == log.start_offset:
        is_before = offset < log.start_offset or last_epoch < oldest.epoch
        if is_before or (offset == log.start_offset and last_epoch != oldest.epoch):
            return newest
    end = log.end_of_epoch(last_epoch)
    if end.epoch != last_epoch or end.end_offset < offset:
        return Diverging(end.epoch, end.end_offset)
    return None
