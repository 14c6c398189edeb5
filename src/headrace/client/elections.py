"""Elections of leaders by the wire: back to the preferred replicas, or to any that is left."""

from collections.abc import Iterable
from enum import IntEnum

from headrace.client.cluster import Cluster, error_name
from headrace.client.descriptions import PartitionOutcome
from headrace.errors import error_for
from headrace.protocol.schemas.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)


class ElectionType(IntEnum):
    """Who may be elected."""

    PREFERRED = 0
    """The first replica, if it is in sync."""
    UNCLEAN = 1
    """Any replica, if none that is in sync is left: records may be lost."""


class Elections:
    """Leaders of partitions, chosen anew."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def hold(
        self, kind: ElectionType, partitions: Iterable[tuple[str, int]] | None = None
    ) -> list[PartitionOutcome]:
        """Elect leaders of these partitions, or of all: then those that need none are left out.

        Of one that is named and needs none the outcome is ELECTION_NOT_NEEDED.
        """
        request = ElectLeadersRequest(
            election_type=kind,
            topic_partitions=None if partitions is None else _by_topic(partitions),
            timeout_ms=int(self._cluster.timeout_s * 1000),
        )

        def attempt() -> list[PartitionOutcome]:
            answer = self._cluster.ask_controller(request, ElectLeadersResponse)
            if answer.error_code:
                raise error_for(answer.error_code, error_name(answer.error_code))
            return sorted(
                PartitionOutcome(
                    one.topic,
                    part.partition_id,
                    error_name(part.error_code) if part.error_code else None,
                    part.error_message if part.error_code else None,
                )
                for one in answer.replica_election_results
                for part in one.partition_result
            )

        return self._cluster.retry(attempt)


def _by_topic(partitions: Iterable[tuple[str, int]]) -> list[TopicPartitions]:
    topics: dict[str, TopicPartitions] = {}
    for topic, number in sorted(set(partitions)):
        topics.setdefault(topic, TopicPartitions(topic=topic, partitions=[]))
        topics[topic].partitions.append(number)
    return list(topics.values())
