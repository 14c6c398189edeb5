"""A share group as ShareGroupDescribe shows it."""

from headrace.groups.assignors import Assignment
from headrace.groups.share_group import ShareGroup, ShareMember
from headrace.metadata.image import MetadataImage
from headrace.protocol.schemas.share_group_describe import (
    Assignment as DescribedAssignment,
)
from headrace.protocol.schemas.share_group_describe import (
    DescribedGroup,
    Member,
    TopicPartitions,
)


def describe(group: ShareGroup, image: MetadataImage, assignor: str) -> DescribedGroup:
    """The group, its members, and what each has."""
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=assignor,
        members=[_member(one, image) for one in group.members.values()],
    )


def _member(member: ShareMember, image: MetadataImage) -> Member:
    return Member(
        member_id=member.id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        assignment=_named(member.assigned, image),
    )


def _named(assigned: Assignment, image: MetadataImage) -> DescribedAssignment:
    """Partitions by topic name; a topic that is gone is left out."""
    topics = image.topics_by_id
    return DescribedAssignment(
        topic_partitions=[
            TopicPartitions(topic_id, topics[topic_id].name, sorted(partitions))
            for topic_id, partitions in assigned.items()
            if topic_id in topics
        ]
    )
