"""The subscribed topics of a group that exist: for assignors, and as a hash."""

from collections.abc import Iterable, Mapping
from struct import Struct

from headrace.groups.assignors import TopicSpecification
from headrace.metadata.image import MetadataImage, TopicImage
from headrace.protocol.uuids import Uuid

_LONG = Struct(">q")


def topic_specifications(
    names: Iterable[str], image: MetadataImage
) -> dict[Uuid, TopicSpecification]:
    """Return the existing topics as input of an assignor."""
    racks = _racks(image)
    found = (image.topics[name] for name in names if name in image.topics)
    return {
        topic.id: TopicSpecification(len(topic.partitions), _partition_racks(topic, racks))
        for topic in found
    }


def metadata_hash(names: Iterable[str], image: MetadataImage) -> int:
    """Return a number that changes with the topics of a group; 0 for no topics.

    Kafka uses another algorithm: a coordinator that takes over a group of Kafka finds another
    number, and computes the assignment once more.
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
