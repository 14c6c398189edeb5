"""What a group's subscriptions mean for the topics that there are."""

from collections.abc import Iterable, Mapping, Set
from struct import Struct

from headrace.groups.assignors import TopicSpecification
from headrace.groups.consumer_members import Member, ResolvedRegex
from headrace.groups.regular_expressions import compiled
from headrace.metadata.image import MetadataImage, TopicImage
from headrace.protocol.uuids import Uuid

_LONG = Struct(">q")


def wanted_names(member: Member, regexes: Mapping[str, ResolvedRegex]) -> Set[str]:
    """The topics that a member wants, by name and by pattern."""
    resolved = regexes.get(member.topic_regex) if member.topic_regex else None
    return member.topic_names if resolved is None else member.topic_names | resolved.topics


def wanted_ids(
    member: Member, regexes: Mapping[str, ResolvedRegex], image: MetadataImage
) -> frozenset[Uuid]:
    """The topics that a member wants and that exist."""
    topics = image.topics
    return frozenset(topics[one].id for one in wanted_names(member, regexes) if one in topics)


def resolve(pattern: str, image: MetadataImage, now_ms: int) -> ResolvedRegex:
    """The topics whose whole name a pattern matches."""
    matches = compiled(pattern).matches
    topics = frozenset(name for name in image.topics if matches(name))
    return ResolvedRegex(topics, version=image.offset, timestamp_ms=now_ms)


def topic_specifications(
    names: Iterable[str], image: MetadataImage
) -> dict[Uuid, TopicSpecification]:
    """The topics as an assignor sees them."""
    racks = _racks(image)
    found = (image.topics[name] for name in names if name in image.topics)
    return {
        topic.id: TopicSpecification(len(topic.partitions), _partition_racks(topic, racks))
        for topic in found
    }


def metadata_hash(names: Iterable[str], image: MetadataImage) -> int:
    """A number that changes when the topics of a group do, 0 if there are none.

    Kafka's algorithm is another one; whoever takes a group over finds a number that is not its
    own, and computes the assignment once more.
    """
    from hashlib import blake2b

    racks = _racks(image)
    digest = blake2b(digest_size=8)
    count = 0
    for name in sorted(names):
        topic = image.topics.get(name)
        if topic is not None:
            count += 1
            digest.update(b"%b %d " % (topic.id, len(topic.partitions)))
            for found in _partition_racks(topic, racks):
                digest.update(b",".join(rack.encode() for rack in sorted(found)) + b";")
    value: int = _LONG.unpack(digest.digest())[0]
    return value if count else 0


def _racks(image: MetadataImage) -> dict[int, str]:
    return {one.id: one.rack for one in image.brokers.values() if one.rack is not None}


def _partition_racks(topic: TopicImage, racks: Mapping[int, str]) -> tuple[frozenset[str], ...]:
    if not racks:
        return ()
    return tuple(
        frozenset(racks[one] for one in partition.replicas if one in racks)
        for partition in topic.partitions
    )
