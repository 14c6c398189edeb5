"""ElectLeaders v0-2: elect the preferred replica, or, from v1 on, any live one.

A null list means all partitions; the response then omits partitions that need no election.
"""

from headrace.broker.api.registry import Call, api
from headrace.broker.deadlines import check_deadline
from headrace.controller.cluster_requests import by_topic
from headrace.controller.elections import ElectionResult
from headrace.errors import KafkaError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_request

_RIGHTS = (for_request(Operation.ALTER, ResourceType.CLUSTER),)


def _refuse(request: ElectLeadersRequest, error: KafkaError, version: int) -> ElectLeadersResponse:
    results = [
        ElectionResult(topic.topic, index, error)
        for topic in request.topic_partitions or ()
        for index in topic.partitions
    ]
    return ElectLeadersResponse(
        error_code=error.code if version >= 1 else 0,
        replica_election_results=by_topic(results),
    )


@api(ApiKey.ELECT_LEADERS, versions=range(3), rights=_RIGHTS, refuse=_refuse)
async def elect_leaders(request: ElectLeadersRequest, call: Call) -> ElectLeadersResponse:
    check_deadline(request.timeout_ms)
    response: ElectLeadersResponse = await call.broker.controller.ask(
        request, call.version, call.caller
    )
    return response
