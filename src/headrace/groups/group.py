"""The interface of every kind of group: offsets, listings, deletion, replay, timers."""

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Protocol

from headrace.coordination.effects import Effects, Ticket
from headrace.errors import StaleMemberEpoch
from headrace.protocol.coordinator_records import CoordinatorRecord
from headrace.protocol.uuids import Uuid


class GroupType(StrEnum):
    """The kinds of groups, as ListGroups names them."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class Group(Protocol):
    """One group of any kind, in its shard."""

    @property
    def group_id(self) -> str: ...

    @property
    def type(self) -> GroupType: ...

    @property
    def protocol_type(self) -> str:
        """The members' common protocol: `consumer`, `connect`, `share`; empty if unknown."""

    @property
    def state_name(self) -> str:
        """The state as listings name it: `Stable`, `Empty` and so on."""

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, is_transaction: bool
    ) -> None:
        """Raise unless this member may commit offsets; `LateCommit` if it depends on which."""

    def check_fetch(self, member_id: str, epoch: int) -> None:
        """Raise unless offsets may be fetched in this member's name."""

    def check_offset_delete(self) -> None:
        """Raise unless offsets may be deleted now."""

    def check_delete(self) -> None:
        """Raise unless the group may be deleted now."""

    def is_subscribed(self, topic: str) -> bool:
        """Return whether a topic's offsets are in use, so that they must stay."""

    def offsets_expire_from(self, committed_ms: int) -> int | None:
        """The start of a committed offset's retention; None while it may not expire."""

    def tombstones(self) -> list[CoordinatorRecord]:
        """The records that delete the group; its offsets have records of their own."""

    def on_loaded(self, now_ms: int) -> Effects[None]:
        """Start the timers of the group after all records were replayed."""

    def tickets(self) -> list[Ticket]:
        """The requests that wait for the group."""


class LateCommit(StaleMemberEpoch):
    """A commit in an epoch that its member has left (KIP-1251).

    A member that lags behind its group may still commit for a partition that it got in the epoch
    it names, or before. So a delayed commit is not lost because the group has moved on.
    """

    def __init__(
        self, epoch: int, member_epoch: int, check_partition: Callable[[str, Uuid, int], None]
    ) -> None:
        super().__init__(f"Received member epoch {epoch} is older than {member_epoch}.")
        self._check_partition = check_partition

    def check(self, partitions: Iterable[tuple[str, Uuid, int]]) -> None:
        """Raise unless the member owned all of these, by topic, topic id and number."""
        for topic, topic_id, partition in partitions:
            self._check_partition(topic, topic_id, partition)
