"""Registration of brokers and controllers: join, unfence, fence, unregister.

A broker registers fenced, with a new incarnation id for every process. Its epoch is the next offset
of the metadata log, so a later incarnation always has a higher epoch. The broker is unfenced when
it has loaded its logs, and fenced again when it stops or is silent for too long.
"""

from collections.abc import Mapping, Sequence

import msgspec

from headrace.controller.decision import ClusterDefaults, Decision
from headrace.controller.leadership import Leadership, arrive, leave, retire
from headrace.errors import (
    BrokerIdNotRegistered,
    DuplicateBrokerRegistration,
    InvalidRegistration,
    StaleBrokerEpoch,
    UnsupportedVersion,
)
from headrace.metadata.features import (
    KRAFT_VERSION,
    METADATA_VERSION,
    SUPPORTED,
    VersionRange,
    has_controlled_shutdown,
    has_controller_registration,
    has_cordoned_directories,
    has_directories,
    register_broker_version,
)
from headrace.metadata.image import BrokerImage, ControllerImage, Endpoint, MetadataImage
from headrace.metadata.image_records import broker_record, controller_record
from headrace.metadata.records import VersionedRecord
from headrace.protocol.schemas.records.metadata import (
    BrokerRegistrationChangeRecord,
    UnregisterBrokerRecord,
)
from headrace.protocol.uuids import Uuid, is_reserved, to_text

FENCE = 1
UNFENCE = -1
IN_CONTROLLED_SHUTDOWN = 1


class BrokerIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that a broker registers with."""

    broker_id: int
    incarnation_id: Uuid
    endpoints: Sequence[Endpoint]
    directories: Sequence[Uuid]
    rack: str | None = None
    features: Mapping[str, VersionRange] = SUPPORTED
    previous_broker_epoch: int = -1
    """The epoch that the last clean stop wrote; any other value means a crash."""


class ControllerIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that a controller registers with."""

    controller_id: int
    incarnation_id: Uuid
    endpoints: Sequence[Endpoint]
    features: Mapping[str, VersionRange] = SUPPORTED


def register_broker(
    image: MetadataImage,
    broker: BrokerIdentity,
    next_offset: int,
    defaults: ClusterDefaults,
    *,
    has_live_session: bool = False,
    kraft_version: int = 0,
) -> Decision[int]:
    """Register a new incarnation of a broker, or update the present one; replies its epoch."""
    present = image.brokers.get(broker.broker_id)
    is_same = present is not None and present.incarnation_id == broker.incarnation_id
    if has_live_session and present is not None and not is_same:
        raise DuplicateBrokerRegistration(
            f"broker {broker.broker_id} is registered by another process, which was heard "
            "recently; give each broker a node.id of its own, or wait for the end of its session"
        )
    _check_directories(image, broker)
    if METADATA_VERSION not in broker.features:
        raise InvalidRegistration(f"a broker must register its levels of {METADATA_VERSION}")
    check_features(image, broker.features, kraft_version)
    records: list[VersionedRecord] = []
    epoch, fenced, in_controlled_shutdown = next_offset, True, False
    if present is not None and is_same:
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


def succeeds(image: MetadataImage, successor: BrokerIdentity) -> bool:
    """Return whether a broker registers from the place of the present incarnation.

    A process locks its log directories and claims its ports before it registers, so the earlier
    process on the same directories and addresses has ended.
    """
    present = image.brokers.get(successor.broker_id)
    if present is None:
        return False
    directories = {one for one in present.directories if not is_reserved(one)}
    is_same_place = tuple(successor.endpoints) == tuple(present.endpoints)
    return is_same_place and not directories.isdisjoint(successor.directories)


def register_controller(
    image: MetadataImage, controller: ControllerIdentity, kraft_version: int = 0
) -> Decision[None]:
    """Register a controller, so that admin tools which connect to it can find it."""
    if not has_controller_registration(image.metadata_version):
        return Decision((), None)
    check_features(image, controller.features, kraft_version)
    registered = ControllerImage(
        id=controller.controller_id,
        incarnation_id=controller.incarnation_id,
        endpoints=tuple(controller.endpoints),
        features=controller.features,
    )
    return Decision((VersionedRecord(controller_record(registered)),), None)


def unfence_broker(
    image: MetadataImage, broker: BrokerImage, defaults: ClusterDefaults
) -> list[VersionedRecord]:
    """Let a broker that has loaded its logs lead and serve."""
    return [_change(broker, fenced=UNFENCE), *arrive(image, broker, defaults)]


def fence_broker(
    image: MetadataImage, broker: BrokerImage, defaults: ClusterDefaults
) -> list[VersionedRecord]:
    """Move a broker's leadership to others where possible, and hide the broker from clients."""
    return [*leave(image, broker.id, defaults), _change(broker, fenced=FENCE)]


def begin_shutdown(
    image: MetadataImage, broker: BrokerImage, defaults: ClusterDefaults
) -> list[VersionedRecord]:
    """Move the leadership of a broker that is about to stop, while it still serves."""
    records = leave(image, broker.id, defaults)
    if not has_controlled_shutdown(image.metadata_version):
        return records
    return [_change(broker, version=1, in_controlled_shutdown=IN_CONTROLLED_SHUTDOWN), *records]


def unregister_broker(
    image: MetadataImage, broker_id: int, defaults: ClusterDefaults
) -> Decision[None]:
    """Remove a broker for good. Its replicas stay in replica lists until they are reassigned."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise BrokerIdNotRegistered(f"broker {broker_id} is not registered")
    records = retire(image, broker_id, defaults)
    records.append(VersionedRecord(UnregisterBrokerRecord(broker_id, broker.epoch)))
    return Decision(records, None)


def take_directories_offline(
    image: MetadataImage,
    broker: BrokerImage,
    offline: Sequence[Uuid],
    defaults: ClusterDefaults,
) -> list[VersionedRecord]:
    """Move leadership off failed log directories; the broker serves from the others."""
    online = tuple(one for one in broker.directories if one not in offline)
    if online == broker.directories or not has_directories(image.metadata_version):
        return []
    rules = Leadership(image, defaults, leaving=broker.id)
    changes = [
        rules.change(topic, index, isr=tuple(one for one in partition.isr if one != broker.id))
        for topic, index, partition in image.partitions()
        if broker.id in partition.isr and partition.directory_of(broker.id) in offline
    ]
    records = rules.versioned(change.record() for change in changes)
    if online:  # An empty list changes nothing.
        records.append(_change(broker, version=2, log_dirs=list(online)))
    return records


def cordon_directories(
    image: MetadataImage, broker: BrokerImage, cordoned: Sequence[Uuid] | None
) -> list[VersionedRecord]:
    """Store the directories that get no new replicas; None changes nothing (KIP-1066)."""
    if cordoned is None or not has_cordoned_directories(image.metadata_version):
        return []
    if broker.cordoned_directories == tuple(cordoned):
        return []
    return [_change(broker, version=3, cordoned_log_dirs=list(cordoned))]


def _change(
    broker: BrokerImage,
    *,
    version: int = 0,
    fenced: int = 0,
    in_controlled_shutdown: int = 0,
    log_dirs: Sequence[Uuid] = (),
    cordoned_log_dirs: list[Uuid] | None = None,
) -> VersionedRecord:
    """Return a change of a registration, in the lowest version that has its fields."""
    record = BrokerRegistrationChangeRecord(
        broker_id=broker.id,
        broker_epoch=broker.epoch,
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
        log_dirs=list(log_dirs),
        cordoned_log_dirs=cordoned_log_dirs,
    )
    return VersionedRecord(record, version)


def check_epoch(image: MetadataImage, broker_id: int, broker_epoch: int) -> BrokerImage:
    """Return a registered broker; raise if the request is from another incarnation."""
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


def check_features(
    image: MetadataImage, supported: Mapping[str, VersionRange], kraft_version: int = 0
) -> None:
    """Raise unless a node with these features supports the levels of the cluster."""
    levels = {**image.features, KRAFT_VERSION: kraft_version}
    for feature, level in levels.items():
        versions = supported.get(feature, VersionRange(0, 0))
        if not versions.covers(level):
            raise UnsupportedVersion(
                f"the cluster runs {feature} at level {level}, and this node supports "
                f"{versions.min_version} to {versions.max_version}"
            )
