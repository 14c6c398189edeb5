"""CreatePartitions v0-3: add partitions to topics."""

from headrace.broker.api.registry import Call, api
from headrace.broker.deadlines import check_deadline
from headrace.controller.topic_requests import partitions_result
from headrace.errors import KafkaError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
)
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_each

_RIGHTS = (for_each(Operation.ALTER, ResourceType.TOPIC),)


def _refuse(
    request: CreatePartitionsRequest, error: KafkaError, version: int
) -> CreatePartitionsResponse:
    names = dict.fromkeys(topic.name for topic in request.topics)
    return CreatePartitionsResponse(results=[partitions_result(name, error) for name in names])


@api(ApiKey.CREATE_PARTITIONS, versions=range(4), rights=_RIGHTS, refuse=_refuse)
async def create_partitions(
    request: CreatePartitionsRequest, call: Call
) -> CreatePartitionsResponse:
    check_deadline(request.timeout_ms)
    response: CreatePartitionsResponse = await call.broker.controller.ask(
        request, call.version, call.caller
    )
    return response
