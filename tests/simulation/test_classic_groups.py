"""Classic groups under faults: members come, go, die and dawdle, messages are late or twice.

A simulated member does what Kafka's clients do: it joins, syncs, sends heartbeats, commits what it
has read, and joins again when the coordinator rejects it as unknown. The coordinator crashes now
and then, and restarts from its log. A failing seed repeats exactly.
"""

import random
from collections import Counter

import pytest

from headrace.errors import (
    FencedInstanceId,
    IllegalGeneration,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from headrace.groups.classic.group import ClassicGroup, State
from headrace.protocol.schemas.join_group import JoinGroupResponse
from tests.builders.classic_groups import GROUP, ShardInMemory, Ticket
from tests.builders.seeds import seeds

PARTITIONS = 12
STEPS = 400
TIMEOUTS_MS = ((10_000, 30_000), (60_000, 8000))  # Timeouts of the session and of a rebalance.
LOST = {UnknownMemberId.code, FencedInstanceId.code}


class Consumer:
    """One client, as it sees itself."""

    def __init__(self, world: "World", name: str, *, is_static: bool) -> None:
        self.world = world
        self.instance_id = name if is_static else None
        self.member_id = ""
        self.generation = -1
        self.owned: set[int] = set()
        self.waiting: Ticket | None = None
        self.is_syncing = False
        self.patience_ms = 0
        self.naps_until_ms = 0

    def act(self) -> None:
        chance, now_ms = self.world.chance, self.world.shard.now_ms
        if now_ms < self.naps_until_ms:
            return
        if self.naps_until_ms and self.owned and self.generation >= 0:
            # It was busy with its records; the generation it commits in may be long gone.
            self.world.commit(self, chance.choice(sorted(self.owned)))
        self.naps_until_ms = 0
        if chance.random() < self.world.loss / 2:
            self.naps_until_ms = now_ms + chance.randrange(2000, 40_000)
        elif self.waiting is not None:
            self._look_for_answer()
        elif self.generation < 0:
            self._join()
        else:
            self._beat_and_commit()

    def _join(self) -> None:
        chance = self.world.chance
        self.owned = set()
        self.waiting = self.world.shard.join(
            self.member_id,
            instance_id=self.instance_id,
            session_ms=self.world.session_ms,
            rebalance_ms=self.world.rebalance_ms,
            version=chance.choice((3, 5, 9)),
        )
        self.is_syncing = False
        self.patience_ms = self.world.shard.now_ms + 2 * self.world.rebalance_ms

    def _look_for_answer(self) -> None:
        assert self.waiting is not None
        if not self.waiting.is_answered:
            if self.world.shard.now_ms > self.patience_ms:
                self.waiting = None  # The request has timed out; its answer goes nowhere.
                self.generation = -1
            return
        answer, self.waiting = self.waiting.answer, None
        if self.world.chance.random() < self.world.loss:
            self.generation = -1
            return
        if answer.error_code:
            self._on_error(answer.error_code, getattr(answer, "member_id", ""))
        elif self.is_syncing:
            self.owned = set(answer.assignment)
            self.world.check_ownership(self)
        else:
            self._sync(answer)

    def _on_error(self, code: int, member_id: str) -> None:
        self.generation = -1
        self.owned = set()
        if code == MemberIdRequired.code:
            self.member_id = member_id
        elif code in LOST:
            self.member_id = ""

    def _sync(self, joined: JoinGroupResponse) -> None:
        self.member_id = joined.member_id
        self.generation = joined.generation_id
        shares = None
        if joined.leader == joined.member_id and not joined.skip_assignment:
            ids = sorted(one.member_id for one in joined.members)
            shares = {
                one: bytes(p for p in range(PARTITIONS) if p % len(ids) == index)
                for index, one in enumerate(ids)
            }
        self.is_syncing = True
        self.patience_ms = self.world.shard.now_ms + self.world.rebalance_ms
        self.waiting = self.world.shard.sync(
            self.member_id, self.generation, shares, instance_id=self.instance_id
        )

    def _beat_and_commit(self) -> None:
        chance, shard = self.world.chance, self.world.shard
        if chance.random() < self.world.loss:
            return
        if self.owned and chance.random() < 0.5:
            self.world.commit(self, chance.choice(sorted(self.owned)))
        if self.generation < 0:
            return
        for _ in range(1 + (chance.random() < self.world.loss)):
            code = shard.heartbeat(self.member_id, self.generation, self.instance_id)
        if code == 0:
            assert self.generation == shard.group.generation, "a stale member was left in peace"
        if code == RebalanceInProgress.code:
            self.generation = -1
        elif code:
            self._on_error(code, "")


class World:
    """The shard, its clients, and what must always hold."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.loss = self.chance.choice((0.0, 0.05, 0.2, 0.4))
        self.session_ms, self.rebalance_ms = self.chance.choice(TIMEOUTS_MS)
        self.shard = ShardInMemory()
        self.consumers: list[Consumer] = []
        self.owners: dict[tuple[int, int], str] = {}
        self.promised: dict[int, int] = {}
        self.names = 0

    def add(self) -> None:
        self.names += 1
        is_static = self.chance.random() < 0.5
        self.consumers.append(Consumer(self, f"c{self.names}", is_static=is_static))

    def commit(self, consumer: Consumer, partition: int) -> None:
        offset = self.promised.get(partition, 0) + 1
        code = self.shard.commit(
            offset,
            member_id=consumer.member_id,
            generation=consumer.generation,
            partition=partition,
            instance_id=consumer.instance_id,
        )
        if code == 0:
            group = self.shard.group
            assert consumer.generation == group.generation, "a stale commit was taken"
            assert consumer.member_id in group.members, "a stranger's commit was taken"
            self.promised[partition] = offset
        elif code in LOST or code == IllegalGeneration.code:
            consumer._on_error(code, "")

    def check_ownership(self, consumer: Consumer) -> None:
        """No partition has two owners in one generation; a static member may change its id."""
        name = consumer.instance_id or consumer.member_id
        for partition in consumer.owned:
            owner = self.owners.setdefault((consumer.generation, partition), name)
            assert owner == name, f"{partition} has two owners in {consumer.generation}"

    def check_offsets(self) -> None:
        for partition, offset in self.promised.items():
            assert self.shard.committed(partition=partition) == offset

    def step(self) -> None:
        chance = self.chance
        roll = chance.random()
        if roll < 0.03 and len(self.consumers) < 12:
            self.add()
        elif roll < 0.05 and self.consumers:
            self.consumers.remove(chance.choice(self.consumers))  # It dies without a word.
        elif roll < 0.07 and self.consumers:
            self._leave(chance.choice(self.consumers))
        elif roll < 0.09:
            self._crash()
        for consumer in chance.sample(self.consumers, len(self.consumers)):
            if chance.random() < 0.9:
                consumer.act()
        self.shard.pass_time(chance.choice((50, 500, 2500)))
        self.check_offsets()

    def _leave(self, consumer: Consumer) -> None:
        self.consumers.remove(consumer)
        if consumer.member_id and GROUP in self.shard.state.groups:
            self.shard.leave((consumer.member_id, consumer.instance_id or None))

    def _crash(self) -> None:
        self.shard.reload()
        for consumer in self.consumers:
            if consumer.waiting is not None:
                consumer.waiting, consumer.generation = None, -1

    def calm_down(self) -> None:
        """No more faults: the group has to become stable."""
        self.loss = 0.0
        for _ in range(300):
            for consumer in self.consumers:
                consumer.act()
            self.shard.pass_time(1000)


@pytest.mark.parametrize("seed", seeds(16))
def test_groups_survive_faults(seed: int) -> None:
    """CON-3, CON-6, DEL-2: one owner each, all owned when it is calm, no offset ever lost."""
    world = World(seed)
    world.add()
    for _ in range(STEPS):
        world.step()
    while len(world.consumers) < 2:
        world.add()
    world.calm_down()
    group = world.shard.state.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    assert group.state is State.STABLE
    owned = Counter(p for consumer in world.consumers for p in consumer.owned)
    assert owned == Counter(range(PARTITIONS))
    world.shard.reload()
    world.check_offsets()
