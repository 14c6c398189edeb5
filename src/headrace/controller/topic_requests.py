"""CreateTopics, DeleteTopics and CreatePartitions, from request to response."""

from headrace.controller import topics
from headrace.controller.decision import Decision
from headrace.controller.requests import Context
from headrace.controller.topics import TopicResult
from headrace.errors import InvalidRequest, KafkaError, TopicDeletionDisabled
from headrace.metadata.image import MetadataImage
from headrace.protocol.schemas.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from headrace.protocol.schemas.create_topics import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from headrace.protocol.schemas.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from headrace.settings.broker_layers import BrokerLayers
from headrace.settings.describe import describe_topic


def create_topics(
    image: MetadataImage, request: CreateTopicsRequest, context: Context
) -> Decision[CreateTopicsResponse]:
    records, results = topics.create_topics(
        image,
        request.topics,
        context.defaults,
        context.rules(image),
        validate_only=request.validate_only,
    )
    layers = context.layers(image)
    answers = [_created(one, layers, context.version) for one in results]
    return Decision(records, CreateTopicsResponse(topics=answers))


def _created(result: TopicResult, layers: BrokerLayers, version: int) -> CreatableTopicResult:
    name = result.name or ""
    if result.error is not None:
        return not_created(name, result.error)
    return CreatableTopicResult(
        name=name,
        topic_id=result.topic_id,
        error_message=None,
        num_partitions=result.num_partitions,
        replication_factor=result.replication_factor,
        configs=_configs(result, layers) if version >= 5 else [],
    )


def _configs(result: TopicResult, layers: BrokerLayers) -> list[CreatableTopicConfigs]:
    return [
        CreatableTopicConfigs(
            name=config.name,
            value=config.value,
            read_only=config.is_read_only,
            config_source=config.source,
            is_sensitive=config.definition.is_sensitive,
        )
        for config in describe_topic(result.configs, layers)
    ]


def not_created(name: str, error: KafkaError) -> CreatableTopicResult:
    """Return the result for a topic that was rejected."""
    return CreatableTopicResult(name=name, error_code=error.code, error_message=str(error) or None)


def delete_topics(
    image: MetadataImage, request: DeleteTopicsRequest, context: Context
) -> Decision[DeleteTopicsResponse]:
    if not context.settings.delete_topic_enable:
        reason = "delete.topic.enable is false on this broker"
        raise InvalidRequest(reason) if context.version < 3 else TopicDeletionDisabled(reason)
    records, results = topics.delete_topics(image, topics_to_delete(request))
    answers = [
        DeletableTopicResult(
            name=result.name,
            topic_id=result.topic_id,
            error_code=result.error.code if result.error else 0,
            error_message=str(result.error) if result.error else None,
        )
        for result in results
    ]
    return Decision(records, DeleteTopicsResponse(responses=answers))


def topics_to_delete(request: DeleteTopicsRequest) -> list[DeleteTopicState]:
    """Return the topics in the shape of v6, where each is named by name or by id."""
    return request.topics or [DeleteTopicState(name=name) for name in request.topic_names]


def create_partitions(
    image: MetadataImage, request: CreatePartitionsRequest, context: Context
) -> Decision[CreatePartitionsResponse]:
    records, results = topics.create_partitions(
        image, request.topics, validate_only=request.validate_only
    )
    answers = [partitions_result(result.name or "", result.error) for result in results]
    return Decision(records, CreatePartitionsResponse(results=answers))


def partitions_result(name: str, error: KafkaError | None) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(
        name=name,
        error_code=error.code if error else 0,
        error_message=str(error) if error else None,
    )
