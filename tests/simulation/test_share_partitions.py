"""Share partitions under faults: members take, accept, give back and die with locks held.

Every change goes to a persister (the share coordinator, with its log) that is slow, overtakes
itself, loses writes, or writes and is not heard. The leader crashes or moves, and the next one
begins from what was written; the coordinator is loaded again from its log. Failing seeds repeat.
"""

import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from headrace.errors import FencedLeaderEpoch, InvalidRecordState, InvalidRequest
from headrace.protocol.acknowledge_types import AcknowledgeType
from headrace.shares.partition import Acknowledgement, Acquired, SharePartition
from headrace.shares.runs import Change
from headrace.shares.selection import Pick, ShareLimits, Span
from tests.builders.seeds import seeds
from tests.builders.share_coordinators import States

STEPS = 500
STATE_EPOCH = 1
GAP, ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType

Answer = Callable[[bool], None]
"""Called with the outcome of a write, as its leader sees it."""


class Post(NamedTuple):
    """Something that happens later: a write arrives, or its answer does."""

    at_ms: int
    number: int
    happen: Callable[[], None]


class Lock(NamedTuple):
    """The member that has a record, and the end of its lock."""

    member: str
    until_ms: int


class Leader:
    """A leader as the broker is one: what is decided counts when it is written."""

    def __init__(self, world: "World", epoch: int) -> None:
        self.world = world
        self.epoch = epoch
        self.core: SharePartition = world.load(epoch)
        self.is_alive = True  # One that has only been replaced still answers those who wait.
        self.is_in_office = True

    def commit(self, change: Change, answer: Answer) -> None:
        """Write a member's change: if it cannot be written, it has no effect."""

        def answered(is_written: bool) -> None:
            if is_written:
                self.core.apply(change)
            else:
                self.core.roll_back(change)
            answer(is_written)

        self.world.write(self, change, answered)

    def commit_anyway(self, change: Change) -> None:
        """Write a change of the leader, which is effective even if it is not written."""
        self.world.write(self, change, lambda _: self._apply(change))

    def _apply(self, change: Change) -> None:
        self.core.apply(change)

    def look_after_locks(self) -> None:
        change = self.core.expire(self.world.now_ms, self.world.limits)
        if change is not None:
            self.commit_anyway(change)

    def bury_dead_letters(self) -> None:
        for first, last, _ in self.core.archiving():
            change = self.core.archive(first, last)
            if change is not None:
                self.commit(change, lambda _: None)


class World:
    """A log, its leader, the persister, the members, and what must always hold."""

    def __init__(self, seed: int) -> None:
        self.chance = chance = random.Random(seed)
        self.trouble = chance.choice((0.0, 0.1, 0.4))
        self.slowest_ms = chance.choice((1, 300, 3_000))
        self.limits = ShareLimits(
            delivery_count_limit=chance.choice((2, 3, 5)),
            record_locks_max=chance.choice((10, 40)),
            lock_duration_ms=1_000,
            has_dead_letters=chance.random() < 0.5,
        )
        self.now_ms = 0
        self.spans: list[Span] = []
        self.log_start = self.log_end = 0
        self.states = States(
            share_coordinator_snapshot_update_records_per_snapshot=chance.choice((0, 3, 500))
        )
        self.states.initialize(epoch=STATE_EPOCH, start=0)
        self.posts: list[Post] = []
        self.posted = self.born = 0
        self.members: dict[str, set[int]] = {}  # The offsets that each member believes to have.
        self.locks: dict[int, Lock] = {}
        self.in_doubt: set[int] = set()  # Acknowledged, and not answered yet.
        self.counts: dict[int, int] = {}  # Deliveries of this leader.
        self.most: dict[int, int] = {}  # Deliveries of any leader, as reported.
        self.accepted: set[int] = set()
        self.given_up: set[int] = set()
        self.excused: set[int] = set()  # Offsets settled without an answer to a member.
        self.leader = Leader(self, 1)

    # --- the persister --------------------------------------------------------------------------

    def load(self, epoch: int) -> SharePartition:
        state = self.states.read(epoch)
        core = SharePartition.load(state, state.start_offset)
        core.drop_before(self.log_start)
        return core

    def write(self, leader: Leader, change: Change, answer: Answer) -> None:
        """Send a change: it may be lost, come late or after its leader gave up on it."""
        chance = self.chance
        is_lost = chance.random() < self.trouble
        is_unheard = chance.random() < self.trouble
        arrives_ms = self.now_ms + chance.randint(0, self.slowest_ms)
        start, batches = change.start_offset, tuple(change.batches)
        done = change.delivery_complete_count
        assert 0 <= done <= leader.core.next_offset - start

        def hear(is_written: bool) -> None:
            if leader.is_alive:
                answer(is_written)

        def arrive() -> None:
            is_written = True
            try:
                self.states.write(
                    *batches, start=start, state_epoch=STATE_EPOCH, leader_epoch=leader.epoch
                )
            except FencedLeaderEpoch:
                assert not leader.is_in_office
                is_written = False
            if not is_unheard:
                self._post(chance.randint(0, self.slowest_ms), lambda: hear(is_written))

        if not is_lost:
            self._post(arrives_ms - self.now_ms, arrive)
        if is_lost or is_unheard:
            self._post(chance.randint(0, self.slowest_ms), lambda: hear(False))

    def _post(self, delay_ms: int, happen: Callable[[], None]) -> None:
        self.posted += 1
        self.posts.append(Post(self.now_ms + delay_ms, self.posted, happen))

    def pass_time(self, delay_ms: int) -> None:
        until_ms = self.now_ms + delay_ms
        while self.posts and (first := min(self.posts)).at_ms <= until_ms:
            self.posts.remove(first)
            self.now_ms = max(self.now_ms, first.at_ms)
            first.happen()
        self.now_ms = until_ms
        self.leader.look_after_locks()

    # --- what happens ---------------------------------------------------------------------------

    def step(self) -> None:
        chance = self.chance
        happening = chance.random()
        if happening < 0.06 or not self.members:
            self.born += 1
            self.members[f"member-{self.born}"] = set()
        elif happening < 0.09:
            self._lose_member(chance.choice(sorted(self.members)))
        elif happening < 0.12:
            self._replace_leader(has_crashed=chance.random() < 0.5)
        elif happening < 0.14:
            self.states.shard = self.states.reloaded()
        elif happening < 0.15:
            self._trim()
        elif happening < 0.3 and self.log_end < 300:
            self._produce()
        elif happening < 0.4:
            self.leader.bury_dead_letters()
        elif happening < 0.65:
            self.fetch(chance.choice(sorted(self.members)))
        else:
            self._acknowledge(chance.choice(sorted(self.members)))
        self.pass_time(chance.choice((0, 10, 200)))

    def _produce(self) -> None:
        """A batch; some hold nothing for the group, and before some the log was compacted."""
        gap = self.chance.choice((0, 0, 0, 2))
        first = self.log_end + gap
        last = first + self.chance.randint(0, 7)
        is_skipped = self.chance.random() < 0.15
        self.excused.update(range(self.log_end, last + 1 if is_skipped else first))
        self.spans.append(Span(first, last, is_skipped))
        self.log_end = last + 1

    def _trim(self) -> None:
        """Retention deletes old records, even acquired ones."""
        self.log_start = min(self.log_end, self.log_start + self.chance.randint(0, 10))
        self.excused.update(range(self.log_start))
        self.leader.core.drop_before(self.log_start)

    def _lose_member(self, member: str) -> None:
        """Its connection breaks, or it hangs and only its locks tell."""
        del self.members[member]
        if self.chance.random() < 0.5:
            return
        change = self.leader.core.release(member, self.limits)
        if change is not None:
            self.leader.commit_anyway(change)
        gone = [offset for offset, lock in self.locks.items() if lock.member == member]
        for offset in gone:
            del self.locks[offset]

    def _replace_leader(self, *, has_crashed: bool) -> None:
        self.leader.is_in_office = False
        self.leader.is_alive = not has_crashed
        self.leader = Leader(self, self.leader.epoch + 1)
        self.excused |= self.in_doubt  # Its members will never know.
        self.in_doubt = set()
        self.locks = {}
        self.counts = {}

    # --- members --------------------------------------------------------------------------------

    def fetch(self, member: str) -> None:
        core, chance = self.leader.core, self.chance
        if not core.can_acquire(self.limits):
            return
        offset = core.fetch_offset()
        pick = Pick(member, chance.randint(1, 20), chance.randint(1, 20), chance.random() < 0.5)
        spans = [one for one in self.spans if one.last >= offset][: chance.randint(1, 4)]
        acquired = core.acquire(pick, offset, spans, self.limits, self.now_ms)
        for given in acquired:
            for one in range(given.first, given.last + 1):
                self._check_delivery(one, given, member)
                self.members[member].add(one)

    def _check_delivery(self, offset: int, given: Acquired, member: str) -> None:
        lock = self.locks.get(offset)
        assert lock is None or lock.until_ms <= self.now_ms, f"{offset} has two holders"
        assert offset not in self.in_doubt, f"{offset} was given while its fate was written"
        assert offset not in self.accepted, f"{offset} was accepted and came again"
        assert offset not in self.given_up, f"{offset} was given up and came again"
        count = given.delivery_count
        assert 1 <= count <= self.limits.delivery_count_limit, f"{offset} came too often"
        assert count <= self.most.get(offset, 0) + 1, f"{offset} was counted twice"
        if offset in self.counts:
            assert count == self.counts[offset] + 1, f"{offset} was not counted"
        self.counts[offset] = count
        self.most[offset] = max(count, self.most.get(offset, 0))
        self.locks[offset] = Lock(member, self.now_ms + self.limits.lock_duration_ms)
        if count == self.limits.delivery_count_limit:
            self.excused.add(offset)

    def _acknowledge(self, member: str) -> None:
        kinds = self.chance.choices((ACCEPT, RELEASE, REJECT, RENEW), (6, 3, 1, 1), k=3)
        for row in _rows(self.members[member]):
            if self.chance.random() < 0.7:
                self.say(member, row, [self.chance.choice(kinds) for _ in row])

    def say(self, member: str, row: list[int], kinds: list[AcknowledgeType]) -> None:
        """One acknowledgement; the member may have lost its records and not know it."""
        leader = self.leader
        said = [Acknowledgement(row[0], row[-1], kinds)]
        start = leader.core.start_offset
        try:
            change = leader.core.acknowledge(member, said, self.limits, self.now_ms)
        except (InvalidRecordState, InvalidRequest):
            self.members[member].difference_update(row)
            return
        fates = {one: kind for one, kind in zip(row, kinds, strict=True) if one >= start}
        for one, kind in fates.items():
            assert self.locks[one].member == member, f"{one} was not {member}'s to acknowledge"
            assert one not in self.in_doubt, f"{one} was acknowledged twice"
            if kind is RENEW:
                self.locks[one] = Lock(member, self.now_ms + self.limits.lock_duration_ms)
        final = {one: kind for one, kind in fates.items() if kind is not RENEW}
        self.members[member].difference_update(final, range(start))
        if change is None:
            assert not final
            return
        self.in_doubt.update(final)
        leader.commit(change, lambda is_written: self._hear(leader, final, is_written))

    def _hear(self, leader: Leader, fates: dict[int, AcknowledgeType], is_written: bool) -> None:
        """Answer a member, even if its leader is not in office any more."""
        if leader.is_in_office:
            self.in_doubt.difference_update(fates)
        if not is_written:
            self.excused.update(one for one, kind in fates.items() if kind is not RELEASE)
            return
        self.accepted.update(one for one, kind in fates.items() if kind is ACCEPT)
        self.given_up.update(one for one, kind in fates.items() if kind is REJECT)
        if leader.is_in_office:
            for one in fates:
                self.locks.pop(one, None)

    # --- the end --------------------------------------------------------------------------------

    def calm_down(self) -> None:
        """No more trouble: members accept whatever comes until nothing comes any more."""
        self.trouble, self.slowest_ms = 0.0, 1
        self.members.setdefault("last", set())
        self.pass_time(20_000)
        for _ in range(3_000):
            if self.leader.core.start_offset == self.log_end and not self.posts:
                return
            self.fetch("last")
            for row in _rows(self.members["last"]):
                self.say("last", row, [ACCEPT for _ in row])
            self.leader.bury_dead_letters()
            self.pass_time(20)
        raise AssertionError(f"left: {self.leader.core.runs.items} of {self.log_end}")

    def check_fates(self) -> None:
        """Everything is done with, and for a reason."""
        settled = self.accepted | self.given_up | self.excused
        assert set(range(self.log_end)) <= settled


def _rows(offsets: set[int]) -> Iterator[list[int]]:
    """The offsets as rows without a gap."""
    row: list[int] = []
    for offset in sorted(offsets):
        if row and offset != row[-1] + 1:
            yield row
            row = []
        row.append(offset)
    if row:
        yield row


@pytest.mark.parametrize("seed", seeds(12))
def test_records_have_one_holder_and_accepted_ones_never_return(seed: int) -> None:
    """DEL-2: not after a crash either, and each ends accepted or archived."""
    world = World(seed)
    for _ in range(STEPS):
        world.step()
    world.calm_down()
    world.check_fates()
    world._replace_leader(has_crashed=True)
    world.calm_down()
    world.check_fates()
