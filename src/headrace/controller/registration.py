"""How brokers and controllers join the cluster, start to serve, stop, and are forgotten.

A broker registers fenced, with a new incarnation id for every process. Its epoch is the offset
at which the controller would write next, so a later incarnation always has a higher one. It is
unfenced when it has read its logs, and fenced again when it stops.
"""

from collections.abc import Mapping, Sequence

import msgspec

from headrace.controller.decision import ClusterDefaults, Decision
from headrace.controller.leadership import Leadership, arrive, leave, retire
from headrace.errors import (
    BrokerIdNotRegistered,
    InvalidRegistration,
    StaleBrokerEpoch,
    UnsupportedVersion,
)
from headrace.metadata.features import (
    METADATA_VERSION,
    SUPPORTED,
    VersionRange,
    has_controller_registration,
    has_cordoned_directories,
    has_directories,
    register_broker_version,
)
from headrace.metadata.image import (
    BrokerImage,
    ControllerImage,
    Endpoint,
    MetadataImage,
)
from headrace.metadata.image_records import broker_record, controller_record
from headrace.metadata.records import VersionedRecord
from headrace.protocol.schemas.records.metadata import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    UnregisterBrokerRecord,
)
from headrace.protocol.uuids import Uuid, is_reserved, to_text

FENCE = 1
UNFENCE = -1
IN_CONTROLLED_SHUTDOWN = 1


class BrokerIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """A broker as it introduces itself."""

    broker_id: int
    incarnation_id: Uuid
    endpoints: Sequence[Endpoint]
    directories: Sequence[Uuid]
    rack: str | None = None
    features: Mapping[str, VersionRange] = SUPPORTED
    previous_broker_epoch: int = -1
    """The epoch that the last clean stop left behind; anything else means a crash."""


class ControllerIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """A controller as it introduces itself."""

    controller_id: int
    incarnation_id: Uuid
    endpoints: Sequence[Endpoint]
    features: Mapping[str, VersionRange] = SUPPORTED


def register_broker(
    image: MetadataImage, broker: BrokerIdentity, next_offset: int, defaults: ClusterDefaults
) -> Decision[int]:
    """Register a new incarnation of a broker, or amend the present one; replies its epoch."""
    _check_directories(image, broker)
    if METADATA_VERSION not in broker.features:
        raise InvalidRegistration(f"a broker must say which levels of {METADATA_VERSION} it speaks")
    check_features(image, broker.features)
    present = image.brokers.get(broker.broker_id)
    records: list[VersionedRecord] = []
    epoch, fenced, in_controlled_shutdown = next_offset, True, False
    if present is not None and present.incarnation_id == broker.incarnation_id:
        epoch = present.epoch
        fenced, in_controlled_shutdown = present.fenced, present.in_controlled_shutdown
    elif present is not None:
        crashed = broker.previous_broker_epoch != present.epoch
        records = leave(image, broker.broker_id, defaults, unclean=crashed, new_term=crashed)
    registered = BrokerImage(
        id=broker.broker_id,
        epoch=epoch,
        incarnation_id=broker.incarnation_id,
        endpoints=tuple(broker.endpoints),
        features=broker.features,
        rack=broker.rack,
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
        directories=tuple(broker.directories),
    )
    level = image.metadata_version
    records.append(
        VersionedRecord(broker_record(registered, level), register_broker_version(level))
    )
    return Decision(records, epoch)


def register_controller(image: MetadataImage, controller: ControllerIdentity) -> Decision[None]:
    """Make a controller known by name, so that admin tools which talk to it can find it."""
    if not has_controller_registration(image.metadata_version):
        return Decision((), None)
    registered = ControllerImage(
        id=controller.controller_id,
        incarnation_id=controller.incarnation_id,
        endpoints=tuple(controller.endpoints),
        features=controller.features,
    )
    return Decision((VersionedRecord(controller_record(registered)),), None)


def unfence_broker(
    image: MetadataImage, broker_id: int, broker_epoch: int, defaults: ClusterDefaults
) -> Decision[None]:
    """Let a broker that has loaded its logs lead and serve."""
    broker = _registered(image, broker_id, broker_epoch)
    records: list[VersionedRecord] = []
    if has_cordoned_directories(image.metadata_version) and broker.cordoned_directories is None:
        # From this level on a broker says which directories take no new replicas: none.
        records.append(_change(broker, version=3, cordoned_log_dirs=[]))
    if broker.fenced:
        records.append(_change(broker, fenced=UNFENCE))
        records.extend(arrive(image, broker, defaults))
    return Decision(records, None)


def shut_down_broker(
    image: MetadataImage, broker_id: int, broker_epoch: int, defaults: ClusterDefaults
) -> Decision[None]:
    """Let a broker leave in order: hand over what others can lead, then fence it.

    Fenced in the log means that the next start, ours or Kafka's, finds no session to wait for.
    """
    broker = _registered(image, broker_id, broker_epoch)
    if broker.fenced:
        return Decision((), None)
    records = [
        _change(broker, version=1, in_controlled_shutdown=IN_CONTROLLED_SHUTDOWN),
        *leave(image, broker_id, defaults),
        _change(broker, fenced=FENCE),
    ]
    return Decision(records, None)


def unregister_broker(
    image: MetadataImage, broker_id: int, defaults: ClusterDefaults
) -> Decision[None]:
    """Forget a broker for good. Replicas on it stay in replica lists until they are reassigned."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise BrokerIdNotRegistered(f"broker {broker_id} is not registered")
    records = retire(image, broker_id, defaults)
    records.append(VersionedRecord(UnregisterBrokerRecord(broker_id, broker.epoch)))
    return Decision(records, None)


def take_directories_offline(
    image: MetadataImage,
    broker_id: int,
    broker_epoch: int,
    offline: Sequence[Uuid],
    defaults: ClusterDefaults,
) -> Decision[None]:
    """Move leaderships off log directories that have failed; the broker serves from the others."""
    broker = _registered(image, broker_id, broker_epoch)
    online = tuple(one for one in broker.directories if one not in offline)
    if online == broker.directories or not has_directories(image.metadata_version):
        return Decision((), None)
    rules = Leadership(image, defaults, leaving=broker_id)
    changes = [
        rules.change(topic, index, isr=tuple(one for one in partition.isr if one != broker_id))
        for topic, index, partition in image.partitions()
        if broker_id in partition.isr and partition.directory_of(broker_id) in offline
    ]
    records = rules.versioned(change.record() for change in changes)
    records.append(_change(broker, version=2, log_dirs=list(online)))
    return Decision(records, None)


def assign_directories(
    image: MetadataImage, broker_id: int, assigned: Mapping[tuple[Uuid, int], Uuid]
) -> Decision[None]:
    """Note in which log directory a broker keeps replicas, by (topic id, partition)."""
    rules = Leadership(image, ClusterDefaults())
    changes = []
    for (topic_id, index), directory in assigned.items():
        topic = image.topics_by_id.get(topic_id)
        if topic is None or index >= len(topic.partitions):
            continue  # Deleted meanwhile.
        partition = topic.partitions[index]
        if partition.directory_of(broker_id) in (None, directory):
            continue
        directories = list(partition.directories)
        directories[partition.replicas.index(broker_id)] = directory
        changes.append(
            PartitionChangeRecord(partition_id=index, topic_id=topic_id, directories=directories)
        )
    return Decision(rules.versioned(changes), None)


def _change(
    broker: BrokerImage,
    *,
    version: int = 0,
    fenced: int = 0,
    in_controlled_shutdown: int = 0,
    log_dirs: Sequence[Uuid] = (),
    cordoned_log_dirs: list[Uuid] | None = None,
) -> VersionedRecord:
    """A change of a registration, in the lowest version that has room for it."""
    record = BrokerRegistrationChangeRecord(
        broker_id=broker.id,
        broker_epoch=broker.epoch,
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
        log_dirs=list(log_dirs),
        cordoned_log_dirs=cordoned_log_dirs,
    )
    return VersionedRecord(record, version)


def _registered(image: MetadataImage, broker_id: int, broker_epoch: int) -> BrokerImage:
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise BrokerIdNotRegistered(f"broker {broker_id} is not registered")
    if broker.epoch != broker_epoch:
        raise StaleBrokerEpoch(
            f"broker {broker_id} is registered with epoch {broker.epoch}, not {broker_epoch}"
        )
    return broker


def _check_directories(image: MetadataImage, broker: BrokerIdentity) -> None:
    if not has_directories(image.metadata_version):
        return
    if not broker.directories:
        raise InvalidRegistration(f"broker {broker.broker_id} has no log directory")
    if len(set(broker.directories)) != len(broker.directories):
        raise InvalidRegistration("two log directories have the same directory.id")
    owners = {
        directory: other.id
        for other in image.brokers.values()
        if other.id != broker.broker_id
        for directory in other.directories
    }
    for directory in broker.directories:
        if is_reserved(directory):
            raise InvalidRegistration(f"directory id {to_text(directory)} is reserved")
        if directory in owners:
            raise InvalidRegistration(
                f"log directory {to_text(directory)} belongs to broker {owners[directory]}"
            )


def check_features(image: MetadataImage, supported: Mapping[str, VersionRange]) -> None:
    """Raise unless a node of these abilities can work at the levels that the cluster has."""
    for feature, level in image.features.items():
        levels = supported.get(feature, VersionRange(0, 0))
        if not levels.covers(level):
            raise UnsupportedVersion(
                f"the cluster runs {feature} at level {level}, and this broker supports "
                f"{levels.min_version} to {levels.max_version}"
            )
