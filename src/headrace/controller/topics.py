"""Create and delete topics, and add partitions to them."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from headrace.controller.configs import ConfigRules, config_records
from headrace.controller.decision import (
    RECORDS_PER_OPERATION_MAX,
    ClusterDefaults,
    Decision,
    check_size,
)
from headrace.controller.placement import Draw, directories_for, draw, place_replicas
from headrace.controller.topic_names import can_collide, check_topic_name, colliding
from headrace.errors import (
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    InvalidTopicException,
    KafkaError,
    PolicyViolation,
    TopicAlreadyExists,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from headrace.metadata.features import partition_version
from headrace.metadata.image import ConfigResource, MetadataImage, ResourceType, TopicImage
from headrace.metadata.records import VersionedRecord
from headrace.protocol.schemas.records.metadata import (
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from headrace.protocol.uuids import ZERO, Uuid, random_uuid, to_text

if TYPE_CHECKING:
    from headrace.protocol.schemas.create_partitions import CreatePartitionsTopic
    from headrace.protocol.schemas.create_topics import CreatableTopic
    from headrace.protocol.schemas.delete_topics import DeleteTopicState


class TopicResult(msgspec.Struct):
    """The outcome for one topic of a request."""

    name: str | None
    topic_id: Uuid = ZERO
    error: KafkaError | None = None
    num_partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = {}


Charge = Callable[[int], None]
"""Counts partitions that a client creates or deletes; raises if its quota is exceeded."""


def _free(count: int) -> None:
    """Accept any number of partitions."""


# Creating.


def create_topics(
    image: MetadataImage,
    topics: Sequence["CreatableTopic"],
    defaults: ClusterDefaults,
    rules: ConfigRules,
    *,
    validate_only: bool = False,
    new_id: Callable[[], Uuid] = random_uuid,
    draw: Draw = draw,
    charge: Charge = _free,
) -> Decision[list[TopicResult]]:
    """Create topics: each succeeds or fails alone, but all valid ones are written at once."""
    _check_total(topics, defaults)
    repeated = _repeated([topic.name for topic in topics])
    creation = _Creation(image, defaults, rules, new_id, draw, charge)
    results: dict[str, TopicResult] = {}
    for topic in topics:
        if topic.name in repeated:
            error = InvalidRequest(
                f"topic {topic.name} is named more than once in the request; name it once"
            )
            results[topic.name] = TopicResult(topic.name, error=error)
        else:
            results[topic.name] = creation.create(topic)
    check_size(creation.records, "creating these topics")
    records = [] if validate_only else creation.records
    return Decision(records, list(results.values()))


class _Creation:
    """The creation of the topics of one request, one after the other."""

    def __init__(
        self,
        image: MetadataImage,
        defaults: ClusterDefaults,
        rules: ConfigRules,
        new_id: Callable[[], Uuid],
        draw: Draw,
        charge: Charge,
    ) -> None:
        self.charge = charge
        self.image = image
        self.defaults = defaults
        self.rules = rules
        self.new_id = new_id
        self.draw = draw
        self.records: list[VersionedRecord] = []
        self.created: list[str] = []

    def create(self, topic: "CreatableTopic") -> TopicResult:
        try:
            self._check_name(topic.name)
            resource = ConfigResource(ResourceType.TOPIC, topic.name)
            configs = {config.name: config.value for config in topic.configs}
            set_configs = config_records(self.image, resource, configs, self.rules)
            replicas = self._replicas(topic)
            self.charge(len(replicas))
        except KafkaError as error:
            return TopicResult(topic.name, error=error)
        topic_id = self.new_id()
        self.records.append(VersionedRecord(TopicRecord(topic.name, topic_id)))
        self.records.extend(set_configs)
        self.records.extend(partition_records(self.image, topic_id, 0, replicas))
        self.created.append(topic.name)
        return TopicResult(
            topic.name,
            topic_id,
            num_partitions=len(replicas),
            replication_factor=len(replicas[0]),
            configs={name: value for name, value in configs.items() if value is not None},
        )

    def _check_name(self, name: str) -> None:
        check_topic_name(name)
        if name in self.image.topics:
            raise TopicAlreadyExists(f"topic '{name}' already exists")
        if can_collide(name):
            other = colliding(name, self.image.topics) or colliding(name, self.created)
            if other is not None:
                raise InvalidTopicException(
                    f"topic '{name}' collides with topic '{other}': "
                    "'.' and '_' are the same in metric names"
                )

    def _replicas(self, topic: "CreatableTopic") -> list[list[int]]:
        if topic.assignments:
            return self._assigned(topic)
        count, factor = topic.num_partitions, topic.replication_factor
        if factor < -1 or factor == 0:
            raise InvalidReplicationFactor(
                "the replication factor must be at least 1, or -1 for the broker's default"
            )
        if count < -1 or count == 0:
            raise InvalidPartitions(
                "the number of partitions must be at least 1, or -1 for the broker's default"
            )
        count = self.defaults.num_partitions if count == -1 else count
        factor = self.defaults.default_replication_factor if factor == -1 else factor
        return place_replicas(self.image, count, factor, self.draw)

    def _assigned(self, topic: "CreatableTopic") -> list[list[int]]:
        """Return the replicas that the request assigns."""
        if topic.replication_factor != -1 or topic.num_partitions != -1:
            raise InvalidRequest(
                "with replicas assigned by hand, the number of partitions and the replication "
                "factor follow from the assignment and must be -1"
            )
        by_index = {one.partition_index: one.broker_ids for one in topic.assignments}
        if len(by_index) != len(topic.assignments):
            raise InvalidReplicaAssignment(
                "a partition is assigned more than once; give each one list of brokers"
            )
        if set(by_index) != set(range(len(by_index))):
            raise InvalidReplicaAssignment("the assigned partitions must be numbered from 0 on")
        assigned = [by_index[index] for index in range(len(by_index))]
        check_assignment(self.image, assigned, len(assigned[0]))
        return assigned


def _check_total(topics: Sequence["CreatableTopic"], defaults: ClusterDefaults) -> None:
    """Reject too many partitions before any work: a request may name billions."""
    total = 0
    for topic in topics:
        requested = defaults.num_partitions if topic.num_partitions == -1 else topic.num_partitions
        total += len(topic.assignments) or max(0, requested)
    if total > RECORDS_PER_OPERATION_MAX:
        raise PolicyViolation(
            f"the request asks for {total:,} new partitions, and one request may create "
            f"{RECORDS_PER_OPERATION_MAX:,}; split it into several requests"
        )


def check_assignment(
    image: MetadataImage, assigned: Sequence[Sequence[int]], replication_factor: int
) -> None:
    """Raise unless registered brokers can hold, and lead, partitions assigned by hand."""
    for replicas in assigned:
        if not replicas:
            raise InvalidReplicaAssignment(
                "a partition is assigned to no broker; name at least one"
            )
        if len(set(replicas)) != len(replicas):
            raise InvalidReplicaAssignment(f"the assignment {list(replicas)} names a broker twice")
        for replica in replicas:
            if replica not in image.brokers:
                raise InvalidReplicaAssignment(
                    f"the assignment names broker {replica}, which is not registered; "
                    f"registered: {', '.join(map(str, sorted(image.brokers))) or 'none'}"
                )
        if len(replicas) != replication_factor:
            raise InvalidReplicaAssignment(
                f"one partition is assigned {len(replicas)} replicas and another "
                f"{replication_factor}: all must have the same number"
            )
        if not any(image.is_active(replica) for replica in replicas):
            raise InvalidReplicaAssignment(
                f"all brokers of the assignment {list(replicas)} are fenced or shutting down"
            )


def partition_records(
    image: MetadataImage, topic_id: Uuid, first: int, assigned: Sequence[Sequence[int]]
) -> list[VersionedRecord]:
    """Return new partitions from index `first` on, led by their first active replica."""
    version = partition_version(image.metadata_version)
    # Thousands of partitions share few distinct lists, so each list is computed once.
    states: dict[tuple[int, ...], tuple[list[int], list[Uuid]]] = {}
    records = []
    for index, replicas in enumerate(assigned, first):
        key = tuple(replicas)
        if key not in states:
            isr = [replica for replica in key if image.is_active(replica)]
            if not isr:
                raise InvalidReplicationFactor(
                    "all brokers are fenced or shutting down; wait until one is ready"
                )
            states[key] = isr, directories_for(image, key)
        isr, directories = states[key]
        record = PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=list(key),
            isr=isr,
            leader=isr[0],
            leader_epoch=0,
            partition_epoch=0,
            directories=directories,
        )
        records.append(VersionedRecord(record, version))
    return records


# Adding partitions.


def create_partitions(
    image: MetadataImage,
    topics: Sequence["CreatePartitionsTopic"],
    *,
    validate_only: bool = False,
    draw: Draw = draw,
    charge: Charge = _free,
) -> Decision[list[TopicResult]]:
    """Add partitions to topics; the keys of new records then go to other partitions."""
    repeated = _repeated([topic.name for topic in topics])
    records: list[VersionedRecord] = []
    results: dict[str, TopicResult] = {}
    for topic in topics:
        try:
            if topic.name in repeated:
                raise InvalidRequest(
                    f"topic {topic.name} is named more than once in the request; name it once"
                )
            records.extend(_more_partitions(image, topic, draw, charge))
            results[topic.name] = TopicResult(topic.name)
        except KafkaError as error:
            results[topic.name] = TopicResult(topic.name, error=error)
    check_size(records, "adding these partitions")
    return Decision([] if validate_only else records, list(results.values()))


def _more_partitions(
    image: MetadataImage, wanted: "CreatePartitionsTopic", draw: Draw, charge: Charge
) -> list[VersionedRecord]:
    topic = image.topics.get(wanted.name)
    if topic is None:
        raise UnknownTopicOrPartition(f"topic '{wanted.name}' does not exist")
    present = len(topic.partitions)
    if wanted.count == present:
        raise InvalidPartitions(
            f"topic '{wanted.name}' already has {present} partition(s); request more"
        )
    if wanted.count < present:
        raise InvalidPartitions(
            f"topic '{wanted.name}' has {present} partition(s), and partitions cannot be removed: "
            f"{wanted.count} would not be an increase"
        )
    added = wanted.count - present
    if added > RECORDS_PER_OPERATION_MAX:
        raise PolicyViolation(
            f"one request may create {RECORDS_PER_OPERATION_MAX:,} partitions, not {added:,}"
        )
    assigned = _added_replicas(image, topic, wanted, added, draw)
    charge(added)
    return partition_records(image, topic.id, present, assigned)


def _added_replicas(
    image: MetadataImage,
    topic: TopicImage,
    wanted: "CreatePartitionsTopic",
    added: int,
    draw: Draw,
) -> Sequence[Sequence[int]]:
    replication_factor = len(topic.partitions[0].replicas)
    if wanted.assignments is None:
        return place_replicas(image, added, replication_factor, draw)
    if len(wanted.assignments) != added:
        raise InvalidReplicaAssignment(
            f"{added} partition(s) are to be added, but {len(wanted.assignments)} are assigned"
        )
    assigned = [one.broker_ids for one in wanted.assignments]
    check_assignment(image, assigned, replication_factor)
    return assigned


# Deleting.


def delete_topics(
    image: MetadataImage, topics: Sequence["DeleteTopicState"], charge: Charge = _free
) -> Decision[list[TopicResult]]:
    """Delete topics, by name or by id, and their configs."""
    names = Counter(topic.name for topic in topics if topic.name is not None)
    ids = Counter(topic.topic_id for topic in topics if topic.name is None)
    by_name = {image.topics[name].id for name in names if name in image.topics}
    results: dict[tuple[str | None, Uuid], TopicResult] = {}
    for wanted in topics:
        try:
            if (ids[wanted.topic_id] if wanted.name is None else names[wanted.name]) > 1:
                raise InvalidRequest(
                    "the topic is named more than once in the request; name it once"
                )
            topic = _named(image, wanted)
            result = TopicResult(topic.name, topic.id)
            if topic.id in (ids if wanted.name is not None else by_name):
                error = InvalidRequest("the topic is named both by its name and by its id")
                result.error = error
            else:
                charge(len(topic.partitions))
        except KafkaError as error:
            result = TopicResult(wanted.name, wanted.topic_id, error)
        results[wanted.name, wanted.topic_id] = result
    records = [
        VersionedRecord(RemoveTopicRecord(result.topic_id))
        for result in results.values()
        if result.error is None
    ]
    check_size(records, "deleting these topics")
    return Decision(records, list(results.values()))


def _named(image: MetadataImage, wanted: "DeleteTopicState") -> TopicImage:
    """Return the topic of a name or an id."""
    if wanted.name is not None and wanted.topic_id != ZERO:
        raise InvalidRequest("name a topic either by its name or by its id, not by both")
    if wanted.name is not None:
        topic = image.topics.get(wanted.name)
        if topic is None:
            raise UnknownTopicOrPartition(f"topic '{wanted.name}' does not exist")
        return topic
    if wanted.topic_id == ZERO:
        raise InvalidRequest("neither the name nor the id of a topic is given")
    topic = image.topics_by_id.get(wanted.topic_id)
    if topic is None:
        raise UnknownTopicId(f"no topic has the id {to_text(wanted.topic_id)}")
    return topic


def _repeated(names: Sequence[str]) -> set[str]:
    return {name for name, count in Counter(names).items() if count > 1}
