"""Topics: list, describe, create and delete them, and add partitions."""

from collections.abc import Iterable, Sequence
from uuid import uuid4

from headrace.client.cluster import Cluster, check_code, error_or_none, outcome_of
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
        """List all topics, including internal ones."""
        found = self._cluster.metadata().topics
        return sorted(
            (_description(topic) for topic in found if not topic.error_code),
            key=lambda topic: topic.name,
        )

    def describe(self, names: Sequence[str]) -> tuple[list[TopicDescription], list[Outcome]]:
        """Describe topics; also return the errors of topics that cannot be described."""
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
        """Create topics, or only validate the request."""
        request = CreateTopicsRequest(
            topics=[_creatable(topic) for topic in topics],
            timeout_ms=self._cluster.timeout_ms,
            validate_only=validate_only,
        )

        def attempt() -> list[TopicCreated]:
            answer = self._cluster.ask_controller(request, CreateTopicsResponse)
            _check_controller([result.error_code for result in answer.topics])
            return [_created(result) for result in answer.topics]

        return self._cluster.retry(attempt, is_repeatable=False)

    def defaults(self) -> list[ConfigEntry]:
        """Return the settings of a topic without own settings.

        Brokers report them when a topic is created with `validate_only` (KIP-525).
        """
        topic = _creatable(NewTopic(name=f"headrace-{uuid4()}"))
        request = CreateTopicsRequest(
            topics=[topic], timeout_ms=self._cluster.timeout_ms, validate_only=True
        )
        answer = self._cluster.ask_controller(request, CreateTopicsResponse).topics[0]
        check_code(answer.error_code or answer.topic_config_error_code, answer.error_message)
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
        """Delete topics by id, which spares a recreated topic of the same name."""
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
        """Raise the number of partitions to `total`; `assignments` place the new partitions."""
        topic = CreatePartitionsTopic(
            name=name,
            count=total,
            assignments=[
                CreatePartitionsAssignment(broker_ids=list(replicas)) for replicas in assignments
            ]
            or None,
        )
        request = CreatePartitionsRequest(
            topics=[topic], timeout_ms=self._cluster.timeout_ms, validate_only=validate_only
        )

        def attempt() -> Outcome:
            answer = self._cluster.ask_controller(request, CreatePartitionsResponse)
            _check_controller([result.error_code for result in answer.results])
            result = answer.results[0]
            outcome = outcome_of(name, result.error_code, result.error_message)
            return self._cluster.explain_missing(outcome)

        return self._cluster.retry(attempt, is_repeatable=False)

    def _delete(
        self, states: list[DeleteTopicState], names: list[str] | None = None
    ) -> list[Outcome]:
        request = DeleteTopicsRequest(topics=states, timeout_ms=self._cluster.timeout_ms)
        if names is not None:
            version = self._cluster.connection().version_of(request)
            if version < 6:  # Older brokers accept names only, in another field.
                request = DeleteTopicsRequest(
                    topic_names=names, timeout_ms=self._cluster.timeout_ms
                )

        def attempt() -> list[Outcome]:
            answer = self._cluster.ask_controller(request, DeleteTopicsResponse)
            _check_controller([result.error_code for result in answer.responses])
            return [self._cluster.explain_missing(_deleted(one)) for one in answer.responses]

        return self._cluster.retry(attempt, is_repeatable=False)


def _check_controller(codes: Sequence[int]) -> None:
    """Raise a retriable error if the node is not the controller; then nothing has changed."""
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
            name=result.name, error=error_or_none(result.error_code), message=result.error_message
        )
    return TopicCreated(
        name=result.name,
        topic_id=_id_text(result.topic_id),
        partitions=result.num_partitions if result.num_partitions >= 0 else None,
        replication_factor=result.replication_factor if result.replication_factor >= 0 else None,
    )


def _deleted(result: DeletableTopicResult) -> Outcome:
    name = result.name or uuids.to_text(result.topic_id)
    return outcome_of(name, result.error_code, result.error_message)


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
