"""The records of a share group: types 10 to 15 of `__consumer_offsets`."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from headrace.groups.assignors import Assignment
from headrace.groups.consumer_records import tombstone
from headrace.protocol.coordinator_records import CoordinatorRecord, encode_record
from headrace.protocol.schemas.records import groups as schemas
from headrace.protocol.uuids import Uuid

if TYPE_CHECKING:
    from headrace.groups.share_group import ShareGroup, ShareMember, StateTopic, StateTopics

_STABLE = 0
"""The state of a member: in a share group there is no other."""

_KEYS_OF_A_MEMBER = (
    schemas.ShareGroupCurrentMemberAssignmentKey,
    schemas.ShareGroupTargetAssignmentMemberKey,
    schemas.ShareGroupMemberMetadataKey,
)
"""In the order in which they are removed: the member itself goes last."""


def member_metadata(group_id: str, member: "ShareMember") -> CoordinatorRecord:
    """What a member is and wants."""
    value = schemas.ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
    )
    key = schemas.ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.id)
    return encode_record(key, value)


def current_assignment(group_id: str, member: "ShareMember") -> CoordinatorRecord:
    """What a member has."""
    row = schemas.ShareGroupCurrentMemberAssignmentValueTopicPartitions
    value = schemas.ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=_STABLE,
        assigned_partitions=[row(one, sorted(found)) for one, found in member.assigned.items()],
    )
    key = schemas.ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.id)
    return encode_record(key, value)


def target_assignment(group_id: str, member_id: str, target: Assignment) -> CoordinatorRecord:
    """What a member shall have."""
    row = schemas.ShareGroupTargetAssignmentMemberValueTopicPartition
    value = schemas.ShareGroupTargetAssignmentMemberValue(
        topic_partitions=[row(one, sorted(found)) for one, found in target.items()]
    )
    key = schemas.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return encode_record(key, value)


def target_epoch(group_id: str, epoch: int, now_ms: int) -> CoordinatorRecord:
    return encode_record(
        schemas.ShareGroupTargetAssignmentMetadataKey(group_id=group_id),
        schemas.ShareGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=now_ms
        ),
    )


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """How often the group has changed, and what its topics were like."""
    return encode_record(
        schemas.ShareGroupMetadataKey(group_id=group_id),
        schemas.ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def state_topics(group_id: str, states: "StateTopics") -> CoordinatorRecord:
    """Whose states the share coordinator has begun, is to begin, and is to forget."""
    row = schemas.ShareGroupStatePartitionMetadataValueTopicInfo
    value = schemas.ShareGroupStatePartitionMetadataValue(
        initializing_topics=_topics(states.initializing),
        initialized_topics=_topics(states.initialized),
        deleting_topics=[row(topic_id, name) for topic_id, name in states.deleting.items()],
    )
    return encode_record(schemas.ShareGroupStatePartitionMetadataKey(group_id=group_id), value)


def _topics(topics: "Mapping[Uuid, StateTopic]") -> list[schemas.TopicPartitionsInfo]:
    return [
        schemas.TopicPartitionsInfo(topic_id, one.name, sorted(one.partitions))
        for topic_id, one in topics.items()
    ]


def no_member(group_id: str, member_id: str) -> Iterator[CoordinatorRecord]:
    for key in _KEYS_OF_A_MEMBER:
        yield tombstone(key(group_id=group_id, member_id=member_id))


def no_group(group: "ShareGroup") -> Iterator[CoordinatorRecord]:
    """Tombstones for all keys of a group, in the order in which Kafka wants to read them."""
    current, target, metadata = _KEYS_OF_A_MEMBER
    for key in (current, target):
        for member_id in group.members:
            yield tombstone(key(group_id=group.group_id, member_id=member_id))
    yield tombstone(schemas.ShareGroupTargetAssignmentMetadataKey(group_id=group.group_id))
    for member_id in group.members:
        yield tombstone(metadata(group_id=group.group_id, member_id=member_id))
    yield tombstone(schemas.ShareGroupStatePartitionMetadataKey(group_id=group.group_id))
    yield tombstone(schemas.ShareGroupMetadataKey(group_id=group.group_id))
