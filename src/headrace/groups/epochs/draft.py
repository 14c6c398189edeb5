"""A group with epochs as it would be after a decision, and the records that lead there."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from headrace.coordination.effects import Effects, TimerKey
from headrace.groups.epochs.group import EpochGroup, EpochSettings
from headrace.groups.epochs.members import EpochMember, MemberState
from headrace.metadata.image import MetadataImage
from headrace.protocol.coordinator_records import CoordinatorRecord

if TYPE_CHECKING:
    from headrace.groups.state import GroupsState

M = TypeVar("M", bound=EpochMember)
T = TypeVar("T")
S = TypeVar("S", bound=EpochSettings)
R = TypeVar("R")

_SOON_MS = 500


class Context(msgspec.Struct, Generic[S], frozen=True):
    """The circumstances of a decision about one group."""

    shard: "GroupsState"
    image: MetadataImage
    settings: S
    now_ms: int


def context_of(shard: "GroupsState", group: EpochGroup[Any, Any], now_ms: int) -> Context[Any]:
    return Context(shard, shard.image(), group.settings(), now_ms)


class Draft(Generic[M, T]):
    """The next state of a group; the group itself stays as it is."""

    def __init__(self, group: EpochGroup[M, T], context: Context[Any]) -> None:
        self.group = group
        self.context = context
        self.epoch = group.epoch
        self.target_epoch = group.assignment_epoch
        self.members = dict(group.members)
        self.target: Mapping[str, T] = group.target
        self.memory = group.memory
        self.records: list[CoordinatorRecord] = []
        self.timers: dict[TimerKey, int | None] = {}

    def effects(self, reply: R) -> Effects[R]:
        """The decision: the records of the draft, then its memory, timers and the reply."""
        effects = Effects(reply, self.records, timers=self.timers)
        if self.memory is not self.group.memory:
            context, group_id, memory = self.context, self.group.group_id, self.memory
            effects.on_written = lambda: context.shard.set_memory(group_id, memory)
        return effects

    # Members.

    def describe(self, before: M, after: M) -> M:
        """Put a member in as it describes itself now."""
        self.members[after.id] = after
        if after != before:
            self.records.append(self.group.records.member(self.group.group_id, after))
        return after

    def advance(self, before: M, after: M) -> M:
        """Put a member in after a step towards its target."""
        if after != before:
            group = self.group
            self.members[after.id] = after
            self.records.append(group.records.current(group.group_id, after))
            if group.must_revoke_in_time(after):
                timer = (group.rebalance, group.group_id, after.id)
                self.timers[timer] = after.rebalance_timeout_ms
            elif before.state is MemberState.UNREVOKED:
                self.timers[group.rebalance, group.group_id, after.id] = None
        return after

    def remove(self, member: M) -> None:
        del self.members[member.id]
        self.records.extend(self.group.records.no_member(self.group.group_id, member.id))

    def keep_alive(self, member: M) -> None:
        """Restart the member's session timeout."""
        timeout_ms = self.context.settings.session_timeout_ms
        self.timers[self.group.session, self.group.group_id, member.id] = timeout_ms

    def bump_epoch(self, metadata_hash: int, **fields: Any) -> None:
        """Raise the group epoch; `fields` are those that only this kind of group records."""
        self.epoch += 1
        self.records.append(
            self.group.records.group(self.group.group_id, self.epoch, metadata_hash, **fields)
        )

    # The target.

    @property
    def waits_for_assignment(self) -> bool:
        """Return whether the group has changed since its target was computed."""
        return self.epoch > self.target_epoch

    @property
    def assignment_delay_ms(self) -> int:
        """The wait before the next target, so that many changes share one; not above 0 if due."""
        last_ms = self.group.assignment_timestamp_ms
        interval_ms: int = self.context.settings.assignment_interval_ms
        return last_ms + interval_ms - self.context.now_ms if last_ms and interval_ms else 0

    def set_target(self, target: Mapping[str, T]) -> None:
        """Put in a new target; only the shares that differ are written."""
        group = self.group
        for member_id, share in target.items():
            if group.target.get(member_id) != share:
                self.records.append(group.records.target(group.group_id, member_id, share))
        self.target = target
        self.target_epoch = self.epoch
        now_ms = self.context.now_ms
        self.records.append(group.records.target_epoch(group.group_id, self.epoch, now_ms))

    def heartbeat_interval_ms(self, *, is_soon: bool = False) -> int:
        """The interval to the next heartbeat; short if changes are pending."""
        usual_ms: int = self.context.settings.heartbeat_interval_ms
        if self.waits_for_assignment:
            return max(min(usual_ms, self.assignment_delay_ms + 1), 1)
        return min(usual_ms, _SOON_MS) if is_soon else usual_ms
