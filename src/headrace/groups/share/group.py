"""A share group (KIP-932) as its log describes it.

Its members may share partitions, so no revocation precedes an assignment: a member moves to its
target immediately. The state of a partition, which the share coordinator keeps, must be initialized
before any member may read the partition.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from headrace.errors import GroupIdNotFound
from headrace.groups.assignors import Assignment
from headrace.groups.epochs.draft import Context
from headrace.groups.epochs.group import EpochGroup, EpochSettings, GroupState, MetadataNote
from headrace.groups.epochs.records import tombstone
from headrace.groups.group import GroupType
from headrace.groups.share.records import (
    NO_ASSIGNMENT,
    ShareMember,
    ShareRecords,
    StateTopics,
    states_of,
)
from headrace.protocol.coordinator_records import CoordinatorRecord
from headrace.protocol.message import Message
from headrace.protocol.schemas.records import groups as schemas
from headrace.protocol.uuids import Uuid

if TYPE_CHECKING:
    from headrace.settings.broker import BrokerSettings


class ShareSettings(EpochSettings, frozen=True, kw_only=True):
    """The settings of a share group."""

    max_size: int = 200
    initialize_retry_interval_ms: int = 30_000


class ShareMemory(msgspec.Struct, frozen=True):
    """State without records: a computation, and the start times of initializations."""

    note: MetadataNote | None = None
    initializing_since_ms: Mapping[Uuid, int] = {}


class ShareGroup(EpochGroup[ShareMember, Assignment]):
    """One share group."""

    type = GroupType.SHARE
    records = ShareRecords()
    no_target = NO_ASSIGNMENT
    settings_type, memory_type = ShareSettings, ShareMemory
    session, rebalance = "share.session", "share.rebalance"
    settings: Callable[[], ShareSettings]
    memory: ShareMemory

    def __init__(self, group_id: str, settings: Callable[[], ShareSettings] | None = None) -> None:
        super().__init__(group_id, settings)
        self.states = StateTopics()

    @staticmethod
    def broker_settings(broker: "BrokerSettings") -> dict[str, Any]:
        return {
            "max_size": broker.group_share_max_size,
            "initialize_retry_interval_ms": broker.group_share_initialize_retry_interval_ms,
        }

    @property
    def state(self) -> GroupState:
        return GroupState.STABLE if self.members else GroupState.EMPTY

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, is_transaction: bool
    ) -> None:
        raise self._no_offsets()

    def check_late_commit(
        self, member: ShareMember, epoch: int, topic: str, topic_id: Uuid, partition: int
    ) -> None:
        raise self._no_offsets()

    def check_fetch(self, member_id: str, epoch: int) -> None:
        raise self._no_offsets()

    def check_offset_delete(self) -> None:
        raise self._no_offsets()

    def _no_offsets(self) -> GroupIdNotFound:
        return GroupIdNotFound(f"Group {self.group_id} is not a consumer group.")

    def is_subscribed(self, topic: str) -> bool:
        return any(topic in one.topic_names for one in self.members.values())

    def offsets_expire_from(self, committed_ms: int) -> int | None:
        return None

    def own_tombstones(self) -> Iterator[CoordinatorRecord]:
        yield tombstone(schemas.ShareGroupStatePartitionMetadataKey(group_id=self.group_id))
        yield tombstone(schemas.ShareGroupMetadataKey(group_id=self.group_id))

    def apply_own(self, key: Message, value: Any) -> None:
        if isinstance(key, schemas.ShareGroupStatePartitionMetadataKey):
            self._forget_note()
            self.states = states_of(value)

    def replace_member(self, member: ShareMember) -> None:
        old = self.members.get(member.id)
        if old is None or old.topic_names != member.topic_names:
            self._forget_note()
        super().replace_member(member)

    def remove_member(self, member_id: str) -> None:
        self._forget_note()
        super().remove_member(member_id)

    def _forget_note(self) -> None:
        if self.memory.note is not None:
            self.memory = ShareMemory(None, self.memory.initializing_since_ms)


ShareContext = Context[ShareSettings]


def subscribed_topics(members: Mapping[str, ShareMember]) -> frozenset[str]:
    """The names of all topics that any member subscribes to."""
    return frozenset[str]().union(*(one.topic_names for one in members.values()))
