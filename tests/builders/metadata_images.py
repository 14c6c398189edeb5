"""Metadata images for tests, made the way a node makes them: by replaying records."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from headrace.controller.decision import Decision
from headrace.metadata.delta import ImageDelta
from headrace.metadata.features import DEFAULT_LEVELS, SUPPORTED
from headrace.metadata.image import EMPTY, MetadataImage, ResourceType
from headrace.metadata.image_records import feature_records
from headrace.protocol.message import Message
from headrace.protocol.schemas.records.metadata import (
    BrokerEndpoint,
    BrokerFeature,
    ConfigRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from headrace.protocol.uuids import Uuid

T = TypeVar("T")

KAFKA_LEVELS: Mapping[str, int] = {
    "metadata.version": 30,
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}
"""What Kafka 4.3 gives a new cluster."""


def image_with(
    *,
    brokers: Iterable[int] = (1,),
    fenced: Sequence[int] = (),
    topics: Mapping[str, int] | None = None,
    configs: Mapping[str, Mapping[str, str]] | None = None,
    levels: Mapping[str, int] = DEFAULT_LEVELS,
    replicas: Sequence[int] = (1,),
) -> MetadataImage:
    """Brokers, topics by number of partitions, and topic configs."""
    records: list[Message] = feature_records(levels)
    records += [registered(broker, fenced=broker in fenced) for broker in brokers]
    for name, partitions in (topics or {}).items():
        records.append(TopicRecord(name, topic_id(name)))
        records += [partition(name, index, replicas=replicas) for index in range(partitions)]
    for name, values in (configs or {}).items():
        records += [ConfigRecord(ResourceType.TOPIC, name, key, values[key]) for key in values]
    return replayed(EMPTY, records)


def registered(broker_id: int, *, fenced: bool = False, **fields: object) -> RegisterBrokerRecord:
    record = RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=bytes(15) + bytes([broker_id]),
        broker_epoch=100 + broker_id,
        end_points=[BrokerEndpoint("PLAINTEXT", f"host{broker_id}", 9092, 0)],
        features=[BrokerFeature(name, *levels) for name, levels in SUPPORTED.items()],
        rack=None,
        fenced=fenced,
        log_dirs=[directory_id(broker_id)],
    )
    for name, value in fields.items():
        setattr(record, name, value)
    return record


def partition(topic: str, index: int, *, replicas: Sequence[int] = (1,)) -> PartitionRecord:
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id(topic),
        replicas=list(replicas),
        isr=list(replicas),
        leader=replicas[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=[directory_id(replica) for replica in replicas],
    )


def with_partition(image: MetadataImage, topic: str, index: int, **state: Any) -> MetadataImage:
    """The image with a partition in another state: its ISR, leader, epochs and so on."""
    partition = replace(
        image.topics[topic].partitions[index],
        **{name: tuple(one) if isinstance(one, list) else one for name, one in state.items()},
    )
    partitions = list(image.topics[topic].partitions)
    partitions[index] = partition
    changed = replace(image.topics[topic], partitions=tuple(partitions))
    return replace(
        image,
        topics={**image.topics, topic: changed},
        topics_by_id={**image.topics_by_id, changed.id: changed},
    )


def topic_id(name: str) -> Uuid:
    return name.encode().rjust(16, b"#")[-16:]


def directory_id(broker_id: int) -> Uuid:
    return b"directory" + bytes(6) + bytes([broker_id])


def replayed(image: MetadataImage, records: Iterable[Message]) -> MetadataImage:
    delta = ImageDelta(image)
    offset = image.offset
    for record in records:
        delta.replay(record)
        offset += 1
    return delta.image(offset, 1, 1_700_000_000_000)


def applied(image: MetadataImage, decision: Decision[T]) -> MetadataImage:
    """The image once a decision's records are committed."""
    return replayed(image, [record.message for record in decision.records])
