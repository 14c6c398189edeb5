"""A group with epochs (KIP-848, KIP-932, KIP-1071) as its log describes it.

Three epochs show its progress. The group epoch rises when members, subscriptions or topics change.
The assignment epoch follows when a target assignment is computed for the group epoch. Each member
follows with its own epoch when it is reconciled with the target.

Decisions change nothing. Records change a group through `EpochGroup.apply`, live and on replay;
what no record holds is in `memory`, which the shard replaces after a decision's records are
written, and which may be lost at any time.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast

import msgspec

from headrace.coordination.effects import Effects, Ticket, TimerKey
from headrace.errors import GroupIdNotFound, NonEmptyGroup, StaleMemberEpoch, UnknownMemberId
from headrace.groups.epochs.members import EpochMember, MemberState
from headrace.groups.epochs.records import EpochRecords
from headrace.groups.group import GroupType, LateCommit
from headrace.groups.state import GroupsState
from headrace.metadata.image import ResourceType
from headrace.protocol.coordinator_records import CoordinatorRecord
from headrace.protocol.message import Message
from headrace.protocol.uuids import Uuid
from headrace.settings import group as group_settings

if TYPE_CHECKING:
    from headrace.settings.broker import BrokerSettings

M = TypeVar("M", bound=EpochMember)
T = TypeVar("T")
S = TypeVar("S", bound="EpochSettings")
G = TypeVar("G", bound="EpochGroup[Any, Any]")

_TIMES = ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")
"""The configs that every kind of group has under its own prefix."""

FIRST_EPOCH = 1
"""The epochs of a group before its first member has joined: 0 is for members that join."""


class GroupState(StrEnum):
    """The states of a group, as tools show them."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"  # Streams groups only.
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class EpochSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a group that all kinds have."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    max_size: int = (1 << 31) - 1


class MetadataNote(msgspec.Struct, frozen=True):
    """The hash of the group's topics, as computed from the cluster's `topics` at `at_ms`."""

    topics: object
    hash: int
    at_ms: int = 0


class EpochGroup(ABC, Generic[M, T]):
    """One group: its members, their targets `T`, and its epochs."""

    type: ClassVar[GroupType]
    records: ClassVar[EpochRecords[Any, Any]]
    no_target: ClassVar[Any]
    settings_type: ClassVar[Callable[..., EpochSettings]]
    setting_names: ClassVar[tuple[str, ...]] = _TIMES
    memory_type: ClassVar[Callable[..., Any]]
    session: ClassVar[str]  # The timer until a member's next heartbeat.
    rebalance: ClassVar[str]  # The timer until a member has revoked what it lost.

    def __init__(self, group_id: str, settings: Callable[[], Any] | None = None) -> None:
        self.group_id = group_id
        self.settings = settings or self.settings_type
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        self.members: dict[str, M] = {}
        self.target: dict[str, T] = {}
        self.memory = self.memory_type()

    @classmethod
    def settings_of(cls, configs: Mapping[str, str], broker: "BrokerSettings") -> EpochSettings:
        """Return the settings of a group with these configs; `session.timeout.ms` is a field."""
        values: dict[str, Any] = {
            name.replace(".", "_"): group_settings.value_of(f"{cls.type}.{name}", configs, broker)
            for name in cls.setting_names
        }
        return cls.settings_type(**values, **cls.broker_settings(broker))

    @staticmethod
    @abstractmethod
    def broker_settings(broker: "BrokerSettings") -> dict[str, Any]:
        """Return the settings that only the broker has, by their fields."""

    @property
    def protocol_type(self) -> str:
        return self.type.value

    @property
    def state(self) -> GroupState:
        if not self.members:
            return GroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return GroupState.ASSIGNING
        done = all(one.is_reconciled_to(self.assignment_epoch) for one in self.members.values())
        return GroupState.STABLE if done else GroupState.RECONCILING

    def member(self, member_id: str) -> M:
        """Return a member of the group; raises for an unknown id."""
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberId(f"Member {member_id} is not a member of group {self.group_id}.")
        return member

    def target_of(self, member: M) -> T:
        target: T = self.target.get(member.id, self.no_target)
        return target

    # The interface of every kind of group (`groups/group.py`).

    @property
    def state_name(self) -> str:
        return self.state.value

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, is_transaction: bool
    ) -> None:
        if epoch < 0 and not self.members:
            return
        if is_transaction and epoch == -1 and not member_id and instance_id is None:
            return
        member = self.member(member_id)
        if epoch > member.epoch:
            raise self.stale(member, f"Epoch {epoch} is newer than the member's {member.epoch}.")
        if epoch < member.epoch:
            raise LateCommit(
                epoch, member.epoch, lambda *place: self.check_late_commit(member, epoch, *place)
            )

    def check_fetch(self, member_id: str, epoch: int) -> None:
        if not member_id and epoch < 0:
            return
        member = self.member(member_id)
        if epoch != member.epoch:
            raise self.stale(member, f"Epoch {epoch} is not the member's {member.epoch}.")

    @abstractmethod
    def check_late_commit(
        self, member: M, epoch: int, topic: str, topic_id: Uuid, partition: int
    ) -> None:
        """Raise unless the member has owned a partition since `epoch` or longer."""

    def stale(self, member: M, message: str) -> Exception:
        """The error for an epoch that is not the member's."""
        return StaleMemberEpoch(message)

    def check_offset_delete(self) -> None:
        """Allow it at any time: topics in use are rejected one by one."""

    def check_delete(self) -> None:
        if self.members:
            raise NonEmptyGroup(f"Group {self.group_id} is not empty.")

    @abstractmethod
    def is_subscribed(self, topic: str) -> bool: ...

    def offsets_expire_from(self, committed_ms: int) -> int | None:
        return committed_ms

    def tombstones(self) -> list[CoordinatorRecord]:
        return [*self.records.no_members(self.group_id, self.members), *self.own_tombstones()]

    @abstractmethod
    def own_tombstones(self) -> Iterable[CoordinatorRecord]:
        """Tombstones for the group's own records, after the members' tombstones."""

    def on_loaded(self, now_ms: int) -> Effects[None]:
        """Start a full session for every member."""
        timers: dict[TimerKey, int | None] = {}
        for member in self.members.values():
            timers[self.session, self.group_id, member.id] = self.session_timeout_ms(member)
            if self.must_revoke_in_time(member):
                timers[self.rebalance, self.group_id, member.id] = member.rebalance_timeout_ms
        return Effects(timers=timers)

    def session_timeout_ms(self, member: M) -> int:
        timeout_ms: int = self.settings().session_timeout_ms
        return timeout_ms

    def must_revoke_in_time(self, member: M) -> bool:
        """Return whether the member's rebalance timeout runs."""
        return member.state is MemberState.UNREVOKED

    def tickets(self) -> list[Ticket]:
        return []

    # Changing: by records only.

    def apply(self, key: Message, value: Any) -> None:
        """Change the group by one of its records; a value of None deletes.

        The tombstone of the group itself is `replay`'s business.
        """
        keys = self.records.keys
        if isinstance(key, keys.current):
            self._apply_current(key.member_id, value)
        elif isinstance(key, keys.member):
            self._apply_member(key.member_id, value)
        elif isinstance(key, keys.target):
            self._apply_target(key.member_id, value)
        elif isinstance(key, keys.target_epoch):
            self.assignment_epoch = -1 if value is None else value.assignment_epoch
            self.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp
        elif not isinstance(key, keys.group):
            self.apply_own(key, value)
        elif value is not None:
            self.apply_group(value)

    def _apply_member(self, member_id: str, value: Any) -> None:
        if value is None:
            self.remove_member(member_id)
        else:
            known = self._member_or_new(member_id)
            self.replace_member(self.records.with_description(known, value))

    def _apply_target(self, member_id: str, value: Any) -> None:
        if value is None:
            self.target.pop(member_id, None)
        else:
            self.target[member_id] = self.records.target_of(value)

    def _apply_current(self, member_id: str, value: Any) -> None:
        if value is not None:
            known = self._member_or_new(member_id)
            self.replace_member(self.records.with_assignment(known, value))
        elif (member := self.members.get(member_id)) is not None:
            self.replace_member(self.records.without_assignment(member))

    def _member_or_new(self, member_id: str) -> M:
        member: M = self.members.get(member_id) or self.records.member_type(member_id)
        return member

    def apply_group(self, value: Any) -> None:
        """Apply the group's own record."""
        self.epoch = value.epoch
        self.metadata_hash = value.metadata_hash

    def apply_own(self, key: Message, value: Any) -> None:
        """Apply a record of a type that only this kind of group has."""

    def replace_member(self, member: M) -> None:
        self.members[member.id] = member

    def remove_member(self, member_id: str) -> None:
        self.members.pop(member_id, None)


class LiveSettings(Generic[S]):
    """The current settings of a group, computed again when its configs or the broker's change."""

    __slots__ = ("_computed", "_settings_of", "_shard", "group_id")

    def __init__(
        self,
        shard: GroupsState,
        group_id: str,
        settings_of: "Callable[[Mapping[str, str], BrokerSettings], S]",
    ) -> None:
        self._shard = shard
        self._settings_of = settings_of
        self.group_id = group_id
        self._computed: tuple[object, object, S] | None = None

    def __call__(self) -> S:
        configs = self._shard.image().configs_of(ResourceType.GROUP, self.group_id)
        broker = self._shard.settings()
        computed = self._computed
        if computed is None or computed[0] != configs or computed[1] is not broker:
            computed = self._computed = (configs, broker, self._settings_of(configs, broker))
        return computed[2]


def new_group(shard: GroupsState, group_id: str, kind: type[G]) -> G:
    """A group without records, which is not yet in its shard."""
    return kind(group_id, LiveSettings(shard, group_id, kind.settings_of))


def find_group(shard: GroupsState, group_id: str, kind: type[G]) -> G:
    """Return the group, which must exist and be of this kind."""
    group = shard.groups.get(group_id)
    if not isinstance(group, kind):
        what = "not found" if group is None else f"not a {kind.type} group"
        raise GroupIdNotFound(f"Group {group_id} is {what}.")
    return group


def replay(kind: type[G], shard: GroupsState, key: Message, value: Message | None) -> None:
    """Apply a record to its group: the first record creates the group, its tombstone ends it."""
    group_id: str = cast(Any, key).group_id
    group = shard.groups.get(group_id)
    if not isinstance(group, kind):
        if value is None:
            return
        group = shard.groups[group_id] = new_group(shard, group_id, kind)
    if value is None and isinstance(key, kind.records.keys.group):
        del shard.groups[group_id]
    else:
        group.apply(key, value)


def overdue_member(group: EpochGroup[M, T], key: TimerKey) -> M | None:
    """The member that was silent, or slow to revoke, until the timer `key` ran out."""
    member = group.members.get(key[2])
    if member is None:
        return None
    if key[0] == group.rebalance and member.state is not MemberState.UNREVOKED:
        return None
    return member
