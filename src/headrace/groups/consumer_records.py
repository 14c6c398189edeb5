"""The records of a consumer group: types 3 to 8 and 16 of `__consumer_offsets`."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from headrace.groups.assignors import Assignment
from headrace.groups.consumer_members import Member, Owned, ResolvedRegex
from headrace.protocol.coordinator_records import CoordinatorRecord, encode_record
from headrace.protocol.message import Message
from headrace.protocol.schemas.records import groups as schemas

if TYPE_CHECKING:
    from headrace.groups.consumer_group import ConsumerGroup

_KEYS_OF_A_MEMBER = (
    schemas.ConsumerGroupCurrentMemberAssignmentKey,
    schemas.ConsumerGroupTargetAssignmentMemberKey,
    schemas.ConsumerGroupMemberMetadataKey,
)
"""In the order in which they are removed: the member itself goes last."""


def member_metadata(group_id: str, member: Member) -> CoordinatorRecord:
    """What a member is and wants."""
    value = schemas.ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=_classic(member),
    )
    key = schemas.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.id)
    return encode_record(key, value)


def _classic(member: Member) -> schemas.ClassicMemberMetadata | None:
    if member.classic is None:
        return None
    return schemas.ClassicMemberMetadata(
        session_timeout_ms=member.classic.session_timeout_ms,
        supported_protocols=[
            schemas.ClassicProtocol(name=name, metadata=metadata)
            for name, metadata in member.classic.protocols
        ],
    )


def current_assignment(group_id: str, member: Member) -> CoordinatorRecord:
    """How far a member has got."""
    value = schemas.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=_partitions(member.assigned),
        partitions_pending_revocation=_partitions(member.pending_revocation),
    )
    key = schemas.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.id)
    return encode_record(key, value)


def _partitions(
    owned: Owned,
) -> list[schemas.ConsumerGroupCurrentMemberAssignmentValueTopicPartitions]:
    return [
        schemas.ConsumerGroupCurrentMemberAssignmentValueTopicPartitions(
            topic_id=topic_id, partitions=list(epochs), assignment_epochs=list(epochs.values())
        )
        for topic_id, epochs in owned.items()
    ]


def target_assignment(group_id: str, member_id: str, target: Assignment) -> CoordinatorRecord:
    """Where a member shall get to."""
    value = schemas.ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            schemas.ConsumerGroupTargetAssignmentMemberValueTopicPartition(
                topic_id=topic_id, partitions=sorted(partitions)
            )
            for topic_id, partitions in target.items()
        ]
    )
    key = schemas.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return encode_record(key, value)


def target_epoch(group_id: str, epoch: int, now_ms: int) -> CoordinatorRecord:
    """For which group epoch the target assignment was computed, and when."""
    return encode_record(
        schemas.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        schemas.ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=now_ms
        ),
    )


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """How often the group has changed, and what its topics were like."""
    return encode_record(
        schemas.ConsumerGroupMetadataKey(group_id=group_id),
        schemas.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def regular_expression(group_id: str, regex: str, resolved: ResolvedRegex) -> CoordinatorRecord:
    """Which topics a regular expression stands for."""
    return encode_record(
        schemas.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex),
        schemas.ConsumerGroupRegularExpressionValue(
            topics=sorted(resolved.topics),
            version=resolved.version,
            timestamp=resolved.timestamp_ms,
        ),
    )


def no_regular_expression(group_id: str, regex: str) -> CoordinatorRecord:
    return tombstone(
        schemas.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
    )


def no_partition_metadata(group_id: str) -> CoordinatorRecord:
    """Removes what versions before the metadata hash wrote."""
    return tombstone(schemas.ConsumerGroupPartitionMetadataKey(group_id=group_id))


def no_member(group_id: str, member_id: str) -> Iterator[CoordinatorRecord]:
    for key in _KEYS_OF_A_MEMBER:
        yield tombstone(key(group_id=group_id, member_id=member_id))


def no_group(
    group: "ConsumerGroup", member_ids: Iterable[str] | None = None
) -> Iterator[CoordinatorRecord]:
    """Tombstones for all keys of a group, in the order in which Kafka wants to read them."""
    ids = list(group.members if member_ids is None else member_ids)
    current, target, metadata = _KEYS_OF_A_MEMBER
    for key in (current, target):
        for member_id in ids:
            yield tombstone(key(group_id=group.group_id, member_id=member_id))
    yield tombstone(schemas.ConsumerGroupTargetAssignmentMetadataKey(group_id=group.group_id))
    for member_id in ids:
        yield tombstone(metadata(group_id=group.group_id, member_id=member_id))
    for regex in group.regexes:
        yield no_regular_expression(group.group_id, regex)
    yield no_partition_metadata(group.group_id)
    yield tombstone(schemas.ConsumerGroupMetadataKey(group_id=group.group_id))


def whole_group(group: "ConsumerGroup") -> Iterator[CoordinatorRecord]:
    """All records of a group, as when a classic group becomes this one."""
    for member in group.members.values():
        yield member_metadata(group.group_id, member)
    yield group_epoch(group.group_id, group.epoch, group.metadata_hash)
    for member_id, target in group.target.items():
        yield target_assignment(group.group_id, member_id, target)
    yield target_epoch(group.group_id, group.assignment_epoch, group.assignment_timestamp_ms)
    for member in group.members.values():
        yield current_assignment(group.group_id, member)


def tombstone(key: Message) -> CoordinatorRecord:
    """Removes what a key stands for."""
    return encode_record(key, None)
