"""In-sync replicas of one partition, as its leader tracks them, and the offset they commit.

A record is committed when every in-sync replica has it. Between a proposal to the controller and
its answer two ISRs are possible, and the controller may have accepted either one. The *maximal*
ISR holds the members of both: the high watermark waits for all of them, so no record is committed
that a replica of the real ISR lacks.

The rules are plain functions of offsets and times. They know no log, clock or request.
"""

from collections.abc import Container, Iterable

import msgspec

UNKNOWN_OFFSET = -1
UNKNOWN_EPOCH = -1
"""Broker epoch of a follower that has not sent one; it is not checked."""
NEVER = -1
"""The time of an event that has not happened in this leadership."""


class Follower(msgspec.Struct):
    """Progress of one follower since this leadership began."""

    end_offset: int = UNKNOWN_OFFSET
    start_offset: int = UNKNOWN_OFFSET
    broker_epoch: int = UNKNOWN_EPOCH
    caught_up_ms: int = NEVER
    fetched_ms: int = NEVER
    leader_end_at_fetch: int = UNKNOWN_OFFSET

    def acknowledge(self, offset: int, leader_end: int, now_ms: int) -> None:
        """Record a fetch at `offset`: the follower has every record before it.

        A follower is caught up as of a moment if it has everything the leader had then. Under
        load it never reaches the present end, so a fetch also proves that the follower had
        caught up at its previous fetch.
        """
        if offset >= leader_end:
            self.caught_up_ms = now_ms
        elif self.fetched_ms != NEVER and offset >= self.leader_end_at_fetch:
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        self.end_offset = offset
        self.fetched_ms = now_ms
        self.leader_end_at_fetch = leader_end

    def was_caught_up(self, at_ms: int) -> None:
        """Record a fetch that did not name the partition, because there was nothing to fetch."""
        if at_ms > self.fetched_ms:
            self.fetched_ms = self.caught_up_ms = at_ms

    def is_caught_up(self, leader_end: int, now_ms: int, lag_max_ms: int) -> bool:
        if self.end_offset == leader_end:
            return True
        return self.caught_up_ms != NEVER and now_ms - self.caught_up_ms <= lag_max_ms


class InSyncReplicas:
    """Followers and ISR of a partition that this node leads; `node_id` is always a member."""

    __slots__ = (
        "committed",
        "epoch_start",
        "followers",
        "joining",
        "node_id",
        "partition_epoch",
        "proposed",
    )

    def __init__(
        self,
        node_id: int,
        replicas: Iterable[int],
        isr: Iterable[int],
        *,
        partition_epoch: int = 0,
        epoch_start: int = 0,
        now_ms: int = 0,
    ) -> None:
        self.node_id = node_id
        self.committed = frozenset(isr)
        self.proposed: frozenset[int] | None = None
        self.partition_epoch = partition_epoch
        self.epoch_start = epoch_start
        """End of the log when this leadership began."""
        self.followers = {
            one: Follower(caught_up_ms=now_ms if one in self.committed else NEVER)
            for one in replicas
            if one != node_id
        }
        self.joining: frozenset[int] = frozenset()
        """Followers outside the ISR that are caught up and may join it."""

    @property
    def maximal(self) -> frozenset[int]:
        """Every replica that may be in the ISR, as seen by the leader."""
        return self.committed if self.proposed is None else self.committed | self.proposed

    @property
    def replica_count(self) -> int:
        return len(self.followers) + 1

    @property
    def outside(self) -> list[int]:
        """The followers that are certainly not in the ISR."""
        maximal = self.maximal
        return [replica for replica in self.followers if replica not in maximal]

    def effective_min(self, min_isr: int) -> int:
        """Return the size of the ISR that acks=all needs: at most the number of replicas."""
        return min(min_isr, len(self.followers) + 1)

    # Progress of followers.

    def acknowledge(self, follower: int, offset: int, leader_end: int, now_ms: int) -> None:
        """Record that a follower has every record before an offset."""
        self.followers[follower].acknowledge(offset, leader_end, now_ms)

    def high_watermark(self, leader_end: int, min_isr: int) -> int:
        """Return the offset below which records are committed, or `UNKNOWN_OFFSET`.

        Below the effective min ISR nothing is committed, whatever the producers' acks. Followers
        that are joining count as well. Otherwise the high watermark could run ahead of a
        replica that could then never join.
        """
        if len(self.committed) < min(min_isr, len(self.followers) + 1):
            return UNKNOWN_OFFSET
        waited_for = self.committed if self.proposed is None else self.committed | self.proposed
        offset = leader_end
        for replica, follower in self.followers.items():
            if follower.end_offset < offset and (replica in waited_for or replica in self.joining):
                offset = follower.end_offset
        return offset

    def low_watermark(self, leader_start: int, live: Container[int]) -> int:
        """Return the offset before which no live replica has records any more."""
        starts = [one.start_offset for replica, one in self.followers.items() if replica in live]
        return min(leader_start, *starts) if starts else leader_start

    # Changes of the ISR.

    def find_joining(
        self, leader_end: int, now_ms: int, lag_max_ms: int, eligible: Container[int]
    ) -> None:
        """Find the eligible followers outside the ISR that are caught up."""
        self.joining = frozenset(
            replica
            for replica in self.outside
            if replica in eligible
            and self.followers[replica].is_caught_up(leader_end, now_ms, lag_max_ms)
        )

    def may_join(self, follower: int, high_watermark: int) -> bool:
        """Return whether a follower has all committed records and this leadership's start.

        A log that ends before the leadership began may still hold records of another leader.
        """
        if follower in self.maximal or self.proposed is not None:
            return False
        offset = self.followers[follower].end_offset
        return offset >= high_watermark and offset >= self.epoch_start

    def lagging(self, leader_end: int, now_ms: int, lag_max_ms: int) -> frozenset[int]:
        """Return the members of the ISR that have not been caught up for too long."""
        return frozenset(
            replica
            for replica, follower in self.followers.items()
            if replica in self.committed
            and not follower.is_caught_up(leader_end, now_ms, lag_max_ms)
        )

    def propose(self, isr: Iterable[int]) -> frozenset[int]:
        """Begin a change of the ISR; one at a time, for the controller compares epochs."""
        assert self.proposed is None, "one proposal is answered before the next is made"
        self.proposed = frozenset(isr) | {self.node_id}
        self.joining -= self.proposed
        return self.proposed

    def withdraw(self) -> None:
        """Forget a proposal that the controller has certainly not accepted."""
        self.proposed = None

    def commit(self, isr: Iterable[int], partition_epoch: int) -> bool:
        """Take an ISR from the controller or the metadata log; false if it is an older one."""
        if partition_epoch < self.partition_epoch:
            return False
        if partition_epoch > self.partition_epoch:
            self.proposed = None
        self.committed = frozenset(isr)
        self.joining -= self.committed
        self.partition_epoch = partition_epoch
        return True

    def accept(self, isr: Iterable[int], partition_epoch: int) -> bool:
        """Take the controller's answer to the proposal.

        The partition epoch is the old one if the controller had this ISR already.
        """
        if not self.commit(isr, partition_epoch):
            return False
        self.proposed = None
        return True

    def assign(self, replicas: Iterable[int]) -> None:
        """Follow a reassignment: new replicas begin unknown, removed ones are forgotten."""
        wanted = [one for one in replicas if one != self.node_id]
        self.followers = {one: self.followers.get(one) or Follower() for one in wanted}
        self.joining &= self.followers.keys()
