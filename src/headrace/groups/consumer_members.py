"""A member of a consumer group (KIP-848): what it wants, what it has, and how far it has got."""

from collections.abc import Iterable, Mapping
from enum import IntEnum

import msgspec

from headrace.groups.assignors import Assignment
from headrace.protocol.uuids import Uuid

JOINING = 0
LEAVING = -1
LEAVING_FOR_NOW = -2
"""Member epochs with a meaning: join, leave, and leave as a static member that will be back."""

Owned = Mapping[Uuid, Mapping[int, int]]
"""Partitions by topic, each with the assignment epoch in which its owner got it."""


class MemberState(IntEnum):
    """Where a member stands on the way to its target assignment."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


class ClassicProtocolSupport(msgspec.Struct, frozen=True):
    """What a member brings that speaks JoinGroup still, while its group is being migrated."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


class Member(msgspec.Struct, frozen=True):
    """A member as the log knows it; a change makes a new one."""

    id: str
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topic_names: frozenset[str] = frozenset()
    topic_regex: str | None = None
    server_assignor: str | None = None
    assigned: Owned = {}
    pending_revocation: Owned = {}
    classic: ClassicProtocolSupport | None = None

    @property
    def speaks_classic(self) -> bool:
        return self.classic is not None

    @property
    def wishes(self) -> tuple[frozenset[str], str | None]:
        """What it subscribes to: an empty regular expression is none."""
        return self.topic_names, self.topic_regex or None

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch

    def with_epoch(self, epoch: int) -> "Member":
        """The member in its next epoch; the one before stays good until the member hears of it."""
        return msgspec.structs.replace(self, epoch=epoch, previous_epoch=self.epoch)


class ResolvedRegex(msgspec.Struct, frozen=True):
    """The topics that a regular expression stands for, at one offset of the metadata log."""

    topics: frozenset[str]
    version: int = 0
    timestamp_ms: int = 0


def state_from(number: int) -> MemberState:
    """The state by its number; one that a later version wrote is UNKNOWN."""
    try:
        return MemberState(number)
    except ValueError:
        return MemberState.UNKNOWN


def with_epochs(assignment: Assignment, epoch: int) -> Owned:
    """Partitions as owned since one epoch."""
    return {topic_id: dict.fromkeys(found, epoch) for topic_id, found in assignment.items()}


def is_within(owned: Mapping[Uuid, Iterable[int]], limit: Owned) -> bool:
    """Whether all of some partitions are among others."""
    nothing: Mapping[int, int] = {}
    return all(
        number in limit.get(topic_id, nothing)
        for topic_id, numbers in owned.items()
        for number in numbers
    )


def overlaps(owned: Mapping[Uuid, Iterable[int]], others: Owned) -> bool:
    """Whether any of some partitions is among others."""
    nothing: Mapping[int, int] = {}
    return any(
        number in others.get(topic_id, nothing)
        for topic_id, numbers in owned.items()
        for number in numbers
    )
