"""Reassignments of partitions to other brokers."""

from collections.abc import Mapping, Sequence

import msgspec

from headrace.client.cluster import Cluster, by_topic, error_or_none
from headrace.client.descriptions import PartitionOutcome
from headrace.protocol.schemas.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from headrace.protocol.schemas.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)


class Reassignment(msgspec.Struct, frozen=True, order=True):
    """A reassignment in progress."""

    topic: str
    partition: int
    replicas: list[int]
    adding_replicas: list[int]
    removing_replicas: list[int]


class Reassignments:
    """The reassignments of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def under_way(
        self, topic: str | None = None, partitions: Sequence[int] = ()
    ) -> list[Reassignment]:
        """List reassignments in progress: all, or those of the given partitions."""
        topics = None
        if topic is not None:
            topics = [ListPartitionReassignmentsTopics(topic, list(partitions))]
        request = ListPartitionReassignmentsRequest(
            timeout_ms=self._cluster.timeout_ms, topics=topics
        )
        cluster = self._cluster
        answer = cluster.query(request, ListPartitionReassignmentsResponse, cluster.controller_id)
        return sorted(
            Reassignment(
                one.name,
                part.partition_index,
                part.replicas,
                part.adding_replicas,
                part.removing_replicas,
            )
            for one in answer.topics
            for part in one.partitions
        )

    def alter(
        self, moves: Mapping[tuple[str, int], Sequence[int] | None]
    ) -> list[PartitionOutcome]:
        """Assign new replicas to partitions; None cancels a reassignment in progress."""
        replicas = {place: None if new is None else list(new) for place, new in moves.items()}
        topics = [
            ReassignableTopic(
                topic, [ReassignablePartition(one, replicas[topic, one]) for one in numbers]
            )
            for topic, numbers in by_topic(moves).items()
        ]
        cluster = self._cluster
        request = AlterPartitionReassignmentsRequest(timeout_ms=cluster.timeout_ms, topics=topics)
        answer = cluster.query(request, AlterPartitionReassignmentsResponse, cluster.controller_id)
        return sorted(
            PartitionOutcome(
                one.name,
                part.partition_index,
                error_or_none(part.error_code),
                part.error_message if part.error_code else None,
            )
            for one in answer.responses
            for part in one.partitions
        )
