"""Share groups under faults: members come, go, die and dawdle, messages are lost and repeated.

A simulated member does what Kafka's share consumer does: it takes each answer's share at once,
and joins again when it is fenced. The share coordinator fails now and then, and the broker
restarts between any two steps. Failing seeds repeat exactly.
"""

import random
from contextlib import suppress

import pytest

from headrace.errors import FencedMemberEpoch, GroupIdNotFound, KafkaError, UnknownMemberId
from headrace.groups.share.group import ShareGroup
from headrace.protocol.schemas.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from headrace.protocol.uuids import Uuid
from tests.builders.metadata_images import image_with, topic_id
from tests.builders.share_groups import GROUP, ShareGroupsInMemory

TOPICS = ("bills", "orders", "parcels")
SEEDS = range(40)


class Worker:
    """One member as its client sees itself."""

    def __init__(self, groups: ShareGroupsInMemory, member_id: str, topics: tuple[str, ...]):
        self.groups = groups
        self.id = member_id
        self.topics = topics
        self.epoch = 0
        self.share: set[tuple[Uuid, int]] = set()

    def beat(self, chance: random.Random, *, loss: float) -> None:
        """Send a heartbeat; the request or its answer may be lost, or arrive twice."""
        if chance.random() < loss:
            return
        answers = [self._send() for _ in range(1 + (chance.random() < loss))]
        if chance.random() >= loss:
            self._take(answers[0])

    def leave(self) -> None:
        with suppress(GroupIdNotFound, UnknownMemberId):  # It may be removed already.
            self.groups.beat(self.id, -1)

    def _send(self) -> ShareGroupHeartbeatResponse | KafkaError:
        request = ShareGroupHeartbeatRequest(
            GROUP, self.id, self.epoch, subscribed_topic_names=list(self.topics)
        )
        try:
            return self.groups.send(request)
        except KafkaError as error:
            return error

    def _take(self, answer: ShareGroupHeartbeatResponse | KafkaError) -> None:
        if isinstance(answer, (FencedMemberEpoch, UnknownMemberId, GroupIdNotFound)):
            self.epoch, self.share = 0, set()
            return
        assert isinstance(answer, ShareGroupHeartbeatResponse), answer
        self.epoch = answer.member_epoch
        assert answer.assignment is not None
        self.share = {
            (one.topic_id, number)
            for one in answer.assignment.topic_partitions
            for number in one.partitions
        }


class Faults:
    """A group with some workers, and what befalls them."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.sizes = {name: self.chance.randint(1, 5) for name in TOPICS}
        self.groups = ShareGroupsInMemory(image_with(topics=self.sizes))
        self.alike = self.chance.random() < 0.5
        self.loss = self.chance.choice([0.0, 0.1, 0.3])
        self.workers: list[Worker] = []
        self.born = 0

    def step(self) -> None:
        self.groups.wait(self.chance.randint(1, 3_000))
        self.groups.begins_states = self.chance.random() > self.loss
        happening = self.chance.random()
        if happening < 0.1 or not self.workers:
            self._arrive()
        elif happening < 0.14:
            self.workers.pop(self.chance.randrange(len(self.workers))).leave()
        elif happening < 0.17:
            self.workers.pop(self.chance.randrange(len(self.workers)))  # Dies without a word.
        elif happening < 0.19:
            self._grow()
        elif happening < 0.21:
            self.groups.reload()
        else:
            self.chance.choice(self.workers).beat(self.chance, loss=self.loss)

    def calm(self) -> None:
        """No more changes: everyone beats until the dead are buried and all is at rest."""
        self.groups.begins_states = True
        for _ in range(60):
            self.groups.wait(1_001)
            for worker in self.workers:
                worker.beat(self.chance, loss=0.0)

    def _arrive(self) -> None:
        self.born += 1
        some = tuple(self.chance.sample(TOPICS, self.chance.randint(1, len(TOPICS))))
        topics = TOPICS if self.alike else some
        self.workers.append(Worker(self.groups, f"member-{self.born}", topics))
        self.workers[-1].beat(self.chance, loss=self.loss)

    def _grow(self) -> None:
        self.sizes[self.chance.choice(TOPICS)] += 1
        self.groups.image = image_with(topics=self.sizes)

    @property
    def group(self) -> ShareGroup | None:
        group = self.groups.state.groups.get(GROUP)
        assert group is None or isinstance(group, ShareGroup)
        return group

    def check_states(self) -> None:
        """No member gets a partition before its state is initialized."""
        begun = {place[:2] for place in self.groups.begun}
        group = self.group
        for share in () if group is None else group.target.values():
            assert {(one, each) for one, numbers in share.items() for each in numbers} <= begun
        for worker in self.workers:
            assert worker.share <= begun


@pytest.mark.parametrize("seed", SEEDS)
def test_every_partition_is_read_and_every_worker_has_work(seed: int) -> None:
    """PUL-3, RMQ-1."""
    faults = Faults(seed)
    epochs = [0]
    for _ in range(300):
        faults.step()
        faults.check_states()
        if faults.group is not None:
            epochs.append(faults.group.epoch)
    assert epochs == sorted(epochs), "a group epoch never goes back"
    faults.calm()
    faults.check_states()
    group = faults.group
    assert group is not None
    assert sorted(group.members) == sorted(worker.id for worker in faults.workers)
    wanted = {
        (topic_id(name), number)
        for worker in faults.workers
        for name in worker.topics
        for number in range(faults.sizes[name])
    }
    assert set().union(*(worker.share for worker in faults.workers)) == wanted
    for worker in faults.workers:
        assert worker.share
        assert {one for one, _ in worker.share} <= {topic_id(name) for name in worker.topics}
        assert worker.epoch == group.epoch == group.assignment_epoch


@pytest.mark.parametrize("seed", SEEDS)
def test_a_reload_from_the_log_restores_the_group(seed: int) -> None:
    faults = Faults(seed)
    for _ in range(120):
        faults.step()
    before = faults.group
    assert before is not None
    faults.groups.reload()
    after = faults.group
    assert after is not None
    for field in ("epoch", "metadata_hash", "assignment_epoch", "members", "target", "states"):
        assert getattr(after, field) == getattr(before, field), field
