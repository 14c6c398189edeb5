"""Groups as values: listed, described, and how far they are behind."""

import msgspec

from headrace.client.descriptions import Outcome
from headrace.errors import error_for


class ListedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A group as its coordinator lists it; old brokers know neither state nor type."""

    group: str
    type: str
    state: str
    protocol_type: str
    coordinator: int


class GroupMember(msgspec.Struct, frozen=True, kw_only=True):
    """A member and what it reads."""

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
    """How far a group is behind in one partition; None where nobody can say."""

    topic: str
    partition: int
    committed: int | None
    end: int | None
    lag: int | None
    lag_seconds: float | None
    metadata: str = ""


def outcome(name: str, code: int) -> Outcome:
    """How a change went, with what to do about it if it did not."""
    if not code:
        return Outcome(name=name)
    error = error_for(code)
    return Outcome(name=name, error=error.name, message=_ADVICE.get(error.name, error.name))


_ADVICE = {
    "NON_EMPTY_GROUP": "the group has members; stop its consumers first",
    "UNKNOWN_MEMBER_ID": "the group has members; stop its consumers first",
    "GROUP_ID_NOT_FOUND": "there is no such group",
    "GROUP_SUBSCRIBED_TO_TOPIC": "the group reads this topic; stop its consumers first",
}
