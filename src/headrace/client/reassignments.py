"""Partitions on their way from some brokers to others, by the wire."""

from collections.abc import Mapping, Sequence

import msgspec

from headrace.client.cluster import Cluster, error_name
from headrace.client.descriptions import PartitionOutcome
from headrace.errors import error_for
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
    """One partition that is being moved."""

    topic: str
    partition: int
    replicas: list[int]
    adding_replicas: list[int]
    removing_replicas: list[int]


class Reassignments:
    """What a cluster is moving, and what it is to move."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def under_way(
        self, topic: str | None = None, partitions: Sequence[int] = ()
    ) -> list[Reassignment]:
        """All that is being moved, or what of these partitions is."""
        topics = None
        if topic is not None:
            topics = [ListPartitionReassignmentsTopics(topic, list(partitions))]
        request = ListPartitionReassignmentsRequest(
            timeout_ms=int(self._cluster.timeout_s * 1000), topics=topics
        )

        def attempt() -> list[Reassignment]:
            answer = self._cluster.ask_controller(request, ListPartitionReassignmentsResponse)
            if answer.error_code:
                reason = answer.error_message or error_name(answer.error_code)
                raise error_for(answer.error_code, reason)
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

        return self._cluster.retry(attempt)

    def alter(
        self, moves: Mapping[tuple[str, int], Sequence[int] | None]
    ) -> list[PartitionOutcome]:
        """Let partitions have these replicas from now on; None stops a move that is under way."""
        topics: dict[str, ReassignableTopic] = {}
        for (topic, number), replicas in sorted(moves.items()):
            topics.setdefault(topic, ReassignableTopic(name=topic, partitions=[]))
            wanted = None if replicas is None else list(replicas)
            topics[topic].partitions.append(ReassignablePartition(number, wanted))
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=int(self._cluster.timeout_s * 1000), topics=list(topics.values())
        )

        def attempt() -> list[PartitionOutcome]:
            answer = self._cluster.ask_controller(request, AlterPartitionReassignmentsResponse)
            if answer.error_code:
                reason = answer.error_message or error_name(answer.error_code)
                raise error_for(answer.error_code, reason)
            return sorted(
                PartitionOutcome(
                    one.name,
                    part.partition_index,
                    error_name(part.error_code) if part.error_code else None,
                    part.error_message if part.error_code else None,
                )
                for one in answer.responses
                for part in one.partitions
            )

        return self._cluster.retry(attempt)
