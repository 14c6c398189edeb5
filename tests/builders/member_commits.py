"""The commits of simulated members: delayed, sent twice at times, and never to be lost."""

import random
from collections import deque
from typing import NamedTuple

from headrace.errors import KafkaError
from tests.builders.consumer_groups import GroupsInMemory

Place = tuple[str, int]
"""A topic's name and a partition."""


class Sent(NamedTuple):
    """A commit on its way, in the epoch in which its sender believed itself."""

    member_id: str
    epoch: int
    place: Place
    offset: int


class Reader:
    """The positions of one client in its partitions; its commits arrive in order, or never."""

    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        self.positions: dict[Place, int] = {}
        self.on_the_way: deque[Sent] = deque()
        self.stalls_for = 0  # Rounds in which none of its commits arrives.


class Ledger:
    """Every offset that a group has promised to keep."""

    def __init__(self, groups: GroupsInMemory) -> None:
        self.groups = groups
        self.readers: dict[str, Reader] = {}  # The dead ones too: their commits may still come.
        self.promised: dict[Place, int] = {}

    def reader(self, member_id: str) -> Reader:
        return self.readers.setdefault(member_id, Reader(member_id))

    def own(self, member_id: str, places: set[Place], *, is_fenced: bool) -> None:
        """A member has exactly these partitions; it fetches the offset of a regained one again.

        As Kafka's clients it gives up a partition only when its commits are answered, which
        matters: in the epoch that a member has, any partition may be committed, as in Kafka. One
        that was fenced waits for nothing, and its commits may come at any time.
        """
        reader = self.reader(member_id)
        lost = reader.positions.keys() - places
        while lost and not is_fenced and reader.on_the_way:
            self._arrive(reader.on_the_way.popleft())
        for place in lost:
            del reader.positions[place]

    def work(self, member_id: str, epoch: int, places: set[Place], chance: random.Random) -> None:
        """Read on in a partition, from where it was committed, and send a commit of it."""
        reader = self.reader(member_id)
        if not places:
            return
        place = chance.choice(sorted(places))
        if place not in reader.positions:
            if reader.on_the_way:
                return  # The fetch of an offset follows the commits in flight.
            reader.positions[place] = self.groups.committed(*place) or 0
        reader.positions[place] += chance.randint(1, 5)
        reader.on_the_way.append(Sent(member_id, epoch, place, reader.positions[place]))

    def deliver(self, chance: random.Random, *, loss: float) -> None:
        """Deliver some commits of past and present members; connections stall at random."""
        for reader in self.readers.values():
            if reader.stalls_for == 0 and chance.random() < 0.1:
                reader.stalls_for = chance.randint(5, 60)
            if reader.stalls_for:
                reader.stalls_for -= 1
                continue
            while reader.on_the_way and chance.random() >= loss:
                sent = reader.on_the_way.popleft()
                for _ in range(1 + (chance.random() < loss)):
                    self._arrive(sent)

    def _arrive(self, sent: Sent) -> None:
        try:
            self.groups.commit(sent.member_id, sent.epoch, *sent.place, sent.offset)
        except KafkaError:
            return  # Too late; the partition's new owner reads on from the last promise.
        before = self.promised.get(sent.place, 0)
        assert sent.offset >= before, f"{sent.place} went back from {before} to {sent.offset}"
        self.promised[sent.place] = sent.offset

    def check(self) -> None:
        """Assert that every promised commit is kept."""
        kept = {place: self.groups.committed(*place) for place in self.promised}
        assert kept == self.promised
