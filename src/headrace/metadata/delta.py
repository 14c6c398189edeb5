"""How a record changes the metadata image: the only code that does, live and on load.

A delta collects the changes of any number of records on top of an image and then makes the next
image, copying a mapping only if something in it changed. A whole log is loaded through one delta,
so that thousands of topics cost one copy and not thousands.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from headrace.errors import HeadraceError
from headrace.metadata.features import VersionRange
from headrace.metadata.image import (
    MIGRATING_DIRECTORY,
    BrokerImage,
    ConfigResource,
    ControllerImage,
    Endpoint,
    Entity,
    MetadataImage,
    PartitionImage,
    ResourceType,
    TopicImage,
)
from headrace.protocol.message import Message
from headrace.protocol.schemas.records.metadata import (
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)
from headrace.protocol.uuids import Uuid, to_text

K = TypeVar("K")
V = TypeVar("V")

NO_LEADER_CHANGE = -2
NO_RECOVERY_CHANGE = -1


class UnreplayableRecord(HeadraceError):
    """A record that does not fit what came before it: the log is damaged, or not ours to read."""


class Edits(Generic[K, V]):
    """A mapping being changed: the base stays as it is, and what was touched is known."""

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


class TopicEdit:
    """A topic being changed, its partitions by index."""

    __slots__ = ("id", "name", "partitions")

    def __init__(self, name: str, topic_id: Uuid, partitions: Iterable[PartitionImage]) -> None:
        self.name = name
        self.id = topic_id
        self.partitions = dict(enumerate(partitions))

    def image(self) -> TopicImage:
        count = len(self.partitions)
        try:
            partitions = tuple([self.partitions[index] for index in range(count)])
        except KeyError as missing:
            raise UnreplayableRecord(
                f"topic {self.name} has {count} partitions, but none numbered {missing}"
            ) from None
        return TopicImage(self.name, self.id, partitions)


class ImageDelta:
    """The changes since an image, and what they amount to."""

    __slots__ = (
        "_topic_edits",
        "_topics_deleted",
        "_tuples",
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
    )

    def __init__(self, base: MetadataImage) -> None:
        self.base = base
        self.configs = Edits(base.configs)
        self.brokers = Edits(base.brokers)
        self.controllers = Edits(base.controllers)
        self.features = Edits(base.features)
        self.client_quotas = Edits(base.client_quotas)
        self.acls = Edits(base.acls)
        self.scram_credentials = Edits(base.scram_credentials)
        self.delegation_tokens = Edits(base.delegation_tokens)
        self.next_producer_id = base.next_producer_id
        self._topic_edits: dict[Uuid, TopicEdit] = {}
        self._topics_deleted: dict[Uuid, TopicImage] = {}
        # Most partitions have the same few replica lists: each is kept once.
        self._tuples: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def replay(self, record: Message) -> None:
        """Take one committed record into account."""
        replay = _REPLAY.get(type(record))
        if replay is None:
            raise UnreplayableRecord(f"{type(record).__name__} is no record that changes metadata")
        replay(self, record)

    def image(self, offset: int, epoch: int, timestamp_ms: int) -> MetadataImage:
        """The image after all replayed records, the last of which stands at `offset`."""
        topics, topics_by_id = self._merged_topics()
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
        return [one for one in self._topic_edits if one not in self.base.topics_by_id]

    @property
    def topics_changed(self) -> list[Uuid]:
        """The ids of topics that have other, or more, partitions than in the base."""
        return [one for one in self._topic_edits if one in self.base.topics_by_id]

    @property
    def topics_deleted(self) -> list[TopicImage]:
        """The topics of the base that are gone, as they were."""
        return list(self._topics_deleted.values())

    @property
    def configs_changed(self) -> list[ConfigResource]:
        """The resources whose configs were set or removed, even to the value they had."""
        return list(self.configs.changed)

    # Topics and partitions.

    def _add_topic(self, record: TopicRecord) -> None:
        if record.topic_id in self._topic_edits or record.topic_id in self.base.topics_by_id:
            raise UnreplayableRecord(f"topic {record.name} is created twice under one id")
        self._topic_edits[record.topic_id] = TopicEdit(record.name, record.topic_id, ())

    def _remove_topic(self, record: RemoveTopicRecord) -> None:
        topic_id = record.topic_id
        topic = self.base.topics_by_id.get(topic_id)
        edit = self._topic_edits.pop(topic_id, None)
        if edit is None and (topic is None or topic_id in self._topics_deleted):
            raise UnreplayableRecord(f"topic id {to_text(topic_id)} is removed, but unknown")
        if topic is not None:
            self._topics_deleted[topic_id] = topic
        name = topic.name if topic is not None else edit.name if edit is not None else ""
        self.configs.remove(ConfigResource(ResourceType.TOPIC, name))

    def _put_partition(self, record: PartitionRecord) -> None:
        edit = self._topic_edits.get(record.topic_id) or self._edit_topic(record.topic_id)
        share = self._share
        edit.partitions[record.partition_id] = PartitionImage(
            share(record.replicas),
            share(record.isr),
            record.leader,
            record.leader_epoch,
            record.partition_epoch,
            share(record.directories or (MIGRATING_DIRECTORY,) * len(record.replicas)),
            share(record.removing_replicas),
            share(record.adding_replicas),
            record.leader_recovery_state,
            share(record.eligible_leader_replicas or ()),
            share(record.last_known_elr or ()),
        )

    def _change_partition(self, record: PartitionChangeRecord) -> None:
        edit = self._topic_edits.get(record.topic_id) or self._edit_topic(record.topic_id)
        old = edit.partitions.get(record.partition_id)
        if old is None:
            raise UnreplayableRecord(
                f"partition {edit.name}-{record.partition_id} changes, but was never created"
            )
        edit.partitions[record.partition_id] = self._changed_partition(old, record)

    def _changed_partition(
        self, old: PartitionImage, record: PartitionChangeRecord
    ) -> PartitionImage:
        share = self._share
        replicas, isr, directories = record.replicas, record.isr, record.directories
        removing, adding = record.removing_replicas, record.adding_replicas
        elr, last_known_elr = record.eligible_leader_replicas, record.last_known_elr
        recovery, leader = record.leader_recovery_state, record.leader
        has_leader = leader != NO_LEADER_CHANGE
        return PartitionImage(
            old.replicas if replicas is None else share(replicas),
            old.isr if isr is None else share(isr),
            leader if has_leader else old.leader,
            # Naming a leader, even the same one, starts a new term.
            old.leader_epoch + has_leader,
            old.partition_epoch + 1,
            old.directories if directories is None else share(directories),
            old.removing if removing is None else share(removing),
            old.adding if adding is None else share(adding),
            old.leader_recovery_state if recovery == NO_RECOVERY_CHANGE else recovery,
            old.elr if elr is None else share(elr),
            old.last_known_elr if last_known_elr is None else share(last_known_elr),
        )

    def _clear_elr(self, record: ClearElrRecord) -> None:
        """Forget the eligible leaders of one topic, or of all when it names none."""
        for topic_id in self._topic_ids(record.topic_name):
            edit = self._edit_topic(topic_id)
            for index, partition in edit.partitions.items():
                if partition.elr or partition.last_known_elr:
                    edit.partitions[index] = self._changed_partition(
                        partition,
                        PartitionChangeRecord(eligible_leader_replicas=[], last_known_elr=[]),
                    )

    def _topic_ids(self, name: str) -> list[Uuid]:
        names = {one: topic.name for one, topic in self.base.topics_by_id.items()}
        names |= {one: edit.name for one, edit in self._topic_edits.items()}
        found = [
            one
            for one, its_name in names.items()
            if name in ("", its_name) and one not in self._topics_deleted
        ]
        if name and not found:
            raise UnreplayableRecord(f"the eligible leaders of unknown topic {name} are cleared")
        return found

    def _edit_topic(self, topic_id: Uuid) -> TopicEdit:
        edit = self._topic_edits.get(topic_id)
        if edit is None:
            topic = self.base.topics_by_id.get(topic_id)
            if topic is None or topic_id in self._topics_deleted:
                raise UnreplayableRecord(f"a record is about unknown topic id {to_text(topic_id)}")
            edit = TopicEdit(topic.name, topic.id, topic.partitions)
            self._topic_edits[topic_id] = edit
        return edit

    def _share(self, items: Iterable[Any]) -> tuple[Any, ...]:
        found = tuple(items)
        return self._tuples.setdefault(found, found)

    def _merged_topics(self) -> tuple[Mapping[str, TopicImage], Mapping[Uuid, TopicImage]]:
        if not self._topic_edits and not self._topics_deleted:
            return self.base.topics, self.base.topics_by_id
        topics, topics_by_id = dict(self.base.topics), dict(self.base.topics_by_id)
        for deleted in self._topics_deleted.values():
            del topics[deleted.name], topics_by_id[deleted.id]
        for edit in self._topic_edits.values():
            topic = edit.image()
            if topics.get(topic.name, topic).id != topic.id:
                raise UnreplayableRecord(f"two topics of one name: {topic.name}")
            topics[topic.name] = topics_by_id[topic.id] = topic
        return topics, topics_by_id

    # Nodes.

    def _register_broker(self, record: RegisterBrokerRecord) -> None:
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

    def _unregister_broker(self, record: UnregisterBrokerRecord) -> None:
        self._registered(record.broker_id, record.broker_epoch)
        self.brokers.remove(record.broker_id)

    def _change_broker(self, record: BrokerRegistrationChangeRecord) -> None:
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

    def _fence_broker(self, record: FenceBrokerRecord) -> None:
        self._put_broker(self._registered(record.id, record.epoch), fenced=True)

    def _unfence_broker(self, record: UnfenceBrokerRecord) -> None:
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

    def _register_controller(self, record: RegisterControllerRecord) -> None:
        controller = ControllerImage(
            id=record.controller_id,
            incarnation_id=record.incarnation_id,
            endpoints=_endpoints(record.end_points),
            features=_features(record.features),
            zk_migration_ready=record.zk_migration_ready,
        )
        self.controllers.put(controller.id, controller)

    # Everything else.

    def _set_config(self, record: ConfigRecord) -> None:
        resource = ConfigResource(record.resource_type, record.resource_name)
        configs = dict(self.configs.get(resource) or {})
        if record.value is None:
            configs.pop(record.name, None)
        else:
            configs[record.name] = record.value
        if configs:
            self.configs.put(resource, configs)
        else:
            self.configs.remove(resource)

    def _set_feature(self, record: FeatureLevelRecord) -> None:
        if record.feature_level == 0:
            self.features.remove(record.name)
        else:
            self.features.put(record.name, record.feature_level)

    def _set_quota(self, record: ClientQuotaRecord) -> None:
        entity: Entity = tuple(
            sorted((part.entity_type, part.entity_name) for part in record.entity)
        )
        quotas = dict(self.client_quotas.get(entity) or {})
        if record.remove:
            quotas.pop(record.key, None)
        else:
            quotas[record.key] = record.value
        if quotas:
            self.client_quotas.put(entity, quotas)
        else:
            self.client_quotas.remove(entity)

    def _set_producer_ids(self, record: ProducerIdsRecord) -> None:
        self.next_producer_id = record.next_producer_id

    def _put_acl(self, record: AccessControlEntryRecord) -> None:
        self.acls.put(record.id, record)

    def _remove_acl(self, record: RemoveAccessControlEntryRecord) -> None:
        self.acls.remove(record.id)

    def _put_scram_credential(self, record: UserScramCredentialRecord) -> None:
        self.scram_credentials.put((record.mechanism, record.name), record)

    def _remove_scram_credential(self, record: RemoveUserScramCredentialRecord) -> None:
        self.scram_credentials.remove((record.mechanism, record.name))

    def _put_delegation_token(self, record: DelegationTokenRecord) -> None:
        self.delegation_tokens.put(record.token_id, record)

    def _remove_delegation_token(self, record: RemoveDelegationTokenRecord) -> None:
        self.delegation_tokens.remove(record.token_id)

    def _ignore(self, record: NoOpRecord | ZkMigrationStateRecord) -> None:
        """Keeps offsets moving, or tells of a migration that no current version can be in."""


def _endpoints(records: Iterable[Any]) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(one.name, one.host, one.port, one.security_protocol) for one in records)


def _features(records: Iterable[Any]) -> Mapping[str, VersionRange]:
    return {
        one.name: VersionRange(one.min_supported_version, one.max_supported_version)
        for one in records
    }


_REPLAY: dict[type[Message], Callable[[ImageDelta, Any], None]] = {
    TopicRecord: ImageDelta._add_topic,
    RemoveTopicRecord: ImageDelta._remove_topic,
    PartitionRecord: ImageDelta._put_partition,
    PartitionChangeRecord: ImageDelta._change_partition,
    ClearElrRecord: ImageDelta._clear_elr,
    RegisterBrokerRecord: ImageDelta._register_broker,
    UnregisterBrokerRecord: ImageDelta._unregister_broker,
    BrokerRegistrationChangeRecord: ImageDelta._change_broker,
    FenceBrokerRecord: ImageDelta._fence_broker,
    UnfenceBrokerRecord: ImageDelta._unfence_broker,
    RegisterControllerRecord: ImageDelta._register_controller,
    ConfigRecord: ImageDelta._set_config,
    FeatureLevelRecord: ImageDelta._set_feature,
    ClientQuotaRecord: ImageDelta._set_quota,
    ProducerIdsRecord: ImageDelta._set_producer_ids,
    AccessControlEntryRecord: ImageDelta._put_acl,
    RemoveAccessControlEntryRecord: ImageDelta._remove_acl,
    UserScramCredentialRecord: ImageDelta._put_scram_credential,
    RemoveUserScramCredentialRecord: ImageDelta._remove_scram_credential,
    DelegationTokenRecord: ImageDelta._put_delegation_token,
    RemoveDelegationTokenRecord: ImageDelta._remove_delegation_token,
    NoOpRecord: ImageDelta._ignore,
    ZkMigrationStateRecord: ImageDelta._ignore,
}
