"""Consumer groups under faults: members come, go, die and dawdle, messages are lost and repeated.

A simulated member does what Kafka's clients do: it revokes what an answer does not list, reports it
with its next heartbeat, and joins again when it is fenced. Meanwhile it reads on from what is
committed, and commits, and its commits may come when it is not a member any more. Failing seeds
repeat exactly.
"""

import random
from contextlib import suppress

import pytest

from headrace.errors import FencedMemberEpoch, GroupIdNotFound, KafkaError, UnknownMemberId
from headrace.groups.consumer.group import ConsumerGroup
from headrace.protocol.schemas.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from headrace.protocol.uuids import Uuid
from tests.builders.consumer_groups import GROUP, GroupsInMemory, request_of
from tests.builders.member_commits import Ledger, Place
from tests.builders.metadata_images import image_with, topic_id
from tests.builders.seeds import seeds

TOPICS = ("bills", "orders", "parcels")
NAMES = {topic_id(name): name for name in TOPICS}


class Consumer:
    """One member as its client sees itself."""

    def __init__(self, groups: GroupsInMemory, member_id: str, topics: tuple[str, ...]) -> None:
        self.groups = groups
        self.id = member_id
        self.topics = topics
        self.epoch = 0
        self.owned: set[tuple[Uuid, int]] = set()
        self.has_news = True
        self.last_answer_ms = groups.now_ms

    def beat(self, chance: random.Random, *, loss: float) -> None:
        """Send a heartbeat; the request or its answer may be lost, or arrive twice."""
        if chance.random() < loss:
            self.has_news = True  # After a timeout a client reports everything again.
            return
        answers = [self._send() for _ in range(1 + (chance.random() < loss))]
        if chance.random() < loss:
            self.has_news = True
            return
        self._take(answers[0])

    @property
    def places(self) -> set[Place]:
        return {(NAMES[topic], number) for topic, number in self.owned}

    def leave(self) -> None:
        with suppress(GroupIdNotFound, UnknownMemberId):  # It may be removed already.
            self.groups.heartbeat(self.id, -1)

    def _send(self) -> ConsumerGroupHeartbeatResponse | KafkaError:
        whole = self.epoch == 0 or self.has_news
        fields = (
            {"subscribed_topic_names": list(self.topics), "rebalance_timeout_ms": 60_000}
            if whole
            else {}
        )
        owned = {
            name: [number for topic, number in self.owned if topic == topic_id(name)]
            for name in TOPICS
            if any(topic == topic_id(name) for topic, _ in self.owned)
        }
        try:
            return self.groups.send(request_of(self.id, self.epoch, owned, **fields))
        except KafkaError as error:
            return error

    def _take(self, answer: ConsumerGroupHeartbeatResponse | KafkaError) -> None:
        self.last_answer_ms = self.groups.now_ms
        if isinstance(answer, (FencedMemberEpoch, UnknownMemberId)):
            self.epoch, self.owned, self.has_news = 0, set(), True
            return
        assert isinstance(answer, ConsumerGroupHeartbeatResponse), answer
        self.epoch = answer.member_epoch
        self.has_news = False
        if answer.assignment is not None:
            self.owned = {
                (one.topic_id, number)
                for one in answer.assignment.topic_partitions
                for number in one.partitions
            }


class Faults:
    """A group with some consumers, and what befalls them."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.sizes = {name: self.chance.randint(1, 6) for name in TOPICS}
        self.groups = GroupsInMemory(image_with(topics=self.sizes))
        self.alike = self.chance.random() < 0.5
        self.loss = self.chance.choice([0.0, 0.1, 0.3])
        self.consumers: list[Consumer] = []
        self.born = 0
        self.ledger = Ledger(self.groups)

    def step(self) -> None:
        self.groups.wait(self.chance.randint(1, 3_000))
        self._bury()
        self._read_on()
        happening = self.chance.random()
        if happening < 0.1 or not self.consumers:
            self._arrive()
        elif happening < 0.14:
            self.consumers.pop(self.chance.randrange(len(self.consumers))).leave()
        elif happening < 0.17:
            self.consumers.pop(self.chance.randrange(len(self.consumers)))  # Dies without a word.
        elif happening < 0.19:
            self._grow()
        elif happening < 0.2:
            self.groups.reload()
        else:
            self.chance.choice(self.consumers).beat(self.chance, loss=self.loss)

    def calm(self) -> None:
        """No more changes: everyone beats until all is at rest."""
        for _ in range(60):
            self.groups.wait(1_001)
            self._bury()
            for consumer in self.consumers:
                consumer.beat(self.chance, loss=0.0)

    def _read_on(self) -> None:
        for consumer in self.consumers:
            self.ledger.own(consumer.id, consumer.places, is_fenced=consumer.epoch == 0)
            if consumer.epoch > 0 and self.chance.random() < 0.3:
                self.ledger.work(consumer.id, consumer.epoch, consumer.places, self.chance)
        self.ledger.deliver(self.chance, loss=self.loss)

    def _arrive(self) -> None:
        self.born += 1
        some = tuple(self.chance.sample(TOPICS, self.chance.randint(1, len(TOPICS))))
        topics = TOPICS if self.alike else some
        self.consumers.append(Consumer(self.groups, f"member-{self.born}", topics))
        self.consumers[-1].beat(self.chance, loss=self.loss)

    def _grow(self) -> None:
        name = self.chance.choice(TOPICS)
        self.sizes[name] += 1
        self.groups.image = image_with(topics=self.sizes)

    def _bury(self) -> None:
        """A client that got no answer for a whole session, or was removed, has stopped working."""
        members = self.groups.state.groups.get(GROUP)
        for consumer in self.consumers:
            gone = not isinstance(members, ConsumerGroup) or consumer.id not in members.members
            if gone and consumer.epoch:
                consumer.epoch, consumer.owned, consumer.has_news = 0, set(), True

    def check_owners(self) -> None:
        """No partition has two owners: not for the coordinator, not for the clients."""
        claims = [one for consumer in self.consumers for one in consumer.owned]
        assert len(claims) == len(set(claims))
        group = self.groups.state.groups.get(GROUP)
        if isinstance(group, ConsumerGroup):
            held = [
                (topic, number)
                for member in group.members.values()
                for owned in (member.assigned, member.pending_revocation)
                for topic, numbers in owned.items()
                for number in numbers
            ]
            assert len(held) == len(set(held))
            assert set(held) == group.owners.keys()


@pytest.mark.parametrize("seed", seeds(16))
def test_partitions_have_one_owner_always_and_each_has_one_in_the_end(seed: int) -> None:
    """CON-3, CON-4, CON-5."""
    faults = Faults(seed)
    for _ in range(200):
        faults.step()
        faults.check_owners()
    faults.calm()
    faults.check_owners()
    if not faults.consumers:
        return
    group = faults.groups.group
    assert group.state_name == "Stable"
    assert {one.id for one in faults.consumers} == group.members.keys()
    wanted = {
        (topic_id(name), number)
        for consumer in faults.consumers
        for name in consumer.topics
        for number in range(faults.sizes[name])
    }
    assert {one for consumer in faults.consumers for one in consumer.owned} == wanted
    if faults.alike:
        loads = [len(consumer.owned) for consumer in faults.consumers]
        assert max(loads) - min(loads) <= 1


@pytest.mark.parametrize("seed", seeds(8))
def test_no_offset_is_lost_or_goes_back(seed: int) -> None:
    """CON-6, CON-7: a partition's next owner begins where the commits of the last one end."""
    faults = Faults(seed)
    for _ in range(200):
        faults.step()
        faults.ledger.check()
    assert faults.ledger.promised
    faults.groups.reload()
    faults.ledger.check()


@pytest.mark.parametrize("seed", seeds(8))
def test_a_restart_forgets_nothing(seed: int) -> None:
    faults = Faults(seed)
    for _ in range(100):
        faults.step()
    before = faults.groups.group
    faults.groups.reload()
    after = faults.groups.group
    assert after.members == before.members
    assert (after.epoch, after.assignment_epoch) == (before.epoch, before.assignment_epoch)
    assert after.target == before.target
    assert after.owners == before.owners
