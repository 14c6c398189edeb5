"""DeleteTopics v1-6: delete topics by name, or from v6 on by id."""

from headrace.broker.api.registry import Call, api
from headrace.broker.deadlines import check_deadline
from headrace.controller import topics
from headrace.errors import InvalidRequest, KafkaError, TopicDeletionDisabled
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
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
            for topic in _asked(request)
        ]
    )


@api(ApiKey.DELETE_TOPICS, versions=range(1, 7), refuse=_refuse)
async def delete_topics(request: DeleteTopicsRequest, call: Call) -> DeleteTopicsResponse:
    if not call.broker.settings.delete_topic_enable:
        reason = "delete.topic.enable is false on this broker"
        raise InvalidRequest(reason) if call.version < 3 else TopicDeletionDisabled(reason)
    check_deadline(request.timeout_ms)
    asked = _asked(request)
    results = await call.broker.controller.submit(lambda image: topics.delete_topics(image, asked))
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(
                name=result.name,
                topic_id=result.topic_id,
                error_code=result.error.code if result.error else 0,
                error_message=str(result.error) if result.error else None,
            )
            for result in results
        ]
    )


def _asked(request: DeleteTopicsRequest) -> list[DeleteTopicState]:
    """The topics in the shape of v6, where each is named by name or by id."""
    return request.topics or [DeleteTopicState(name=name) for name in request.topic_names]
