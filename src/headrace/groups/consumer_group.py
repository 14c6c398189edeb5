"""A consumer group (KIP-848) as the log knows it, and the one place that changes it.

Three epochs tell how far it has got: the group epoch rises when members or topics change, the
assignment epoch follows when a target assignment is computed for it, and every member follows
with its own epoch as it is reconciled.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

import msgspec

from headrace.coordination.effects import Effects, Ticket, TimerKey
from headrace.errors import NonEmptyGroup
from headrace.groups.assignors import Assignment
from headrace.groups.consumer_context import REBALANCE, SESSION, ConsumerSettings
from headrace.groups.consumer_members import (
    LEAVING,
    ClassicProtocolSupport,
    Member,
    MemberState,
    Owned,
    ResolvedRegex,
    state_from,
)
from headrace.groups.consumer_offsets import check_commit, check_fetch
from headrace.groups.consumer_records import no_group
from headrace.groups.group import FIRST_EPOCH, GroupType
from headrace.protocol.coordinator_records import CoordinatorRecord
from headrace.protocol.message import Message
from headrace.protocol.schemas.records import groups as schemas
from headrace.protocol.uuids import Uuid

NO_ASSIGNMENT: Assignment = {}


class GroupState(StrEnum):
    """What a group is doing, as tools show it."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class MetadataNote(msgspec.Struct, frozen=True):
    """That a group was compared with the cluster's topics, and found to have this hash of them."""

    topics: object
    hash: int
    at_ms: int


class ConsumerGroup:
    """The hard state of a group, and what is derived from it; only `apply` changes it.

    `note` remembers a computation, `joining` whom of the classic protocol we have told to join
    again; both may be forgotten at any time.
    """

    __slots__ = (
        "assignment_epoch",
        "assignment_timestamp_ms",
        "epoch",
        "group_id",
        "has_partition_metadata",
        "joining",
        "members",
        "metadata_hash",
        "note",
        "owners",
        "regexes",
        "settings",
        "static_members",
        "target",
    )

    type = GroupType.CONSUMER
    protocol_type = "consumer"

    def __init__(
        self, group_id: str, settings: Callable[[], ConsumerSettings] = ConsumerSettings
    ) -> None:
        self.group_id = group_id
        self.settings = settings
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        self.members: dict[str, Member] = {}
        self.target: dict[str, Assignment] = {}
        self.regexes: dict[str, ResolvedRegex] = {}
        self.static_members: dict[str, str] = {}
        self.owners: dict[tuple[Uuid, int], str] = {}
        self.has_partition_metadata = False
        self.note: MetadataNote | None = None
        self.joining: set[str] = set()

    @property
    def state(self) -> GroupState:
        if not self.members:
            return GroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return GroupState.ASSIGNING
        done = all(one.is_reconciled_to(self.assignment_epoch) for one in self.members.values())
        return GroupState.STABLE if done else GroupState.RECONCILING

    def is_free(self, topic_id: Uuid, partition: int) -> bool:
        """Whether no member has a partition or is still giving it up."""
        return (topic_id, partition) not in self.owners

    def static_member(self, instance_id: str | None) -> Member | None:
        if instance_id is None:
            return None
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def target_of(self, member: Member) -> Assignment:
        """Where a member shall get to; a static one by its name, which outlives its ids."""
        previous_id = self.static_members.get(member.instance_id or "", member.id)
        return self.target.get(previous_id, NO_ASSIGNMENT)

    # What every kind of group is (`groups/group.py`).

    @property
    def state_name(self) -> str:
        return self.state.value

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, is_transaction: bool
    ) -> None:
        check_commit(self, member_id, instance_id, epoch, is_transaction=is_transaction)

    def check_fetch(self, member_id: str, epoch: int) -> None:
        check_fetch(self, member_id, epoch)

    def check_offset_delete(self) -> None:
        """At any time: topics that are subscribed to are refused one by one."""

    def check_delete(self) -> None:
        if self.members:
            raise NonEmptyGroup(f"Group {self.group_id} is not empty.")

    def is_subscribed(self, topic: str) -> bool:
        return topic in subscribed_topics(self.members, self.regexes)

    def offsets_expire_from(self, committed_ms: int) -> int | None:
        return committed_ms

    def tombstones(self) -> list[CoordinatorRecord]:
        return list(no_group(self))

    def on_loaded(self, now_ms: int) -> Effects[None]:
        """Everyone has a whole session again."""
        timers: dict[TimerKey, int | None] = {}
        for member in self.members.values():
            classic = member.classic
            session_ms = (
                classic.session_timeout_ms if classic else self.settings().session_timeout_ms
            )
            timers[SESSION, self.group_id, member.id] = session_ms
            if member.state is MemberState.UNREVOKED_PARTITIONS and classic is None:
                timers[REBALANCE, self.group_id, member.id] = member.rebalance_timeout_ms
        return Effects(timers=timers)

    def tickets(self) -> list[Ticket]:
        return []

    # What `apply` is made of.

    def replace_member(self, member: Member) -> None:
        """Put a member in, with all that is derived from it."""
        old = self.members.get(member.id)
        if old is not None:
            self._forget_owner(old)
        self.members[member.id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.id
        for owned in (member.assigned, member.pending_revocation):
            for topic_id, numbers in owned.items():
                for number in numbers:
                    self.owners[topic_id, number] = member.id
        if old is None or old.wishes != member.wishes:
            self.note = None

    def remove_member(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._forget_owner(member)
        self.joining.discard(member_id)
        if self.static_members.get(member.instance_id or "") == member_id:
            del self.static_members[member.instance_id or ""]
        self.note = None

    def _forget_owner(self, member: Member) -> None:
        """Release a member's partitions, unless they have another owner by now."""
        for owned in (member.assigned, member.pending_revocation):
            for topic_id, numbers in owned.items():
                for number in numbers:
                    if self.owners.get((topic_id, number)) == member.id:
                        del self.owners[topic_id, number]


def subscribed_topics(
    members: Mapping[str, Member], regexes: Mapping[str, ResolvedRegex]
) -> set[str]:
    """The names of all topics that any member wants."""
    topics: set[str] = set()
    for member in members.values():
        topics |= member.topic_names
    for regex in {one.topic_regex for one in members.values() if one.topic_regex}:
        if regex in regexes:
            topics |= regexes[regex].topics
    return topics


def apply(group: ConsumerGroup, key: Message, value: Message | None) -> None:
    """Change a group by one of its records, live and on replay alike.

    The group's own tombstone, which removes it, is the business of whoever keeps the groups.
    """
    match key:
        case schemas.ConsumerGroupCurrentMemberAssignmentKey(member_id=member_id):
            _apply_current(group, member_id, value)
        case schemas.ConsumerGroupTargetAssignmentMemberKey(member_id=member_id):
            _apply_target(group, member_id, value)
        case schemas.ConsumerGroupTargetAssignmentMetadataKey():
            _apply_target_metadata(group, value)
        case schemas.ConsumerGroupMemberMetadataKey(member_id=member_id):
            _apply_member(group, member_id, value)
        case schemas.ConsumerGroupMetadataKey():
            if isinstance(value, schemas.ConsumerGroupMetadataValue):
                group.epoch = value.epoch
                group.metadata_hash = value.metadata_hash
        case schemas.ConsumerGroupRegularExpressionKey(regular_expression=regex):
            _apply_regex(group, regex, value)
        case schemas.ConsumerGroupPartitionMetadataKey():
            group.has_partition_metadata = value is not None


def _apply_member(group: ConsumerGroup, member_id: str, value: Message | None) -> None:
    if not isinstance(value, schemas.ConsumerGroupMemberMetadataValue):
        group.remove_member(member_id)
        return
    group.replace_member(
        msgspec.structs.replace(
            group.members.get(member_id) or Member(member_id),
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            topic_names=frozenset(value.subscribed_topic_names),
            topic_regex=value.subscribed_topic_regex,
            server_assignor=value.server_assignor,
            classic=_classic(value.classic_member_metadata),
        )
    )


def _classic(metadata: schemas.ClassicMemberMetadata | None) -> ClassicProtocolSupport | None:
    if metadata is None or not metadata.supported_protocols:
        return None
    return ClassicProtocolSupport(
        metadata.session_timeout_ms,
        tuple((one.name, bytes(one.metadata)) for one in metadata.supported_protocols),
    )


def _apply_current(group: ConsumerGroup, member_id: str, value: Message | None) -> None:
    member = group.members.get(member_id)
    if isinstance(value, schemas.ConsumerGroupCurrentMemberAssignmentValue):
        group.replace_member(
            msgspec.structs.replace(
                member or Member(member_id),
                epoch=value.member_epoch,
                previous_epoch=value.previous_member_epoch,
                state=state_from(value.state),
                assigned=_owned(value.assigned_partitions, value.member_epoch),
                pending_revocation=_owned(value.partitions_pending_revocation, value.member_epoch),
            )
        )
    elif member is not None:
        group.replace_member(
            msgspec.structs.replace(
                member, epoch=LEAVING, previous_epoch=LEAVING, assigned={}, pending_revocation={}
            )
        )


def _owned(
    topics: Sequence[schemas.ConsumerGroupCurrentMemberAssignmentValueTopicPartitions], epoch: int
) -> Owned:
    """Partitions with their epochs; records from before 4.3 have none, so the member's counts."""
    owned: dict[Uuid, dict[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs or []
        if len(epochs) != len(topic.partitions):
            epochs = [max(epoch, 0)] * len(topic.partitions)
        owned[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return owned


def _apply_target(group: ConsumerGroup, member_id: str, value: Message | None) -> None:
    if isinstance(value, schemas.ConsumerGroupTargetAssignmentMemberValue):
        group.target[member_id] = {
            topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions
        }
    else:
        group.target.pop(member_id, None)


def _apply_target_metadata(group: ConsumerGroup, value: Message | None) -> None:
    if isinstance(value, schemas.ConsumerGroupTargetAssignmentMetadataValue):
        group.assignment_epoch = value.assignment_epoch
        group.assignment_timestamp_ms = value.assignment_timestamp
    else:
        group.assignment_epoch, group.assignment_timestamp_ms = -1, 0


def _apply_regex(group: ConsumerGroup, regex: str, value: Message | None) -> None:
    if isinstance(value, schemas.ConsumerGroupRegularExpressionValue):
        topics = frozenset(value.topics)
        group.regexes[regex] = ResolvedRegex(topics, value.version, value.timestamp)
    else:
        group.regexes.pop(regex, None)
    group.note = None
