"""Groups as values: listings, descriptions and lag."""

import msgspec

from headrace.client.descriptions import Outcome
from headrace.errors import error_for
from headrace.protocol.schemas.consumer_group_describe import (
    DescribedGroup as DescribedConsumerGroup,
)
from headrace.protocol.schemas.share_group_describe import DescribedGroup as DescribedShareGroup


class ListedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A group as its coordinator lists it; old brokers report neither state nor type."""

    group: str
    type: str
    state: str
    protocol_type: str
    coordinator: int


class GroupMember(msgspec.Struct, frozen=True, kw_only=True):
    """A member and its assigned partitions."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: dict[str, list[int]]


class GroupDescription(msgspec.Struct, frozen=True, kw_only=True):
    """A group with its members."""

    group: str
    type: str
    state: str
    assignor: str
    coordinator: int
    members: list[GroupMember]

    def owners_of(self, topic: str, partition: int) -> list[GroupMember]:
        return [one for one in self.members if partition in one.assignment.get(topic, ())]


class PartitionLag(msgspec.Struct, frozen=True, kw_only=True):
    """The lag of a group in one partition; None for unknown numbers."""

    topic: str
    partition: int
    committed: int | None
    end: int | None
    lag: int | None
    lag_seconds: float | None
    metadata: str = ""


def description_of(
    found: DescribedConsumerGroup | DescribedShareGroup, type: str, node: int
) -> GroupDescription:
    """Convert the answer about a consumer or share group."""
    return GroupDescription(
        group=found.group_id,
        type=type,
        state=found.group_state,
        assignor=found.assignor_name,
        coordinator=node,
        members=[
            GroupMember(
                member_id=one.member_id,
                instance_id=getattr(one, "instance_id", None),
                client_id=one.client_id,
                host=one.client_host,
                assignment={
                    topic.topic_name: sorted(topic.partitions)
                    for topic in one.assignment.topic_partitions
                },
            )
            for one in found.members
        ],
    )


def outcome(name: str, code: int) -> Outcome:
    """Return the outcome of a change, with advice for common errors."""
    if not code:
        return Outcome(name=name)
    error = error_for(code)
    return Outcome(name=name, error=error.name, message=_ADVICE.get(error.name, error.name))


_ADVICE = {
    "NON_EMPTY_GROUP": "the group has members; stop its consumers first",
    "UNKNOWN_MEMBER_ID": "the group has members; stop its consumers first",
    "GROUP_ID_NOT_FOUND": "the group does not exist",
    "GROUP_SUBSCRIBED_TO_TOPIC": "the group reads this topic; stop its consumers first",
}
