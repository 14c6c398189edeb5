"""The bytes that consumers of the classic protocol exchange through their coordinator.

A version and a message; a reader uses the known part of a newer version. Brokers read these bytes
only since groups can migrate between the protocols (KIP-848).
"""

from collections.abc import Mapping
from struct import Struct

from headrace.groups.assignors import Assignment
from headrace.groups.consumer.records import Owned
from headrace.metadata.image import MetadataImage
from headrace.protocol.codec import DecodeError, encode_into, read
from headrace.protocol.schemas.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)
from headrace.protocol.uuids import Uuid

_VERSION = Struct(">h")


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """A member's subscription and owned partitions."""
    version = _version(data)
    known = min(version, ConsumerProtocolSubscription.VERSIONS[-1])
    return read(ConsumerProtocolSubscription, known, data, _VERSION.size)[0]


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """A leader's assignment for a member."""
    if not data:
        return ConsumerProtocolAssignment()
    known = min(_version(data), ConsumerProtocolAssignment.VERSIONS[-1])
    return read(ConsumerProtocolAssignment, known, data, _VERSION.size)[0]


def write_assignment(owned: Owned, version: int, image: MetadataImage) -> bytes:
    """Partitions as a member of the classic protocol reads them."""
    known = min(max(version, 0), ConsumerProtocolAssignment.VERSIONS[-1])
    out = bytearray(_VERSION.pack(known))
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignmentTopicPartition(
                topic=image.topics_by_id[topic_id].name, partitions=sorted(numbers)
            )
            for topic_id, numbers in owned.items()
            if topic_id in image.topics_by_id
        ]
    )
    encode_into(message, known, out)
    return bytes(out)


def version_of(data: bytes) -> int:
    """The version in which a member wrote its subscription, and can read its assignment."""
    return _version(data)


def assignment_by_id(assignment: ConsumerProtocolAssignment, image: MetadataImage) -> Assignment:
    """A leader's assignment with topics that exist, by their ids."""
    return {
        image.topics[one.topic].id: frozenset(one.partitions)
        for one in assignment.assigned_partitions
        if one.topic in image.topics
    }


def owned_by_id(
    subscription: ConsumerProtocolSubscription, image: MetadataImage
) -> Mapping[Uuid, list[int]]:
    """The partitions that a member owns, by topic id; deleted topics are left out."""
    return {
        image.topics[one.topic].id: one.partitions
        for one in subscription.owned_partitions
        if one.topic in image.topics
    }


def _version(data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise DecodeError("the bytes of a consumer have no version")
    version: int = _VERSION.unpack_from(data)[0]
    if version < 0:
        raise DecodeError(f"the bytes of a consumer have version {version}")
    return version
