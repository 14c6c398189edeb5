"""The parts of a group's description that all kinds of groups with epochs share."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headrace.groups.epochs.group import EpochGroup
from headrace.groups.epochs.members import EpochMember
from headrace.groups.epochs.records import CLIENT, written
from headrace.metadata.image import MetadataImage
from headrace.protocol.uuids import Uuid


def group_fields(group: EpochGroup[Any, Any]) -> dict[str, Any]:
    """Return the fields of a described group, except its members."""
    return {
        "group_id": group.group_id,
        "group_state": group.state_name,
        "group_epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
    }


def member_fields(member: EpochMember) -> dict[str, Any]:
    """Return the fields of a described member, except its subscription and its assignment."""
    return {"member_id": member.id, "member_epoch": member.epoch, **written(member, CLIENT)}


def named(
    row: Callable[..., Any], assignment: Mapping[Uuid, Iterable[int]], image: MetadataImage
) -> list[Any]:
    """Return partitions as rows with topic names; a deleted topic is left out."""
    topics = image.topics_by_id
    return [
        row(topic_id, topics[topic_id].name, sorted(numbers))
        for topic_id, numbers in assignment.items()
        if topic_id in topics
    ]
