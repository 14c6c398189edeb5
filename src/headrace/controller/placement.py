"""Where the replicas of new partitions go: striped over racks, then over brokers.

Racks take turns, and within a rack its brokers do, each from a random start that moves on by one
with every partition. So replicas of a partition sit in different racks as far as there are
racks, leaders spread evenly, and when a broker fails its load spreads over many others. Fenced
brokers are used only when the others do not suffice, and never for the leader.
"""

from collections.abc import Callable, Iterable
from os import urandom

from headrace.errors import InvalidReplicationFactor
from headrace.metadata.features import has_directories
from headrace.metadata.image import UNASSIGNED_DIRECTORY, BrokerImage, MetadataImage
from headrace.protocol.uuids import Uuid

Draw = Callable[[int], int]
"""Draws a number below its argument."""

_REPLICATION_FACTOR_MAX = (1 << 15) - 1


def draw(bound: int) -> int:
    """Chance from the system: good enough to spread load, and nothing to import."""
    return int.from_bytes(urandom(8)) % bound


def place_replicas(
    image: MetadataImage, partitions: int, replication_factor: int, draw: Draw = draw
) -> list[list[int]]:
    """The replicas of that many new partitions, the leader first in each list."""
    brokers = image.brokers.values()
    _check_replication_factor(brokers, replication_factor)
    if len(brokers) == 1:
        return [[broker.id] for broker in brokers for _ in range(partitions)]
    racks = _Racks(brokers, draw)
    return [racks.place(replication_factor) for _ in range(partitions)]


def default_directory(image: MetadataImage, broker_id: int) -> Uuid:
    """The directory of a new replica: a broker's only one, or whichever it will choose."""
    broker = image.brokers[broker_id]
    cordoned = broker.cordoned_directories or ()
    usable = [directory for directory in broker.directories if directory not in cordoned]
    return usable[0] if len(usable) == 1 else UNASSIGNED_DIRECTORY


def directories_for(image: MetadataImage, replicas: Iterable[int]) -> list[Uuid]:
    """The directory of each new replica; none where the cluster does not name them yet."""
    if not has_directories(image.metadata_version):
        return []
    return [default_directory(image, replica) for replica in replicas]


def _check_replication_factor(brokers: Iterable[BrokerImage], replication_factor: int) -> None:
    registered = list(brokers)
    if not 0 < replication_factor <= _REPLICATION_FACTOR_MAX:
        raise InvalidReplicationFactor(
            f"the replication factor must be at least 1, not {replication_factor}"
        )
    if replication_factor > len(registered):
        raise InvalidReplicationFactor(
            f"replication factor {replication_factor} needs as many brokers, and "
            f"{len(registered)} {'is' if len(registered) == 1 else 'are'} registered; "
            f"create the topic with at most {len(registered)}"
        )
    if not any(broker.is_active for broker in registered):
        raise InvalidReplicationFactor(
            "all brokers are fenced or shutting down; wait until one is ready"
        )


class _Turns:
    """A list whose members take turns, the first of each round moving on by one."""

    def __init__(self, members: list[int], start: int) -> None:
        self.members = members
        self.start = start
        self.taken = 0

    def next(self) -> int | None:
        """The next member of this round, or None when all have had their turn."""
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
    """The brokers of one rack: those at work before those that are fenced."""

    def __init__(self, brokers: list[BrokerImage], draw: Draw) -> None:
        active = sorted(broker.id for broker in brokers if broker.is_active)
        fenced = sorted(broker.id for broker in brokers if not broker.is_active)
        start = draw(len(brokers))
        self.active, self.fenced = _Turns(active, start), _Turns(fenced, start)

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
        self.racks = [_Rack(by_rack[name], draw) for name in sorted(by_rack)]
        self.start = draw(len(self.racks))

    def place(self, replication_factor: int) -> list[int]:
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
        return replicas
