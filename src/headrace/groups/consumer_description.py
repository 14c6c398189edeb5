"""A consumer group as ConsumerGroupDescribe shows it."""

from collections.abc import Iterable, Mapping

from headrace.groups.consumer_context import ConsumerSettings
from headrace.groups.consumer_draft import preferred_assignor
from headrace.groups.consumer_group import NO_ASSIGNMENT, ConsumerGroup
from headrace.groups.consumer_members import Member
from headrace.metadata.image import MetadataImage
from headrace.protocol.schemas.consumer_group_describe import (
    Assignment,
    DescribedGroup,
    TopicPartitions,
)
from headrace.protocol.schemas.consumer_group_describe import Member as DescribedMember
from headrace.protocol.uuids import Uuid

_CLASSIC, _CONSUMER = 0, 1


def describe(
    group: ConsumerGroup, image: MetadataImage, settings: ConsumerSettings
) -> DescribedGroup:
    """The group, its members, what each has and what it shall have."""
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=preferred_assignor(group.members.values(), settings),
        members=[
            _described(member, group.target.get(member.id, NO_ASSIGNMENT), image)
            for member in group.members.values()
        ],
    )


def _described(
    member: Member, target: Mapping[Uuid, frozenset[int]], image: MetadataImage
) -> DescribedMember:
    return DescribedMember(
        member_id=member.id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex or "",
        assignment=_named((member.assigned, member.pending_revocation), image),
        target_assignment=_named((target,), image),
        member_type=_CLASSIC if member.speaks_classic else _CONSUMER,
    )


def _named(parts: Iterable[Mapping[Uuid, Iterable[int]]], image: MetadataImage) -> Assignment:
    """Partitions by topic name; a topic that is gone is left out."""
    together: dict[Uuid, set[int]] = {}
    for part in parts:
        for topic_id, numbers in part.items():
            together.setdefault(topic_id, set()).update(numbers)
    return Assignment(
        topic_partitions=[
            TopicPartitions(
                topic_id=topic_id,
                topic_name=image.topics_by_id[topic_id].name,
                partitions=sorted(numbers),
            )
            for topic_id, numbers in together.items()
            if topic_id in image.topics_by_id
        ]
    )
