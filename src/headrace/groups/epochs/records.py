"""The records of a group with epochs: five types that each kind of group has under its own number.

The schemas of all kinds are named alike, and a member's fields are listed once, as `Field`s. A kind
adds the form of its assignments; types of records that only one kind has are in its own module.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import msgspec

from headrace.groups.assignors import Assignment
from headrace.groups.epochs.members import LEAVING, EpochMember, MemberState
from headrace.protocol.coordinator_records import CoordinatorRecord, encode_record
from headrace.protocol.message import Message
from headrace.protocol.schemas.records import groups as schemas

M = TypeVar("M", bound=EpochMember)
T = TypeVar("T")


class EpochTypes(NamedTuple):
    """The types of the five keys, or of the five values; keys of members have a `member_id`."""

    member: type[Any]
    current: type[Any]
    target: type[Any]
    target_epoch: type[Any]
    group: type[Any]

    @classmethod
    def of(cls, kind: str, ending: str) -> "EpochTypes":
        names = (
            *("MemberMetadata", "CurrentMemberAssignment", "TargetAssignmentMember"),
            *("TargetAssignmentMetadata", "Metadata"),
        )
        return cls(*(getattr(schemas, f"{kind}Group{name}{ending}") for name in names))


def _same(value: Any) -> Any:
    return value


class Field(NamedTuple):
    """A field of a member and of its record, which may have another name and form there."""

    name: str
    record_name: str = ""
    write: Callable[[Any], Any] = _same
    read: Callable[[Any], Any] = _same


CLIENT = (Field("rack_id"), Field("client_id"), Field("client_host"))
TOPIC_NAMES = Field("topic_names", "subscribed_topic_names", sorted, frozenset)


def written(member: Any, fields: Iterable[Field]) -> dict[str, Any]:
    """Return the fields of a member as keywords of a record or of a response."""
    return {one.record_name or one.name: one.write(getattr(member, one.name)) for one in fields}


class EpochRecords(ABC, Generic[M, T]):
    """Translates between the state of one kind of group and its records."""

    kind: ClassVar[str]
    """The prefix of the names of the kind's schemas."""
    member_type: ClassVar[type[Any]]
    description: ClassVar[Sequence[Field]]
    """The fields of a member's own record."""
    assignment: ClassVar[Sequence[str]]
    """The fields of a member that its current-assignment record has, besides epochs and state."""
    state_numbers: ClassVar[Mapping[MemberState, int]] = {one: one.value for one in MemberState}

    def __init__(self) -> None:
        self.keys = EpochTypes.of(self.kind, "Key")
        self._values = EpochTypes.of(self.kind, "Value")
        self._states = {number: state for state, number in self.state_numbers.items()}
        new = self.member_type("")
        self._no_assignment = {name: getattr(new, name) for name in self.assignment}

    # Writing.

    def member(self, group_id: str, member: M) -> CoordinatorRecord:
        """The description and the subscription of a member."""
        key = self.keys.member(group_id=group_id, member_id=member.id)
        return encode_record(key, self._values.member(**written(member, self.description)))

    def current(self, group_id: str, member: M) -> CoordinatorRecord:
        """The epoch, the state and the current assignment of a member."""
        value = self._values.current(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=self.state_numbers[member.state],
            **self.assignment_written(member),
        )
        return encode_record(self.keys.current(group_id=group_id, member_id=member.id), value)

    def target(self, group_id: str, member_id: str, target: T) -> CoordinatorRecord:
        """The target assignment of a member."""
        key = self.keys.target(group_id=group_id, member_id=member_id)
        return encode_record(key, self._values.target(**self.target_written(target)))

    def target_epoch(self, group_id: str, epoch: int, now_ms: int) -> CoordinatorRecord:
        """The group epoch that the target assignment was computed for, and when."""
        value = self._values.target_epoch(assignment_epoch=epoch, assignment_timestamp=now_ms)
        return encode_record(self.keys.target_epoch(group_id=group_id), value)

    def group(
        self, group_id: str, epoch: int, metadata_hash: int, **fields: Any
    ) -> CoordinatorRecord:
        """The group epoch, and the hash of the group's topics in that epoch."""
        value = self._values.group(epoch=epoch, metadata_hash=metadata_hash, **fields)
        return encode_record(self.keys.group(group_id=group_id), value)

    def no_member(self, group_id: str, member_id: str) -> Iterator[CoordinatorRecord]:
        """Tombstones for a member; the member's own record goes last."""
        for key in (self.keys.current, self.keys.target, self.keys.member):
            yield tombstone(key(group_id=group_id, member_id=member_id))

    def no_members(self, group_id: str, member_ids: Iterable[str]) -> Iterator[CoordinatorRecord]:
        """Tombstones for all members and the target, in the order that Kafka's replay requires."""
        ids = list(member_ids)
        for key in (self.keys.current, self.keys.target):
            for one in ids:
                yield tombstone(key(group_id=group_id, member_id=one))
        yield tombstone(self.keys.target_epoch(group_id=group_id))
        for one in ids:
            yield tombstone(self.keys.member(group_id=group_id, member_id=one))

    @abstractmethod
    def assignment_written(self, member: M) -> dict[str, Any]:
        """The current assignment of a member, as fields of its record."""

    @abstractmethod
    def target_written(self, target: T) -> dict[str, Any]:
        """A target assignment, as fields of its record."""

    # Reading. A value is of the type that belongs to its key.

    def with_description(self, member: M, value: Any) -> M:
        """The member as the value of its member record describes it."""
        found = {
            one.name: one.read(getattr(value, one.record_name or one.name))
            for one in self.description
        }
        return msgspec.structs.replace(member, **found)

    def with_assignment(self, member: M, value: Any) -> M:
        """The member with the epochs and the assignment of its current-assignment record."""
        return msgspec.structs.replace(
            member,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=self._states.get(value.state, MemberState.UNKNOWN),
            **self.assignment_read(value),
        )

    def without_assignment(self, member: M) -> M:
        """The member after the tombstone of its current assignment."""
        return msgspec.structs.replace(
            member, epoch=LEAVING, previous_epoch=LEAVING, **self._no_assignment
        )

    @abstractmethod
    def assignment_read(self, value: Any) -> dict[str, Any]:
        """The current assignment in a record, as fields of a member."""

    @abstractmethod
    def target_of(self, value: Any) -> T:
        """The target assignment in the value of a target record."""


def rows_of(row: Callable[..., Any], assignment: Assignment) -> list[Any]:
    """Return the partitions of an assignment as rows of a record or of a response."""
    return [row(topic_id, sorted(numbers)) for topic_id, numbers in assignment.items()]


def assignment_in(rows: Iterable[Any]) -> Assignment:
    """Return the assignment in the rows of a record."""
    return {one.topic_id: frozenset(one.partitions) for one in rows}


def tombstone(key: Message) -> CoordinatorRecord:
    """Return the record that deletes a key."""
    return encode_record(key, None)
