"""CreatePartitions v0-3: give topics more partitions."""

from headrace.broker.api.registry import Call, api
from headrace.broker.deadlines import check_deadline
from headrace.controller import topics
from headrace.errors import KafkaError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)


def _refuse(
    request: CreatePartitionsRequest, error: KafkaError, version: int
) -> CreatePartitionsResponse:
    names = dict.fromkeys(topic.name for topic in request.topics)
    return CreatePartitionsResponse(results=[_result(name, error) for name in names])


@api(ApiKey.CREATE_PARTITIONS, versions=range(4), refuse=_refuse)
async def create_partitions(
    request: CreatePartitionsRequest, call: Call
) -> CreatePartitionsResponse:
    check_deadline(request.timeout_ms)
    results = await call.broker.controller.submit(
        lambda image: topics.create_partitions(
            image, request.topics, validate_only=request.validate_only
        )
    )
    return CreatePartitionsResponse(
        results=[_result(result.name or "", result.error) for result in results]
    )


def _result(name: str, error: KafkaError | None) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(
        name=name,
        error_code=error.code if error else 0,
        error_message=str(error) if error else None,
    )
