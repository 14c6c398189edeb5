"""Requests of brokers about their partitions: AlterPartition and AssignReplicasToDirs.

A leader changes the ISR of its partitions by AlterPartition, and brokers report the log directories
of their replicas. One request may name any number of partitions; each one succeeds or fails alone.
"""

from collections.abc import Sequence

from headrace.controller.decision import Decision
from headrace.controller.leadership import RECOVERED, RECOVERING, Leadership
from headrace.controller.registration import check_epoch
from headrace.controller.requests import Context
from headrace.errors import (
    FencedLeaderEpoch,
    IneligibleReplica,
    InvalidRequest,
    InvalidUpdateVersion,
    KafkaError,
    NewLeaderElected,
    NotController,
    NotLeaderOrFollower,
    UnknownTopicId,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from headrace.metadata.features import has_directories
from headrace.metadata.image import BrokerImage, MetadataImage, PartitionImage, TopicImage
from headrace.metadata.records import VersionedRecord
from headrace.metadata.topics_delta import NO_LEADER_CHANGE, changed_partition
from headrace.protocol.schemas.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
    BrokerState,
)
from headrace.protocol.schemas.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    AssignReplicasToDirsResponseDirectoryData,
    AssignReplicasToDirsResponsePartitionData,
    AssignReplicasToDirsResponseTopicData,
)
from headrace.protocol.schemas.records.metadata import PartitionChangeRecord
from headrace.protocol.uuids import Uuid, to_text

_UNKNOWN_EPOCH = -1


def alter_partition(
    image: MetadataImage, request: AlterPartitionRequest, context: Context
) -> Decision[AlterPartitionResponse]:
    """Change the ISR of partitions as their leader requests it."""
    check_epoch(image, request.broker_id, request.broker_epoch)
    changes = _Changes(image, request.broker_id, context)
    topics = [
        AlterPartitionResponseTopicData(
            topic_id=topic.topic_id,
            partitions=[changes.alter(topic.topic_id, wanted) for wanted in topic.partitions],
        )
        for topic in request.topics
    ]
    return Decision(changes.records, AlterPartitionResponse(topics=topics))


class _Changes:
    """The changes of one AlterPartition request."""

    def __init__(self, image: MetadataImage, broker_id: int, context: Context) -> None:
        self.image = image
        self.broker_id = broker_id
        self.has_epochs = context.version >= 3
        self.rules = Leadership(image, context.defaults)
        self.records: list[VersionedRecord] = []
        self.altered: set[tuple[Uuid, int]] = set()

    def alter(
        self, topic_id: Uuid, wanted: AlterPartitionRequestPartitionData
    ) -> AlterPartitionResponsePartitionData:
        index = wanted.partition_index
        try:
            partition = self._altered(topic_id, wanted)
        except KafkaError as error:
            return AlterPartitionResponsePartitionData(partition_index=index, error_code=error.code)
        return AlterPartitionResponsePartitionData(
            partition_index=index,
            leader_id=partition.leader,
            leader_epoch=partition.leader_epoch,
            isr=list(partition.isr),
            leader_recovery_state=partition.leader_recovery_state,
            partition_epoch=partition.partition_epoch,
        )

    def _altered(
        self, topic_id: Uuid, wanted: AlterPartitionRequestPartitionData
    ) -> PartitionImage:
        """Return the partition after the change; raise if the change is invalid."""
        topic = _topic(self.image, topic_id)
        index = wanted.partition_index
        partition = _partition(topic, index)
        members = self._members(wanted)
        isr = tuple([member.broker_id for member in members])
        self._check_epochs(partition, wanted, (topic_id, index))
        _check_isr(partition, isr, wanted.leader_recovery_state)
        for member in members:
            self._check_eligible(member)
        record = self.rules.change(
            topic, index, isr=isr, leader_recovery_state=wanted.leader_recovery_state
        ).record()
        if record is None:
            return partition
        self.altered.add((topic_id, index))
        self.records.append(VersionedRecord(record, self.rules.version))
        if record.leader not in (NO_LEADER_CHANGE, self.broker_id):
            raise NewLeaderElected("the change ended a reassignment, and another broker leads now")
        return changed_partition(partition, record)

    def _members(self, wanted: AlterPartitionRequestPartitionData) -> Sequence[BrokerState]:
        if self.has_epochs:
            return wanted.new_isr_with_epochs
        return [BrokerState(broker_id) for broker_id in wanted.new_isr]

    def _check_epochs(
        self,
        partition: PartitionImage,
        wanted: AlterPartitionRequestPartitionData,
        place: tuple[Uuid, int],
    ) -> None:
        if (
            wanted.leader_epoch > partition.leader_epoch
            or wanted.partition_epoch > partition.partition_epoch
        ):
            raise NotController("the leader has newer metadata than this controller")
        if wanted.leader_epoch < partition.leader_epoch:
            raise FencedLeaderEpoch(f"the leader epoch is {partition.leader_epoch}")
        if partition.leader != self.broker_id:
            raise InvalidRequest(f"broker {partition.leader} leads the partition")
        if wanted.partition_epoch < partition.partition_epoch or place in self.altered:
            raise InvalidUpdateVersion(f"the partition epoch is not {wanted.partition_epoch}")

    def _check_eligible(self, member: BrokerState) -> None:
        broker = self.image.brokers.get(member.broker_id)
        if broker is None or not broker.is_active:
            raise IneligibleReplica(f"broker {member.broker_id} is not active")
        if member.broker_epoch not in (_UNKNOWN_EPOCH, broker.epoch):
            # It has restarted since it was last in sync, and may have lost records.
            raise IneligibleReplica(f"broker {member.broker_id} has epoch {broker.epoch}")


def _check_isr(partition: PartitionImage, isr: tuple[int, ...], recovery_state: int) -> None:
    members = set(isr)
    if len(members) != len(isr) or not members <= set(partition.replicas):
        raise InvalidRequest(f"the ISR {list(isr)} is not a set of replicas")
    if partition.leader not in members:
        raise InvalidRequest(f"the ISR {list(isr)} does not have the leader")
    if recovery_state not in (RECOVERED, RECOVERING):
        raise InvalidRequest(f"there is no leader recovery state {recovery_state}")
    if recovery_state == RECOVERING and len(isr) > 1:
        raise InvalidRequest("a leader that is recovering is alone in its ISR")
    if recovery_state == RECOVERING and partition.leader_recovery_state == RECOVERED:
        raise InvalidRequest("a leader that has recovered cannot be recovering again")


def assign_replicas_to_dirs(
    image: MetadataImage, request: AssignReplicasToDirsRequest, context: Context
) -> Decision[AssignReplicasToDirsResponse]:
    """Store the log directory of each replica of a broker.

    A replica in a directory that is offline leaves the ISR.
    """
    if not has_directories(image.metadata_version):
        raise UnsupportedVersion("log directories need metadata.version 17 or higher")
    broker = check_epoch(image, request.broker_id, request.broker_epoch)
    assignment = _Assignment(image, broker, context)
    directories = [
        AssignReplicasToDirsResponseDirectoryData(
            directory.id,
            [
                AssignReplicasToDirsResponseTopicData(
                    topic.topic_id,
                    [
                        assignment.assign(topic.topic_id, partition.partition_index, directory.id)
                        for partition in topic.partitions
                    ],
                )
                for topic in directory.topics
            ],
        )
        for directory in request.directories
    ]
    records = assignment.rules.versioned(assignment.records.values())
    return Decision(records, AssignReplicasToDirsResponse(directories=directories))


class _Assignment:
    """The directories of one AssignReplicasToDirs request; the last one of a replica counts."""

    def __init__(self, image: MetadataImage, broker: BrokerImage, context: Context) -> None:
        self.image = image
        self.broker = broker
        self.rules = Leadership(image, context.defaults)
        self.offline_rules = Leadership(image, context.defaults, leaving=broker.id)
        self.records: dict[tuple[Uuid, int], PartitionChangeRecord | None] = {}

    def assign(
        self, topic_id: Uuid, index: int, directory: Uuid
    ) -> AssignReplicasToDirsResponsePartitionData:
        try:
            self.records[topic_id, index] = self._record(topic_id, index, directory)
        except KafkaError as error:
            return AssignReplicasToDirsResponsePartitionData(index, error.code)
        return AssignReplicasToDirsResponsePartitionData(index)

    def _record(self, topic_id: Uuid, index: int, directory: Uuid) -> PartitionChangeRecord | None:
        topic = _topic(self.image, topic_id)
        partition = _partition(topic, index)
        broker = self.broker
        if broker.id not in partition.replicas:
            raise NotLeaderOrFollower(f"broker {broker.id} has no replica of {topic.name}-{index}")
        is_online = directory in broker.directories
        rules = self.rules if is_online else self.offline_rules
        isr = tuple(one for one in partition.isr if is_online or one != broker.id)
        return rules.change(topic, index, isr=isr, directories={broker.id: directory}).record()


def _topic(image: MetadataImage, topic_id: Uuid) -> TopicImage:
    topic = image.topics_by_id.get(topic_id)
    if topic is None:
        raise UnknownTopicId(f"no topic has the id {to_text(topic_id)}")
    return topic


def _partition(topic: TopicImage, index: int) -> PartitionImage:
    if not 0 <= index < len(topic.partitions):
        raise UnknownTopicOrPartition(f"topic '{topic.name}' has no partition {index}")
    return topic.partitions[index]
