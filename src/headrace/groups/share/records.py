"""Members of share groups, and their records: types 10 to 15 of `__consumer_offsets`."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from headrace.groups.assignors import Assignment
from headrace.groups.epochs.members import EpochMember
from headrace.groups.epochs.records import CLIENT, TOPIC_NAMES, EpochRecords, assignment_in, rows_of
from headrace.protocol.coordinator_records import CoordinatorRecord, encode_record
from headrace.protocol.schemas.records import groups as schemas
from headrace.protocol.uuids import Uuid

NO_ASSIGNMENT: Assignment = {}


class ShareMember(EpochMember, frozen=True):
    """A member: its topics and its partitions. It has no states on the way to its target."""

    topic_names: frozenset[str] = frozenset()
    assigned: Assignment = NO_ASSIGNMENT


class StateTopic(msgspec.Struct, frozen=True):
    """A topic, and its partitions whose states are initialized, or being initialized."""

    name: str
    partitions: frozenset[int]


class StateTopics(msgspec.Struct, frozen=True):
    """The progress of the states of a group's partitions."""

    initializing: Mapping[Uuid, StateTopic] = {}
    initialized: Mapping[Uuid, StateTopic] = {}
    deleting: Mapping[Uuid, str] = {}


class ShareRecords(EpochRecords[ShareMember, Assignment]):
    """Translates share groups."""

    kind = "Share"
    member_type = ShareMember
    description = (*CLIENT, TOPIC_NAMES)
    assignment = ("assigned",)

    def assignment_written(self, member: ShareMember) -> dict[str, Any]:
        row = schemas.ShareGroupCurrentMemberAssignmentValueTopicPartitions
        return {"assigned_partitions": rows_of(row, member.assigned)}

    def assignment_read(
        self, value: schemas.ShareGroupCurrentMemberAssignmentValue
    ) -> dict[str, Any]:
        return {"assigned": assignment_in(value.assigned_partitions)}

    def target_written(self, target: Assignment) -> dict[str, Any]:
        row = schemas.ShareGroupTargetAssignmentMemberValueTopicPartition
        return {"topic_partitions": rows_of(row, target)}

    def target_of(self, value: schemas.ShareGroupTargetAssignmentMemberValue) -> Assignment:
        return assignment_in(value.topic_partitions)


# Records that only share groups have.


def state_topics(group_id: str, states: StateTopics) -> CoordinatorRecord:
    """The topics whose states are initialized, being initialized, and being deleted."""
    row = schemas.ShareGroupStatePartitionMetadataValueTopicInfo
    value = schemas.ShareGroupStatePartitionMetadataValue(
        initializing_topics=_rows(states.initializing),
        initialized_topics=_rows(states.initialized),
        deleting_topics=[row(topic_id, name) for topic_id, name in states.deleting.items()],
    )
    return encode_record(schemas.ShareGroupStatePartitionMetadataKey(group_id=group_id), value)


def states_of(value: schemas.ShareGroupStatePartitionMetadataValue | None) -> StateTopics:
    if value is None:
        return StateTopics()
    return StateTopics(
        initializing=_state_topics(value.initializing_topics),
        initialized=_state_topics(value.initialized_topics),
        deleting={one.topic_id: one.topic_name for one in value.deleting_topics},
    )


def _rows(topics: Mapping[Uuid, StateTopic]) -> list[schemas.TopicPartitionsInfo]:
    return [
        schemas.TopicPartitionsInfo(topic_id, one.name, sorted(one.partitions))
        for topic_id, one in topics.items()
    ]


def _state_topics(rows: Iterable[schemas.TopicPartitionsInfo]) -> dict[Uuid, StateTopic]:
    return {one.topic_id: StateTopic(one.topic_name, frozenset(one.partitions)) for one in rows}
