"""A share group (KIP-932) as the log knows it, and the one place that changes it.

Its members may share partitions, so nobody has to give one up before another gets it: a member is
told its share, and that is all. What takes time is the state of a partition, which the share
coordinator keeps: it must have been begun before anyone may read the partition in this group.
"""

from collections.abc import Callable, Iterable, Mapping

import msgspec

from headrace.coordination.effects import Effects, Ticket, TimerKey
from headrace.errors import GroupIdNotFound, NonEmptyGroup, UnknownMemberId
from headrace.groups.assignors import Assignment
from headrace.groups.consumer_members import LEAVING
from headrace.groups.group import FIRST_EPOCH, GroupType
from headrace.protocol.coordinator_records import CoordinatorRecord
from headrace.protocol.message import Message
from headrace.protocol.schemas.records import groups as schemas
from headrace.protocol.uuids import Uuid

SESSION = "share.session"
"""The timer of a member: until its next heartbeat."""

NO_ASSIGNMENT: Assignment = {}

_EMPTY, _STABLE = "Empty", "Stable"


class ShareSettings(msgspec.Struct, frozen=True):
    """What is set for a share group, by itself or for all of them."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    initialize_retry_interval_ms: int = 30_000
    max_size: int = 200


class ShareMember(msgspec.Struct, frozen=True):
    """A member as the log knows it; a change makes a new one."""

    id: str
    epoch: int = 0
    previous_epoch: int = -1
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    assigned: Assignment = NO_ASSIGNMENT


class StateTopic(msgspec.Struct, frozen=True):
    """A topic, and those of its partitions whose states are begun, or being begun."""

    name: str
    partitions: frozenset[int]


class StateTopics(msgspec.Struct, frozen=True):
    """How far the states of a group's partitions have got."""

    initializing: Mapping[Uuid, StateTopic] = {}
    initialized: Mapping[Uuid, StateTopic] = {}
    deleting: Mapping[Uuid, str] = {}


class Note(msgspec.Struct, frozen=True):
    """That nothing is due, as of some topics; soft, and forgotten when the group changes."""

    topics: object
    hash: int


class ShareGroup:
    """The hard state of a share group; what is soft may be forgotten at any time."""

    type = GroupType.SHARE
    protocol_type = "share"

    def __init__(
        self, group_id: str, settings: Callable[[], ShareSettings] = ShareSettings
    ) -> None:
        self.group_id = group_id
        self.settings = settings
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        self.members: dict[str, ShareMember] = {}
        self.target: dict[str, Assignment] = {}
        self.states = StateTopics()
        self.note: Note | None = None  # Soft, as all below.
        self.initializing_since_ms: dict[Uuid, int] = {}

    def known(self, member_id: str) -> ShareMember:
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberId(f"Member {member_id} is not a member of group {self.group_id}.")
        return member

    # What every kind of group is (`groups/group.py`).

    @property
    def state_name(self) -> str:
        return _STABLE if self.members else _EMPTY

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, is_transaction: bool
    ) -> None:
        raise self._no_offsets()

    def check_fetch(self, member_id: str, epoch: int) -> None:
        raise self._no_offsets()

    def check_offset_delete(self) -> None:
        raise self._no_offsets()

    def _no_offsets(self) -> GroupIdNotFound:
        return GroupIdNotFound(f"Group {self.group_id} is not a consumer group.")

    def check_delete(self) -> None:
        if self.members:
            raise NonEmptyGroup("The group is not empty.")

    def is_subscribed(self, topic: str) -> bool:
        return any(topic in one.topic_names for one in self.members.values())

    def offsets_expire_from(self, committed_ms: int) -> int | None:
        return None

    def tombstones(self) -> list[CoordinatorRecord]:
        from headrace.groups.share_records import no_group

        return list(no_group(self))

    def on_loaded(self, now_ms: int) -> Effects[None]:
        """Everyone has a whole session again."""
        session_ms = self.settings().session_timeout_ms
        timers: dict[TimerKey, int | None] = {
            (SESSION, self.group_id, member_id): session_ms for member_id in self.members
        }
        return Effects(timers=timers)

    def tickets(self) -> list[Ticket]:
        return []


def subscribed_topics(members: Mapping[str, ShareMember]) -> frozenset[str]:
    """The names of all topics that any member wants."""
    return frozenset[str]().union(*(one.topic_names for one in members.values()))


def apply(group: ShareGroup, key: Message, value: Message | None) -> None:
    """Change a group by one of its records, live and on replay alike.

    The group's own tombstone, which removes it, is the business of whoever keeps the groups.
    """
    match key:
        case schemas.ShareGroupCurrentMemberAssignmentKey(member_id=member_id):
            _apply_current(group, member_id, value)
        case schemas.ShareGroupTargetAssignmentMemberKey(member_id=member_id):
            _apply_target(group, member_id, value)
        case schemas.ShareGroupTargetAssignmentMetadataKey():
            _apply_target_metadata(group, value)
        case schemas.ShareGroupMemberMetadataKey(member_id=member_id):
            _apply_member(group, member_id, value)
        case schemas.ShareGroupStatePartitionMetadataKey():
            _apply_states(group, value)
        case schemas.ShareGroupMetadataKey():
            if isinstance(value, schemas.ShareGroupMetadataValue):
                group.epoch = value.epoch
                group.metadata_hash = value.metadata_hash


def _apply_member(group: ShareGroup, member_id: str, value: Message | None) -> None:
    group.note = None
    if not isinstance(value, schemas.ShareGroupMemberMetadataValue):
        group.members.pop(member_id, None)
        return
    group.members[member_id] = msgspec.structs.replace(
        group.members.get(member_id) or ShareMember(member_id),
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topic_names=frozenset(value.subscribed_topic_names),
    )


def _apply_current(group: ShareGroup, member_id: str, value: Message | None) -> None:
    member = group.members.get(member_id)
    if isinstance(value, schemas.ShareGroupCurrentMemberAssignmentValue):
        group.members[member_id] = msgspec.structs.replace(
            member or ShareMember(member_id),
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            assigned=_assignment(value.assigned_partitions),
        )
    elif member is not None:
        group.members[member_id] = msgspec.structs.replace(
            member, epoch=LEAVING, previous_epoch=LEAVING, assigned=NO_ASSIGNMENT
        )


def _apply_target(group: ShareGroup, member_id: str, value: Message | None) -> None:
    if isinstance(value, schemas.ShareGroupTargetAssignmentMemberValue):
        group.target[member_id] = _assignment(value.topic_partitions)
    else:
        group.target.pop(member_id, None)


def _assignment(
    rows: Iterable[
        schemas.ShareGroupCurrentMemberAssignmentValueTopicPartitions
        | schemas.ShareGroupTargetAssignmentMemberValueTopicPartition
    ],
) -> Assignment:
    return {one.topic_id: frozenset(one.partitions) for one in rows}


def _apply_target_metadata(group: ShareGroup, value: Message | None) -> None:
    if isinstance(value, schemas.ShareGroupTargetAssignmentMetadataValue):
        group.assignment_epoch = value.assignment_epoch
        group.assignment_timestamp_ms = value.assignment_timestamp
    else:
        group.assignment_epoch, group.assignment_timestamp_ms = -1, 0


def _apply_states(group: ShareGroup, value: Message | None) -> None:
    group.note = None
    if isinstance(value, schemas.ShareGroupStatePartitionMetadataValue):
        group.states = StateTopics(
            initializing=_state_topics(value.initializing_topics),
            initialized=_state_topics(value.initialized_topics),
            deleting={one.topic_id: one.topic_name for one in value.deleting_topics},
        )
    else:
        group.states = StateTopics()


def _state_topics(rows: Iterable[schemas.TopicPartitionsInfo]) -> dict[Uuid, StateTopic]:
    return {one.topic_id: StateTopic(one.topic_name, frozenset(one.partitions)) for one in rows}
