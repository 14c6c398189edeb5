"""What every kind of group is to those who do not care which kind: offsets, listings, deletion."""

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from headrace.coordination.effects import Effects, Ticket, TimerKey
from headrace.protocol.coordinator_records import CoordinatorRecord
from headrace.protocol.message import Message

if TYPE_CHECKING:
    from headrace.groups.shard import GroupShard


FIRST_EPOCH = 1
"""The epochs of a group before its first member has joined: 0 is for members that join."""


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
        """What the members are to each other: `consumer`, `connect`, `share`; empty if unknown."""

    @property
    def state_name(self) -> str:
        """The state as listings name it: `Stable`, `Empty` and so on."""

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, is_transaction: bool
    ) -> None:
        """Whether this member may commit offsets; raises the error for it."""

    def check_fetch(self, member_id: str, epoch: int) -> None:
        """Whether offsets may be fetched in this member's name."""

    def check_offset_delete(self) -> None:
        """Whether offsets may be deleted now."""

    def check_delete(self) -> None:
        """Whether the group may be deleted now."""

    def is_subscribed(self, topic: str) -> bool:
        """Whether a topic's offsets are in use, so that they must stay."""

    def offsets_expire_from(self, committed_ms: int) -> int | None:
        """From when a committed offset's retention counts; None while it may not expire."""

    def tombstones(self) -> list[CoordinatorRecord]:
        """The records that make the group be gone; its offsets are not its own business."""

    def on_loaded(self, now_ms: int) -> Effects[None]:
        """All records are in: start the timers that the group needs."""

    def tickets(self) -> list[Ticket]:
        """Everyone who waits for the group."""


Replay = Callable[["GroupShard", Message, Message | None], None]
"""Takes a record's key and value into a shard; None deletes."""

OnTimer = Callable[["GroupShard", TimerKey, int], Effects[None]]
"""Decides what happens when a timer runs out."""
