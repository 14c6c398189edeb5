"""CreateTopics v2-7: create topics, or only check whether they could be.

v5 tells the configs that the new topic has (KIP-525), v7 its id.
"""

from headrace.broker.api.registry import Call, api
from headrace.broker.configs.config_layers import layers_of, rules_of
from headrace.broker.deadlines import check_deadline
from headrace.controller import topics
from headrace.controller.topics import TopicResult
from headrace.errors import KafkaError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.create_topics import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from headrace.settings.broker_layers import BrokerLayers
from headrace.settings.describe import describe_topic


def _refuse(request: CreateTopicsRequest, error: KafkaError, version: int) -> CreateTopicsResponse:
    names = dict.fromkeys(topic.name for topic in request.topics)
    return CreateTopicsResponse(topics=[_failed(name, error) for name in names])


@api(ApiKey.CREATE_TOPICS, versions=range(2, 8), refuse=_refuse)
async def create_topics(request: CreateTopicsRequest, call: Call) -> CreateTopicsResponse:
    check_deadline(request.timeout_ms)
    controller, rules = call.broker.controller, rules_of(call.broker)
    results = await controller.submit(
        lambda image: topics.create_topics(
            image,
            request.topics,
            controller.defaults,
            rules,
            validate_only=request.validate_only,
        )
    )
    layers = layers_of(call.broker)
    return CreateTopicsResponse(topics=[_result(one, layers, call.version) for one in results])


def _result(result: TopicResult, layers: BrokerLayers, version: int) -> CreatableTopicResult:
    name = result.name or ""
    if result.error is not None:
        return _failed(name, result.error)
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


def _failed(name: str, error: KafkaError) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error.code, error_message=str(error) or None)
