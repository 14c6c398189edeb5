"""Placement of the replicas of new partitions: striped over racks, then over brokers.

Racks take turns, and so do the brokers of a rack. Each rotation begins at random and moves on by
one with every partition. So the replicas of a partition are in different racks if possible, and
leaders are spread evenly. After one round of leaders, racks and brokers are shuffled: otherwise the
same brokers would meet again, and all leaders of a failed broker would go to the same other one.

Fenced brokers are used only if the others do not suffice, and never for the leader. A broker that
is shutting down is not used.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from headrace.errors import InvalidReplicationFactor
from headrace.metadata.features import has_directories
from headrace.metadata.image import UNASSIGNED_DIRECTORY, BrokerImage, MetadataImage
from headrace.protocol.uuids import Uuid
from headrace.runtime import chance

T = TypeVar("T")

Draw = Callable[[int], int]
"""Draws a number below its argument."""

_REPLICATION_FACTOR_MAX = (1 << 15) - 1


def draw(bound: int) -> int:
    """Draw a number below a bound."""
    return int.from_bytes(chance.urandom(8)) % bound


def place_replicas(
    image: MetadataImage, partitions: int, replication_factor: int, draw: Draw = draw
) -> list[list[int]]:
    """Return the replicas of each new partition; the leader is first in each list."""
    brokers = usable_brokers(image)
    _check_replication_factor(brokers, replication_factor)
    if len(brokers) == 1:
        return [[broker.id] for broker in brokers for _ in range(partitions)]
    racks = _Racks(brokers, draw)
    return [racks.place(replication_factor) for _ in range(partitions)]


def usable_brokers(image: MetadataImage) -> list[BrokerImage]:
    """Return the brokers that may get replicas, and so bound the replication factor.

    Fenced ones count: they are registered, and may only be late.
    """
    return [one for one in image.brokers.values() if one.fenced or not one.in_controlled_shutdown]


def default_directory(image: MetadataImage, broker_id: int) -> Uuid:
    """Return the directory of a new replica: the broker's only one, or unassigned."""
    broker = image.brokers[broker_id]
    cordoned = broker.cordoned_directories or ()
    usable = [directory for directory in broker.directories if directory not in cordoned]
    return usable[0] if len(usable) == 1 else UNASSIGNED_DIRECTORY


def directories_for(image: MetadataImage, replicas: Iterable[int]) -> list[Uuid]:
    """Return the directory of each new replica; none if the metadata has no directories yet."""
    if not has_directories(image.metadata_version):
        return []
    return [default_directory(image, replica) for replica in replicas]


def _check_replication_factor(usable: Sequence[BrokerImage], replication_factor: int) -> None:
    if not 0 < replication_factor <= _REPLICATION_FACTOR_MAX:
        raise InvalidReplicationFactor(
            f"the replication factor must be at least 1, not {replication_factor}"
        )
    count = len(usable)
    if replication_factor > count:
        raise InvalidReplicationFactor(
            f"replication factor {replication_factor} needs as many brokers, and "
            f"{count} {'is' if count == 1 else 'are'} registered; "
            f"create the topic with at most {count}"
        )
    if all(broker.fenced for broker in usable):
        raise InvalidReplicationFactor(
            "all brokers are fenced or shutting down; wait until one is ready"
        )


class _Turns:
    """A list whose members take turns; each round begins one member later."""

    def __init__(self, members: list[int], draw: Draw) -> None:
        self.members = members
        self.start = draw(len(members)) if members else 0
        self.taken = 0

    def next(self) -> int | None:
        """Return the next member of this round, or None at its end."""
        if self.taken == len(self.members):
            return None
        member = self.members[(self.start + self.taken) % len(self.members)]
        self.taken += 1
        return member

    def begin_round(self) -> None:
        if self.taken:
            self.start += 1
            self.taken = 0


class _Rack:
    """The brokers of one rack: active ones before fenced ones."""

    def __init__(self, brokers: list[BrokerImage], draw: Draw) -> None:
        self.active = _Turns(sorted(one.id for one in brokers if not one.fenced), draw)
        self.fenced = _Turns(sorted(one.id for one in brokers if one.fenced), draw)

    def next_active(self) -> int | None:
        return self.active.next()

    def next(self) -> int | None:
        broker = self.active.next()
        return self.fenced.next() if broker is None else broker

    def begin_round(self) -> None:
        self.active.begin_round()
        self.fenced.begin_round()


class _Racks:
    def __init__(self, brokers: Iterable[BrokerImage], draw: Draw) -> None:
        by_rack: dict[str, list[BrokerImage]] = {}
        for broker in brokers:
            by_rack.setdefault(broker.rack or "", []).append(broker)
        self.draw = draw
        self.racks = [_Rack(by_rack[name], draw) for name in sorted(by_rack)]
        self.start = draw(len(self.racks))
        self.placed = 0
        self.active_count = sum(len(rack.active.members) for rack in self.racks)

    def place(self, replication_factor: int) -> list[int]:
        if self.placed == self.active_count > 1:
            self._shuffle()
            self.placed = 0
        for rack in self.racks:
            rack.begin_round()
        turn = self.start
        replicas: list[int] = []
        while len(replicas) < replication_factor:
            rack = self.racks[turn % len(self.racks)]
            turn += 1
            # Some rack has an active broker for the leader, so this ends.
            replica = rack.next() if replicas else rack.next_active()
            if replica is not None:
                replicas.append(replica)
        self.start += 1
        self.placed += 1
        return replicas

    def _shuffle(self) -> None:
        _shuffle(self.racks, self.draw)
        for rack in self.racks:
            _shuffle(rack.active.members, self.draw)
            _shuffle(rack.fenced.members, self.draw)


def _shuffle(items: list[T], draw: Draw) -> None:
    for last in range(len(items) - 1, 0, -1):
        other = draw(last + 1)
        items[last], items[other] = items[other], items[last]
