"""A consumer group (KIP-848) as its log describes it: members, owners of partitions, patterns."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from headrace.errors import IllegalGeneration, StaleMemberEpoch
from headrace.groups.assignors import Assignment
from headrace.groups.consumer.records import (
    ConsumerRecords,
    Member,
    ResolvedRegex,
    no_partition_metadata,
    no_regular_expression,
)
from headrace.groups.epochs.draft import Context
from headrace.groups.epochs.group import EpochGroup, EpochSettings, MetadataNote
from headrace.groups.epochs.records import tombstone
from headrace.groups.group import GroupType
from headrace.protocol.coordinator_records import CoordinatorRecord
from headrace.protocol.message import Message
from headrace.protocol.schemas.records import groups as schemas
from headrace.protocol.uuids import Uuid

if TYPE_CHECKING:
    from headrace.settings.broker import BrokerSettings

NO_ASSIGNMENT: Assignment = {}

JOIN, SYNC = "consumer.join", "consumer.sync"
"""Timers of a member that speaks the classic protocol: until it rejoins, and until it syncs."""


class ConsumerSettings(EpochSettings, frozen=True, kw_only=True):
    """The settings of a consumer group."""

    assignors: tuple[str, ...] = ("uniform", "range")
    regex_refresh_interval_ms: int = 600_000
    migration_policy: str = "bidirectional"
    classic_max_size: int = (1 << 31) - 1


class ConsumerMemory(msgspec.Struct, frozen=True):
    """State without records: a computation, and the members that must rejoin."""

    note: MetadataNote | None = None
    joining: frozenset[str] = frozenset()  # Members of the classic protocol.


class ConsumerGroup(EpochGroup[Member, Assignment]):
    """One consumer group."""

    type = GroupType.CONSUMER
    records = ConsumerRecords()
    no_target = NO_ASSIGNMENT
    settings_type, memory_type = ConsumerSettings, ConsumerMemory
    session, rebalance = "consumer.session", "consumer.rebalance"
    settings: Callable[[], ConsumerSettings]
    memory: ConsumerMemory

    def __init__(
        self, group_id: str, settings: Callable[[], ConsumerSettings] | None = None
    ) -> None:
        super().__init__(group_id, settings)
        self.regexes: dict[str, ResolvedRegex] = {}
        self.static_members: dict[str, str] = {}
        self.owners: dict[tuple[Uuid, int], str] = {}
        self.has_partition_metadata = False

    @staticmethod
    def broker_settings(broker: "BrokerSettings") -> dict[str, Any]:
        return {
            "max_size": broker.group_consumer_max_size,
            "assignors": broker.group_consumer_assignors,
            "regex_refresh_interval_ms": broker.group_consumer_regex_refresh_interval_ms,
            "migration_policy": broker.group_consumer_migration_policy,
            "classic_max_size": broker.group_max_size,
        }

    def is_free(self, topic_id: Uuid, partition: int) -> bool:
        """Return whether no member holds a partition or is still revoking it."""
        return (topic_id, partition) not in self.owners

    def static_member(self, instance_id: str | None) -> Member | None:
        if instance_id is None:
            return None
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def target_of(self, member: Member) -> Assignment:
        """The target of a member; of a static one by its instance id, which outlives its ids."""
        previous_id = self.static_members.get(member.instance_id or "", member.id)
        return self.target.get(previous_id, self.no_target)

    # The interface of every kind of group.

    def check_late_commit(
        self, member: Member, epoch: int, topic: str, topic_id: Uuid, partition: int
    ) -> None:
        owned_since = member.assigned.get(topic_id, {}).get(partition)
        if owned_since is None:
            owned_since = member.pending_revocation.get(topic_id, {}).get(partition)
        if owned_since is None:
            raise self.stale(member, f"Partition {partition} is not assigned to the member.")
        if epoch < owned_since:
            raise self.stale(member, f"Epoch {epoch} is older than the assignment {owned_since}.")

    def stale(self, member: Member, message: str) -> Exception:
        """The error in the words of the protocol that the member speaks."""
        return IllegalGeneration(message) if member.speaks_classic else StaleMemberEpoch(message)

    def is_subscribed(self, topic: str) -> bool:
        return topic in subscribed_topics(self.members, self.regexes)

    def own_tombstones(self) -> Iterator[CoordinatorRecord]:
        for regex in self.regexes:
            yield no_regular_expression(self.group_id, regex)
        yield no_partition_metadata(self.group_id)
        yield tombstone(schemas.ConsumerGroupMetadataKey(group_id=self.group_id))

    def session_timeout_ms(self, member: Member) -> int:
        if member.classic is not None:
            return member.classic.session_timeout_ms
        return self.settings().session_timeout_ms

    def must_revoke_in_time(self, member: Member) -> bool:
        return not member.speaks_classic and super().must_revoke_in_time(member)

    # Changing: by records only.

    def apply_own(self, key: Message, value: Any) -> None:
        if isinstance(key, schemas.ConsumerGroupPartitionMetadataKey):
            self.has_partition_metadata = value is not None
        elif isinstance(key, schemas.ConsumerGroupRegularExpressionKey):
            self._forget_note()
            if value is None:
                self.regexes.pop(key.regular_expression, None)
            else:
                topics = frozenset(value.topics)
                resolved = ResolvedRegex(topics, value.version, value.timestamp)
                self.regexes[key.regular_expression] = resolved

    def replace_member(self, member: Member) -> None:
        """Put a member in, with all that is derived from it."""
        old = self.members.get(member.id)
        if old is not None:
            self._release(old)
        self.members[member.id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.id
        for owned in (member.assigned, member.pending_revocation):
            for topic_id, numbers in owned.items():
                for number in numbers:
                    self.owners[topic_id, number] = member.id
        if old is None or old.subscription != member.subscription:
            self._forget_note()

    def remove_member(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._release(member)
        if self.static_members.get(member.instance_id or "") == member_id:
            del self.static_members[member.instance_id or ""]
        self.memory = ConsumerMemory(joining=self.memory.joining - {member_id})

    def _release(self, member: Member) -> None:
        """Free a member's partitions, unless they have another owner by now."""
        for owned in (member.assigned, member.pending_revocation):
            for topic_id, numbers in owned.items():
                for number in numbers:
                    if self.owners.get((topic_id, number)) == member.id:
                        del self.owners[topic_id, number]

    def _forget_note(self) -> None:
        if self.memory.note is not None:
            self.memory = ConsumerMemory(joining=self.memory.joining)


ConsumerContext = Context[ConsumerSettings]


def subscribed_topics(
    members: Mapping[str, Member], regexes: Mapping[str, ResolvedRegex]
) -> set[str]:
    """The names of all topics that any member subscribes to."""
    topics: set[str] = set()
    for member in members.values():
        topics |= member.topic_names
    for regex in {one.topic_regex for one in members.values() if one.topic_regex}:
        if regex in regexes:
            topics |= regexes[regex].topics
    return topics


def timers_of_member(group_id: str, member_id: str) -> Iterable[tuple[str, str, str]]:
    """All timers that a member may have."""
    kinds = (ConsumerGroup.session, ConsumerGroup.rebalance, JOIN, SYNC)
    return [(kind, group_id, member_id) for kind in kinds]
