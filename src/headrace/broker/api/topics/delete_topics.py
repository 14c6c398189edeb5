"""DeleteTopics v1-6: delete topics by name, or from v6 on by id."""

from headrace.broker.api.registry import Call, api
from headrace.broker.deadlines import check_deadline
from headrace.controller.topic_requests import topics_to_delete
from headrace.errors import KafkaError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import Alternative, for_each

_RIGHTS = (
    for_each(
        Operation.DELETE,
        ResourceType.TOPIC,
        instead=(Alternative(Operation.DELETE, ResourceType.CLUSTER),),
    ),
    for_each(Operation.DESCRIBE, ResourceType.TOPIC, "topics by id"),
)


def _refuse(request: DeleteTopicsRequest, error: KafkaError, version: int) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(
                name=topic.name,
                topic_id=topic.topic_id,
                error_code=error.code,
                error_message=str(error) or None,
            )
            for topic in topics_to_delete(request)
        ]
    )


@api(ApiKey.DELETE_TOPICS, versions=range(1, 7), rights=_RIGHTS, refuse=_refuse)
async def delete_topics(request: DeleteTopicsRequest, call: Call) -> DeleteTopicsResponse:
    check_deadline(request.timeout_ms)
    response: DeleteTopicsResponse = await call.broker.controller.ask(
        request, call.version, call.caller
    )
    return response
