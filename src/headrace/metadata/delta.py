"""Replay of metadata records: the only code that changes an image, live and on load.

A delta collects the changes of any number of records to an image and then builds the next image.
It copies a mapping only if the mapping changed. A whole log is loaded through one delta, so
thousands of topics cost one copy.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from headrace.metadata.features import VersionRange
from headrace.metadata.image import (
    BrokerImage,
    ConfigResource,
    ControllerImage,
    Endpoint,
    Entity,
    MetadataImage,
    ResourceType,
    TopicImage,
)
from headrace.metadata.records import UnreplayableRecord
from headrace.metadata.topics_delta import TopicsDelta
from headrace.protocol.message import Message
from headrace.protocol.schemas.records import metadata as schemas
from headrace.protocol.uuids import Uuid

K = TypeVar("K")
V = TypeVar("V")


class Edits(Generic[K, V]):
    """Changes of a mapping; the base itself stays as it is."""

    __slots__ = ("base", "changed")

    def __init__(self, base: Mapping[K, V]) -> None:
        self.base = base
        self.changed: dict[K, V | None] = {}

    def get(self, key: K) -> V | None:
        return self.changed[key] if key in self.changed else self.base.get(key)

    def put(self, key: K, value: V) -> None:
        self.changed[key] = value

    def remove(self, key: K) -> None:
        self.changed[key] = None

    def result(self) -> Mapping[K, V]:
        if not self.changed:
            return self.base
        merged: dict[K, V] = dict(self.base)
        for key, value in self.changed.items():
            if value is None:
                merged.pop(key, None)
            else:
                merged[key] = value
        return merged


class ImageDelta:
    """The changes since an image."""

    __slots__ = (
        "acls",
        "base",
        "brokers",
        "client_quotas",
        "configs",
        "controllers",
        "delegation_tokens",
        "features",
        "next_producer_id",
        "scram_credentials",
        "topics",
    )

    def __init__(self, base: MetadataImage) -> None:
        self.base = base
        self.topics = TopicsDelta(base)
        self.configs = Edits(base.configs)
        self.brokers = Edits(base.brokers)
        self.controllers = Edits(base.controllers)
        self.features = Edits(base.features)
        self.client_quotas = Edits(base.client_quotas)
        self.acls = Edits(base.acls)
        self.scram_credentials = Edits(base.scram_credentials)
        self.delegation_tokens = Edits(base.delegation_tokens)
        self.next_producer_id = base.next_producer_id

    @classmethod
    def replacing(cls, base: MetadataImage) -> "ImageDelta":
        """Return a delta that removes all of the base: a snapshot is replayed into it."""
        delta = cls(base)
        delta.topics.remove_all()
        edits: tuple[Edits[Any, Any], ...] = (
            delta.configs,
            delta.brokers,
            delta.controllers,
            delta.features,
            delta.client_quotas,
            delta.acls,
            delta.scram_credentials,
            delta.delegation_tokens,
        )
        for one in edits:
            one.changed = dict.fromkeys(one.base)
        return delta

    def replay(self, record: Message) -> None:
        """Apply one committed record."""
        replay = _REPLAY.get(type(record))
        if replay is None:
            raise UnreplayableRecord(f"{type(record).__name__} is not a record of metadata")
        replay(self, record)

    def image(self, offset: int, epoch: int, timestamp_ms: int) -> MetadataImage:
        """Return the image after all replayed records; `offset` is that of the last one."""
        topics, topics_by_id = self.topics.result()
        return MetadataImage(
            topics=topics,
            topics_by_id=topics_by_id,
            configs=self.configs.result(),
            brokers=self.brokers.result(),
            controllers=self.controllers.result(),
            features=self.features.result(),
            next_producer_id=self.next_producer_id,
            client_quotas=self.client_quotas.result(),
            acls=self.acls.result(),
            scram_credentials=self.scram_credentials.result(),
            delegation_tokens=self.delegation_tokens.result(),
            offset=offset,
            epoch=epoch,
            timestamp_ms=timestamp_ms,
        )

    @property
    def topics_created(self) -> list[Uuid]:
        """The ids of topics that the base did not have."""
        return self.topics.created

    @property
    def topics_changed(self) -> list[Uuid]:
        """The ids of topics that have other, or more, partitions than in the base."""
        return self.topics.changed

    @property
    def topics_deleted(self) -> list[TopicImage]:
        """The topics of the base that are gone, as they were."""
        return self.topics.deleted

    @property
    def configs_changed(self) -> list[ConfigResource]:
        """The resources whose configs were set or removed, even to the value they had."""
        return list(self.configs.changed)

    def _remove_topic(self, record: schemas.RemoveTopicRecord) -> None:
        name = self.topics.remove(record)
        self.configs.remove(ConfigResource(ResourceType.TOPIC, name))

    # Nodes.

    def _register_broker(self, record: schemas.RegisterBrokerRecord) -> None:
        cordoned = record.cordoned_log_dirs
        broker = BrokerImage(
            id=record.broker_id,
            epoch=record.broker_epoch,
            incarnation_id=record.incarnation_id,
            endpoints=_endpoints(record.end_points),
            features=_features(record.features),
            rack=record.rack,
            fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            directories=tuple(record.log_dirs),
            cordoned_directories=None if cordoned is None else tuple(cordoned),
        )
        self.brokers.put(broker.id, broker)

    def _unregister_broker(self, record: schemas.UnregisterBrokerRecord) -> None:
        self._registered(record.broker_id, record.broker_epoch)
        self.brokers.remove(record.broker_id)

    def _change_broker(self, record: schemas.BrokerRegistrationChangeRecord) -> None:
        broker = self._registered(record.broker_id, record.broker_epoch)
        cordoned = record.cordoned_log_dirs
        self._put_broker(
            broker,
            fenced=broker.fenced if record.fenced == 0 else record.fenced == 1,
            in_controlled_shutdown=broker.in_controlled_shutdown
            or record.in_controlled_shutdown == 1,
            directories=tuple(record.log_dirs) or broker.directories,
            cordoned_directories=broker.cordoned_directories
            if cordoned is None
            else tuple(cordoned),
        )

    def _fence_broker(self, record: schemas.FenceBrokerRecord) -> None:
        self._put_broker(self._registered(record.id, record.epoch), fenced=True)

    def _unfence_broker(self, record: schemas.UnfenceBrokerRecord) -> None:
        self._put_broker(self._registered(record.id, record.epoch), fenced=False)

    def _registered(self, broker_id: int, epoch: int) -> BrokerImage:
        broker = self.brokers.get(broker_id)
        if broker is None:
            raise UnreplayableRecord(f"a record is about broker {broker_id}, never registered")
        if broker.epoch != epoch:
            raise UnreplayableRecord(
                f"a record is about epoch {epoch} of broker {broker_id}, which is at {broker.epoch}"
            )
        return broker

    def _put_broker(self, broker: BrokerImage, **changes: Any) -> None:
        from msgspec.structs import replace

        self.brokers.put(broker.id, replace(broker, **changes))

    def _register_controller(self, record: schemas.RegisterControllerRecord) -> None:
        controller = ControllerImage(
            id=record.controller_id,
            incarnation_id=record.incarnation_id,
            endpoints=_endpoints(record.end_points),
            features=_features(record.features),
            zk_migration_ready=record.zk_migration_ready,
        )
        self.controllers.put(controller.id, controller)

    # Everything else.

    def _set_config(self, record: schemas.ConfigRecord) -> None:
        resource = ConfigResource(record.resource_type, record.resource_name)
        configs = self._edit(self.configs, resource)
        if record.value is None:
            configs.pop(record.name, None)
        else:
            configs[record.name] = record.value
        if not configs:
            self.configs.remove(resource)

    def _set_feature(self, record: schemas.FeatureLevelRecord) -> None:
        if record.feature_level == 0:
            self.features.remove(record.name)
        else:
            self.features.put(record.name, record.feature_level)

    def _set_quota(self, record: schemas.ClientQuotaRecord) -> None:
        entity: Entity = tuple(
            sorted((part.entity_type, part.entity_name) for part in record.entity)
        )
        quotas = self._edit(self.client_quotas, entity)
        if record.remove:
            quotas.pop(record.key, None)
        else:
            quotas[record.key] = record.value
        if not quotas:
            self.client_quotas.remove(entity)

    def _edit(self, owners: Edits[K, Mapping[str, V]], owner: K) -> dict[str, V]:
        """Return the values of one owner, copied from the base at the first change."""
        own = owners.changed.get(owner)
        if not isinstance(own, dict):
            own = dict(owners.get(owner) or {})
            owners.put(owner, own)
        return own

    def _set_producer_ids(self, record: schemas.ProducerIdsRecord) -> None:
        self.next_producer_id = record.next_producer_id

    def _put_acl(self, record: schemas.AccessControlEntryRecord) -> None:
        self.acls.put(record.id, record)

    def _remove_acl(self, record: schemas.RemoveAccessControlEntryRecord) -> None:
        self.acls.remove(record.id)

    def _put_scram_credential(self, record: schemas.UserScramCredentialRecord) -> None:
        self.scram_credentials.put((record.mechanism, record.name), record)

    def _remove_scram_credential(self, record: schemas.RemoveUserScramCredentialRecord) -> None:
        self.scram_credentials.remove((record.mechanism, record.name))

    def _put_delegation_token(self, record: schemas.DelegationTokenRecord) -> None:
        self.delegation_tokens.put(record.token_id, record)

    def _remove_delegation_token(self, record: schemas.RemoveDelegationTokenRecord) -> None:
        self.delegation_tokens.remove(record.token_id)

    def _ignore(self, record: schemas.NoOpRecord | schemas.ZkMigrationStateRecord) -> None:
        """Ignore a record: NoOp, or the state of a migration that is long over."""


def _endpoints(records: Iterable[Any]) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(one.name, one.host, one.port, one.security_protocol) for one in records)


def _features(records: Iterable[Any]) -> Mapping[str, VersionRange]:
    return {
        one.name: VersionRange(one.min_supported_version, one.max_supported_version)
        for one in records
    }


_REPLAY: dict[type[Message], Callable[[ImageDelta, Any], None]] = {
    schemas.TopicRecord: lambda delta, record: delta.topics.add(record),
    schemas.RemoveTopicRecord: ImageDelta._remove_topic,
    schemas.PartitionRecord: lambda delta, record: delta.topics.put_partition(record),
    schemas.PartitionChangeRecord: lambda delta, record: delta.topics.change_partition(record),
    schemas.ClearElrRecord: lambda delta, record: delta.topics.clear_elr(record),
    schemas.RegisterBrokerRecord: ImageDelta._register_broker,
    schemas.UnregisterBrokerRecord: ImageDelta._unregister_broker,
    schemas.BrokerRegistrationChangeRecord: ImageDelta._change_broker,
    schemas.FenceBrokerRecord: ImageDelta._fence_broker,
    schemas.UnfenceBrokerRecord: ImageDelta._unfence_broker,
    schemas.RegisterControllerRecord: ImageDelta._register_controller,
    schemas.ConfigRecord: ImageDelta._set_config,
    schemas.FeatureLevelRecord: ImageDelta._set_feature,
    schemas.ClientQuotaRecord: ImageDelta._set_quota,
    schemas.ProducerIdsRecord: ImageDelta._set_producer_ids,
    schemas.AccessControlEntryRecord: ImageDelta._put_acl,
    schemas.RemoveAccessControlEntryRecord: ImageDelta._remove_acl,
    schemas.UserScramCredentialRecord: ImageDelta._put_scram_credential,
    schemas.RemoveUserScramCredentialRecord: ImageDelta._remove_scram_credential,
    schemas.DelegationTokenRecord: ImageDelta._put_delegation_token,
    schemas.RemoveDelegationTokenRecord: ImageDelta._remove_delegation_token,
    schemas.NoOpRecord: ImageDelta._ignore,
    schemas.ZkMigrationStateRecord: ImageDelta._ignore,
}
