"""ElectLeaders v0-2: make the preferred replica lead, or, from v1 on, any that is left.

A null list means every partition; those that need no election are then not in the answer.
"""

from headrace.broker.api.registry import Call, api
from headrace.broker.deadlines import check_deadline
from headrace.controller import elections
from headrace.controller.elections import ElectionResult
from headrace.errors import KafkaError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)


def _refuse(request: ElectLeadersRequest, error: KafkaError, version: int) -> ElectLeadersResponse:
    results = [
        ElectionResult(topic.topic, index, error)
        for topic in request.topic_partitions or ()
        for index in topic.partitions
    ]
    return ElectLeadersResponse(
        error_code=error.code if version >= 1 else 0,
        replica_election_results=_by_topic(results),
    )


@api(ApiKey.ELECT_LEADERS, versions=range(3), refuse=_refuse)
async def elect_leaders(request: ElectLeadersRequest, call: Call) -> ElectLeadersResponse:
    check_deadline(request.timeout_ms)
    controller = call.broker.controller
    results = await controller.submit(
        lambda image: elections.elect_leaders(
            image, request.election_type, request.topic_partitions, controller.defaults
        )
    )
    return ElectLeadersResponse(replica_election_results=_by_topic(results))


def _by_topic(results: list[ElectionResult]) -> list[ReplicaElectionResult]:
    topics: dict[str, ReplicaElectionResult] = {}
    for result in results:
        if result.topic not in topics:
            topics[result.topic] = ReplicaElectionResult(topic=result.topic)
        topics[result.topic].partition_result.append(
            PartitionResult(
                partition_id=result.partition,
                error_code=result.error.code if result.error else 0,
                error_message=str(result.error) if result.error else None,
            )
        )
    return list(topics.values())
