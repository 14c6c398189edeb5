"""CreateTopics v2-7: create topics, or only validate the request.

v5 returns the configs of the new topic (KIP-525), v7 its id.
"""

from headrace.broker.api.registry import Call, api
from headrace.broker.deadlines import check_deadline
from headrace.controller.topic_requests import not_created
from headrace.errors import KafkaError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.create_topics import CreateTopicsRequest, CreateTopicsResponse
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import Alternative, for_each, to_list

_RIGHTS = (
    for_each(
        Operation.CREATE,
        ResourceType.TOPIC,
        instead=(Alternative(Operation.CREATE, ResourceType.CLUSTER),),
    ),
    to_list(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, "configs of new topics"),
)


def _refuse(request: CreateTopicsRequest, error: KafkaError, version: int) -> CreateTopicsResponse:
    names = dict.fromkeys(topic.name for topic in request.topics)
    return CreateTopicsResponse(topics=[not_created(name, error) for name in names])


@api(ApiKey.CREATE_TOPICS, versions=range(2, 8), rights=_RIGHTS, refuse=_refuse)
async def create_topics(request: CreateTopicsRequest, call: Call) -> CreateTopicsResponse:
    check_deadline(request.timeout_ms)
    response: CreateTopicsResponse = await call.broker.controller.ask(
        request, call.version, call.caller
    )
    return response
