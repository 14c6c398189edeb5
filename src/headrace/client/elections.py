"""Elections of partition leaders: preferred replicas, or any remaining replica."""

from collections.abc import Iterable
from enum import IntEnum

from headrace.client.cluster import Cluster, by_topic, error_or_none
from headrace.client.descriptions import PartitionOutcome
from headrace.protocol.schemas.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)


class ElectionType(IntEnum):
    """Candidates of an election."""

    PREFERRED = 0
    """The first replica, if it is in sync."""
    UNCLEAN = 1
    """Any replica, if none in sync is left; records may be lost."""


class Elections:
    """Leader elections of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def hold(
        self, kind: ElectionType, partitions: Iterable[tuple[str, int]] | None = None
    ) -> list[PartitionOutcome]:
        """Elect leaders of the given partitions, or of all partitions that need an election.

        A given partition that needs no election has the outcome ELECTION_NOT_NEEDED.
        """
        request = ElectLeadersRequest(
            election_type=kind,
            topic_partitions=(
                None
                if partitions is None
                else [TopicPartitions(*one) for one in by_topic(partitions).items()]
            ),
            timeout_ms=self._cluster.timeout_ms,
        )
        cluster = self._cluster
        answer = cluster.query(request, ElectLeadersResponse, cluster.controller_id)
        return sorted(
            PartitionOutcome(
                one.topic,
                part.partition_id,
                error_or_none(part.error_code),
                part.error_message if part.error_code else None,
            )
            for one in answer.replica_election_results
            for part in one.partition_result
        )
