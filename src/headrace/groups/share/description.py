"""Descriptions of share groups, for ShareGroupDescribe."""

from headrace.groups.epochs.description import group_fields, member_fields, named
from headrace.groups.share.group import ShareGroup
from headrace.groups.share.records import ShareMember
from headrace.metadata.image import MetadataImage
from headrace.protocol.schemas import share_group_describe as schemas


def describe(group: ShareGroup, image: MetadataImage, assignor: str) -> schemas.DescribedGroup:
    """Describe a group and its members with their assignments."""
    return schemas.DescribedGroup(
        **group_fields(group),
        assignor_name=assignor,
        members=[_member(one, image) for one in group.members.values()],
    )


def _member(member: ShareMember, image: MetadataImage) -> schemas.Member:
    return schemas.Member(
        **member_fields(member),
        subscribed_topic_names=sorted(member.topic_names),
        assignment=schemas.Assignment(named(schemas.TopicPartitions, member.assigned, image)),
    )
