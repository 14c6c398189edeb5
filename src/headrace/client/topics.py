"""Topics by the wire: list, describe, create, delete, and more partitions."""

from collections.abc import Iterable, Sequence
from uuid import uuid4

from headrace.client.cluster import Cluster, error_name
from headrace.client.descriptions import (
    CONFIG_SOURCES,
    ConfigEntry,
    NewTopic,
    Outcome,
    PartitionDescription,
    TopicCreated,
    TopicDescription,
)
from headrace.errors import HeadraceError, NotController, error_for
from headrace.protocol import uuids
from headrace.protocol.schemas.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from headrace.protocol.schemas.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from headrace.protocol.schemas.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from headrace.protocol.schemas.metadata import MetadataResponsePartition, MetadataResponseTopic


class Topics:
    """The topics of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def all(self) -> list[TopicDescription]:
        """All topics, internal ones too."""
        found = self._cluster.metadata().topics
        return sorted(
            (_description(topic) for topic in found if not topic.error_code),
            key=lambda topic: topic.name,
        )

    def describe(self, names: Sequence[str]) -> tuple[list[TopicDescription], list[Outcome]]:
        """The named topics, and what is wrong with those that cannot be described."""
        topics = self._cluster.metadata(names).topics
        return (
            [_description(topic) for topic in topics if not topic.error_code],
            [
                self._cluster.explain_missing(_undescribed(topic))
                for topic in topics
                if topic.error_code
            ],
        )

    def create(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False
    ) -> list[TopicCreated]:
        """Create topics, or only ask whether that would work."""
        request = CreateTopicsRequest(
            topics=[_creatable(topic) for topic in topics],
            timeout_ms=self._timeout_ms,
            validate_only=validate_only,
        )

        def attempt() -> list[TopicCreated]:
            answer = self._cluster.ask_controller(request, CreateTopicsResponse)
            _check_controller([result.error_code for result in answer.topics])
            return [_created(result) for result in answer.topics]

        return self._cluster.retry(attempt, is_repeatable=False)

    def defaults(self) -> list[ConfigEntry]:
        """The settings that a topic would have if none were given for it.

        A broker tells them of a topic that it is asked to make and not to make (KIP-525).
        """
        topic = _creatable(NewTopic(name=f"headrace-{uuid4()}"))
        request = CreateTopicsRequest(
            topics=[topic], timeout_ms=self._timeout_ms, validate_only=True
        )
        answer = self._cluster.ask_controller(request, CreateTopicsResponse).topics[0]
        if answer.error_code or answer.topic_config_error_code:
            code = answer.error_code or answer.topic_config_error_code
            raise error_for(code, answer.error_message or error_name(code))
        return [
            ConfigEntry(
                name=one.name,
                value=one.value,
                source=CONFIG_SOURCES.get(one.config_source, "UNKNOWN"),
                type="UNKNOWN",
                is_sensitive=one.is_sensitive,
                is_read_only=one.read_only,
                synonyms=[],
            )
            for one in answer.configs or ()
        ]

    def delete(self, names: Sequence[str]) -> list[Outcome]:
        """Delete topics by name."""
        states = [DeleteTopicState(name=name) for name in names]
        return self._delete(states, list(names))

    def delete_by_id(self, ids: Sequence[str]) -> list[Outcome]:
        """Delete topics by id, so that a new topic of the old name is not met by mistake."""
        try:
            return self._delete([DeleteTopicState(topic_id=uuids.from_text(one)) for one in ids])
        except ValueError as error:
            raise HeadraceError(str(error)) from error

    def add_partitions(
        self,
        name: str,
        total: int,
        assignments: Sequence[Sequence[int]] = (),
        *,
        validate_only: bool = False,
    ) -> Outcome:
        """Let a topic have `total` partitions, the new ones on the given replicas if any are."""
        topic = CreatePartitionsTopic(
            name=name,
            count=total,
            assignments=[
                CreatePartitionsAssignment(broker_ids=list(replicas)) for replicas in assignments
            ]
            or None,
        )
        request = CreatePartitionsRequest(
            topics=[topic], timeout_ms=self._timeout_ms, validate_only=validate_only
        )

        def attempt() -> Outcome:
            answer = self._cluster.ask_controller(request, CreatePartitionsResponse)
            _check_controller([result.error_code for result in answer.results])
            result = answer.results[0]
            outcome = Outcome(
                name=name,
                error=_error_or_none(result.error_code),
                message=result.error_message,
            )
            return self._cluster.explain_missing(outcome)

        return self._cluster.retry(attempt, is_repeatable=False)

    @property
    def _timeout_ms(self) -> int:
        return int(self._cluster.timeout_s * 1000)

    def _delete(
        self, states: list[DeleteTopicState], names: list[str] | None = None
    ) -> list[Outcome]:
        request = DeleteTopicsRequest(topics=states, timeout_ms=self._timeout_ms)
        if names is not None:
            version = self._cluster.connection().version_of(request)
            if version < 6:  # Older brokers take names only, in a field of their own.
                request = DeleteTopicsRequest(topic_names=names, timeout_ms=self._timeout_ms)

        def attempt() -> list[Outcome]:
            answer = self._cluster.ask_controller(request, DeleteTopicsResponse)
            _check_controller([result.error_code for result in answer.responses])
            return [self._cluster.explain_missing(_deleted(one)) for one in answer.responses]

        return self._cluster.retry(attempt, is_repeatable=False)


def _check_controller(codes: Sequence[int]) -> None:
    """A node that is not in charge refuses everything alike; then nothing has happened yet."""
    if NotController.code in codes:
        raise NotController("the controller has moved")


def _creatable(topic: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
            for index, replicas in enumerate(topic.assignments)
        ],
        configs=[
            CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()
        ],
    )


def _created(result: CreatableTopicResult) -> TopicCreated:
    if result.error_code:
        return TopicCreated(
            name=result.name, error=error_name(result.error_code), message=result.error_message
        )
    return TopicCreated(
        name=result.name,
        topic_id=_id_text(result.topic_id),
        partitions=result.num_partitions if result.num_partitions >= 0 else None,
        replication_factor=result.replication_factor if result.replication_factor >= 0 else None,
    )


def _deleted(result: DeletableTopicResult) -> Outcome:
    return Outcome(
        name=result.name or uuids.to_text(result.topic_id),
        error=_error_or_none(result.error_code),
        message=result.error_message,
    )


def _undescribed(topic: MetadataResponseTopic) -> Outcome:
    error = error_for(topic.error_code)
    return Outcome(name=topic.name or "", error=error.name, message=str(error))


def _description(topic: MetadataResponseTopic) -> TopicDescription:
    return TopicDescription(
        name=topic.name or "",
        topic_id=_id_text(topic.topic_id),
        is_internal=topic.is_internal,
        partitions=sorted(map(_partition, topic.partitions), key=lambda part: part.partition),
    )


def _partition(partition: MetadataResponsePartition) -> PartitionDescription:
    return PartitionDescription(
        partition=partition.partition_index,
        leader=partition.leader_id if partition.leader_id >= 0 else None,
        leader_epoch=partition.leader_epoch,
        replicas=partition.replica_nodes,
        isr=partition.isr_nodes,
        offline_replicas=partition.offline_replicas,
    )


def _id_text(topic_id: uuids.Uuid) -> str | None:
    return None if topic_id == uuids.ZERO else uuids.to_text(topic_id)


def _error_or_none(code: int) -> str | None:
    return error_name(code) if code else None
