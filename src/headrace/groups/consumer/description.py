"""Descriptions of consumer groups, for ConsumerGroupDescribe."""

from collections.abc import Iterable, Mapping

from headrace.groups.consumer.draft import preferred_assignor
from headrace.groups.consumer.group import ConsumerGroup
from headrace.groups.consumer.records import Member
from headrace.groups.epochs.description import group_fields, member_fields, named
from headrace.metadata.image import MetadataImage
from headrace.protocol.schemas import consumer_group_describe as schemas
from headrace.protocol.uuids import Uuid

_CLASSIC, _CONSUMER = 0, 1


def describe(group: ConsumerGroup, image: MetadataImage) -> schemas.DescribedGroup:
    """Describe a group, its members, their current and their target assignments."""
    return schemas.DescribedGroup(
        **group_fields(group),
        assignor_name=preferred_assignor(group.members.values(), group.settings()),
        members=[
            _described(member, group.target.get(member.id, group.no_target), image)
            for member in group.members.values()
        ],
    )


def _described(
    member: Member, target: Mapping[Uuid, frozenset[int]], image: MetadataImage
) -> schemas.Member:
    held: dict[Uuid, set[int]] = {}
    for part in (member.assigned, member.pending_revocation):
        for topic_id, numbers in part.items():
            held.setdefault(topic_id, set()).update(numbers)
    return schemas.Member(
        **member_fields(member),
        instance_id=member.instance_id,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex or "",
        assignment=_assignment(held, image),
        target_assignment=_assignment(target, image),
        member_type=_CLASSIC if member.speaks_classic else _CONSUMER,
    )


def _assignment(
    assignment: Mapping[Uuid, Iterable[int]], image: MetadataImage
) -> schemas.Assignment:
    return schemas.Assignment(named(schemas.TopicPartitions, assignment, image))
