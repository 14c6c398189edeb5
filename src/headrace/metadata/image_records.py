"""An image as records: the shortest list that restores it, in Kafka's order.

Records and their versions are those of the cluster's metadata.version, so that any node which reads
the log can read the snapshot.
"""

from collections.abc import Iterator, Mapping

from headrace.metadata.features import (
    METADATA_VERSION,
    has_controller_registration,
    has_cordoned_directories,
    has_directories,
    partition_version,
    register_broker_version,
)
from headrace.metadata.image import (
    BrokerImage,
    ControllerImage,
    Entity,
    MetadataImage,
    PartitionImage,
    TopicImage,
)
from headrace.metadata.records import VersionedRecord
from headrace.protocol.message import Message
from headrace.protocol.schemas.records import metadata as schemas
from headrace.protocol.uuids import Uuid


def image_records(image: MetadataImage) -> Iterator[VersionedRecord]:
    """Yield the records; metadata.version is first, because it decides how to read the others."""
    level = image.metadata_version
    yield from map(VersionedRecord, feature_records(image.features))
    for broker in image.brokers.values():
        yield VersionedRecord(broker_record(broker, level), register_broker_version(level))
    if has_controller_registration(level):
        yield from map(VersionedRecord, map(controller_record, image.controllers.values()))
    for topic in image.topics.values():
        yield from _topic_records(topic, level)
    for resource, configs in image.configs.items():
        for name, value in configs.items():
            yield VersionedRecord(schemas.ConfigRecord(resource.type, resource.name, name, value))
    for entity, quotas in image.client_quotas.items():
        yield from map(VersionedRecord, _quota_records(entity, quotas))
    if image.next_producer_id:
        # The broker that has the last block is no longer known, and not needed.
        yield VersionedRecord(schemas.ProducerIdsRecord(-1, -1, image.next_producer_id))
    yield from map(VersionedRecord, image.acls.values())
    yield from map(VersionedRecord, image.scram_credentials.values())
    yield from map(VersionedRecord, image.delegation_tokens.values())


def feature_records(features: Mapping[str, int]) -> list[Message]:
    others = sorted(name for name in features if name != METADATA_VERSION)
    names = [METADATA_VERSION, *others] if METADATA_VERSION in features else others
    return [schemas.FeatureLevelRecord(name, features[name]) for name in names]


def broker_record(broker: BrokerImage, metadata_version: int) -> schemas.RegisterBrokerRecord:
    """Return the registration of a broker with all later changes."""
    cordoned = broker.cordoned_directories
    has_cordoned = has_cordoned_directories(metadata_version) and cordoned is not None
    return schemas.RegisterBrokerRecord(
        broker_id=broker.id,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=[
            schemas.BrokerEndpoint(one.name, one.host, one.port, one.security_protocol)
            for one in broker.endpoints
        ],
        features=[schemas.BrokerFeature(name, *levels) for name, levels in broker.features.items()],
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=list(broker.directories) if has_directories(metadata_version) else [],
        cordoned_log_dirs=list(cordoned or ()) if has_cordoned else None,
    )


def controller_record(controller: ControllerImage) -> schemas.RegisterControllerRecord:
    return schemas.RegisterControllerRecord(
        controller_id=controller.id,
        incarnation_id=controller.incarnation_id,
        zk_migration_ready=controller.zk_migration_ready,
        end_points=[
            schemas.ControllerEndpoint(one.name, one.host, one.port, one.security_protocol)
            for one in controller.endpoints
        ],
        features=[
            schemas.ControllerFeature(name, *levels) for name, levels in controller.features.items()
        ],
    )


def _topic_records(topic: TopicImage, metadata_version: int) -> Iterator[VersionedRecord]:
    version = partition_version(metadata_version)
    yield VersionedRecord(schemas.TopicRecord(topic.name, topic.id))
    for index, partition in enumerate(topic.partitions):
        yield VersionedRecord(_partition_record(topic.id, index, partition, version), version)


def _partition_record(
    topic_id: Uuid, index: int, partition: PartitionImage, version: int
) -> schemas.PartitionRecord:
    return schemas.PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing),
        adding_replicas=list(partition.adding),
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=list(partition.directories) if version >= 1 else [],
        eligible_leader_replicas=list(partition.elr) if version >= 2 and partition.elr else None,
        last_known_elr=list(partition.last_known_elr)
        if version >= 2 and partition.last_known_elr
        else None,
    )


def _quota_records(entity: Entity, quotas: Mapping[str, float]) -> list[Message]:
    parts = [schemas.EntityData(kind, name) for kind, name in entity]
    return [schemas.ClientQuotaRecord(parts, key, value) for key, value in quotas.items()]
