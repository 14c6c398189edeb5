"""Members of consumer groups, and their records: types 3 to 8 and 16 of `__consumer_offsets`."""

from collections.abc import Mapping
from typing import Any

import msgspec

from headrace.groups.assignors import Assignment
from headrace.groups.epochs.members import EpochMember
from headrace.groups.epochs.records import (
    CLIENT,
    TOPIC_NAMES,
    EpochRecords,
    Field,
    assignment_in,
    rows_of,
    tombstone,
)
from headrace.protocol.coordinator_records import CoordinatorRecord, encode_record
from headrace.protocol.schemas.records import groups as schemas
from headrace.protocol.uuids import Uuid

Owned = Mapping[Uuid, Mapping[int, int]]
"""Partitions by topic, each with the assignment epoch in which its owner got it."""

_NO_PARTITIONS: Owned = {}


class ClassicProtocolSupport(msgspec.Struct, frozen=True):
    """The classic protocol's fields of a member, while its group migrates."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


class Member(EpochMember, frozen=True):
    """A member: its subscription, its partitions, its progress."""

    instance_id: str | None = None
    topic_names: frozenset[str] = frozenset()
    topic_regex: str | None = None
    server_assignor: str | None = None
    assigned: Owned = _NO_PARTITIONS
    pending_revocation: Owned = _NO_PARTITIONS
    classic: ClassicProtocolSupport | None = None

    @property
    def speaks_classic(self) -> bool:
        return self.classic is not None

    @property
    def subscription(self) -> tuple[frozenset[str], str | None]:
        """The topics by name and by pattern; an empty pattern counts as none."""
        return self.topic_names, self.topic_regex or None


class ResolvedRegex(msgspec.Struct, frozen=True):
    """The topics that a pattern matched at one offset of the metadata log."""

    topics: frozenset[str]
    version: int = 0
    timestamp_ms: int = 0


_Row = schemas.ConsumerGroupCurrentMemberAssignmentValueTopicPartitions


def _owned_rows(owned: Owned) -> list[_Row]:
    return [_Row(one, list(epochs), list(epochs.values())) for one, epochs in owned.items()]


def _owned(rows: list[_Row], epoch: int) -> Owned:
    """Read partitions with their epochs; before 4.3 they had none, and the member's applies."""
    owned: dict[Uuid, dict[int, int]] = {}
    for row in rows:
        epochs = row.assignment_epochs or []
        if len(epochs) != len(row.partitions):
            epochs = [max(epoch, 0)] * len(row.partitions)
        owned[row.topic_id] = dict(zip(row.partitions, epochs, strict=True))
    return owned


def _classic_value(
    support: ClassicProtocolSupport | None,
) -> schemas.ClassicMemberMetadata | None:
    if support is None:
        return None
    return schemas.ClassicMemberMetadata(
        session_timeout_ms=support.session_timeout_ms,
        supported_protocols=[
            schemas.ClassicProtocol(name=name, metadata=metadata)
            for name, metadata in support.protocols
        ],
    )


def _classic_of(metadata: schemas.ClassicMemberMetadata | None) -> ClassicProtocolSupport | None:
    if metadata is None or not metadata.supported_protocols:
        return None
    return ClassicProtocolSupport(
        metadata.session_timeout_ms,
        tuple((one.name, bytes(one.metadata)) for one in metadata.supported_protocols),
    )


class ConsumerRecords(EpochRecords[Member, Assignment]):
    """Translates consumer groups."""

    kind = "Consumer"
    member_type = Member
    description = (
        *CLIENT,
        *(Field("instance_id"), Field("rebalance_timeout_ms"), Field("server_assignor")),
        TOPIC_NAMES,
        Field("topic_regex", "subscribed_topic_regex"),
        Field("classic", "classic_member_metadata", _classic_value, _classic_of),
    )
    assignment = ("assigned", "pending_revocation")

    def assignment_written(self, member: Member) -> dict[str, Any]:
        return {
            "assigned_partitions": _owned_rows(member.assigned),
            "partitions_pending_revocation": _owned_rows(member.pending_revocation),
        }

    def assignment_read(
        self, value: schemas.ConsumerGroupCurrentMemberAssignmentValue
    ) -> dict[str, Any]:
        return {
            "assigned": _owned(value.assigned_partitions, value.member_epoch),
            "pending_revocation": _owned(value.partitions_pending_revocation, value.member_epoch),
        }

    def target_written(self, target: Assignment) -> dict[str, Any]:
        row = schemas.ConsumerGroupTargetAssignmentMemberValueTopicPartition
        return {"topic_partitions": rows_of(row, target)}

    def target_of(self, value: schemas.ConsumerGroupTargetAssignmentMemberValue) -> Assignment:
        return assignment_in(value.topic_partitions)


# Records that only consumer groups have.


def regular_expression(group_id: str, regex: str, resolved: ResolvedRegex) -> CoordinatorRecord:
    """The topics that a pattern matched."""
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
    """Delete the record that versions before the metadata hash wrote."""
    return tombstone(schemas.ConsumerGroupPartitionMetadataKey(group_id=group_id))
