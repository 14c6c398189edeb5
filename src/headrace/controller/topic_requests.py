"""CreateTopics, DeleteTopics and CreatePartitions, from request to response."""

from collections import Counter
from collections.abc import Sequence

from headrace.controller import topics
from headrace.controller.decision import Decision
from headrace.controller.requests import Context
from headrace.controller.topics import TopicResult
from headrace.errors import (
    InvalidRequest,
    KafkaError,
    TopicAuthorizationFailed,
    TopicDeletionDisabled,
)
from headrace.metadata.image import MetadataImage
from headrace.protocol.metadata_topic import METADATA_TOPIC
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
from headrace.protocol.uuids import ZERO
from headrace.security.access import Access
from headrace.security.acls import Operation, ResourceType
from headrace.settings.broker_layers import BrokerLayers
from headrace.settings.describe import describe_topic

_DENIED = "Authorization failed."


def create_topics(
    image: MetadataImage, request: CreateTopicsRequest, context: Context
) -> Decision[CreateTopicsResponse]:
    denied = _uncreatable([topic.name for topic in request.topics], context.access)
    records, results = topics.create_topics(
        image,
        [topic for topic in request.topics if topic.name not in denied],
        context.defaults,
        context.rules(image),
        validate_only=request.validate_only,
        charge=context.charge,
    )
    layers = context.layers(image)
    answers = {one.name: _created(one, layers, context) for one in results}
    answers |= {name: not_created(name, TopicAuthorizationFailed(_DENIED)) for name in denied}
    in_order = [answers[name] for name in dict.fromkeys(topic.name for topic in request.topics)]
    return Decision(records, CreateTopicsResponse(topics=in_order))


def _uncreatable(names: Sequence[str], access: Access) -> set[str]:
    """Return the topics that the caller may not create.

    As in Kafka, topics that are invalid in any case are not among them.
    """
    if access.allows_on_cluster(Operation.CREATE, is_audited=False):
        return set()
    return {
        name
        for name, count in Counter(names).items()
        if count == 1
        and name != METADATA_TOPIC
        and not access.allows(Operation.CREATE, ResourceType.TOPIC, name)
    }


def _created(result: TopicResult, layers: BrokerLayers, context: Context) -> CreatableTopicResult:
    name = result.name or ""
    if result.error is not None:
        return not_created(name, result.error)
    if not context.access.allows(
        Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, name, is_audited=False
    ):
        return CreatableTopicResult(
            name=name,
            topic_id=result.topic_id,
            error_message=None,
            topic_config_error_code=TopicAuthorizationFailed.code,
        )
    return CreatableTopicResult(
        name=name,
        topic_id=result.topic_id,
        error_message=None,
        num_partitions=result.num_partitions,
        replication_factor=result.replication_factor,
        configs=_configs(result, layers) if context.version >= 5 else [],
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
    wanted = topics_to_delete(request)
    denied = _undeletable(image, wanted, context.access)
    records, results = topics.delete_topics(
        image, [one for place, one in enumerate(wanted) if place not in denied], context.charge
    )
    answers = [
        DeletableTopicResult(
            name=result.name,
            topic_id=result.topic_id,
            error_code=result.error.code if result.error else 0,
            error_message=str(result.error) if result.error else None,
        )
        for result in results
    ]
    return Decision(records, DeleteTopicsResponse(responses=[*denied.values(), *answers]))


def _undeletable(
    image: MetadataImage, wanted: Sequence[DeleteTopicState], access: Access
) -> dict[int, DeletableTopicResult]:
    """Return the places of the topics that the caller may not delete, with their results.

    Requests that are invalid in any case are not among them. A topic that the caller may not see
    is not named, and an absent one looks the same.
    """
    if access.allows_on_cluster(Operation.DELETE, is_audited=False):
        return {}
    counts = Counter((one.name, ZERO if one.name else one.topic_id) for one in wanted)
    denied = {}
    for place, one in enumerate(wanted):
        is_by_name = one.name is not None
        topic = None if is_by_name else image.topics_by_id.get(one.topic_id)
        name = one.name if is_by_name else topic and topic.name
        is_repeated = counts[one.name, ZERO if one.name else one.topic_id] > 1
        if not name or is_repeated or (is_by_name and one.topic_id != ZERO):
            continue
        may_see = access.allows(Operation.DESCRIBE, ResourceType.TOPIC, name)
        if may_see and is_by_name and name not in image.topics:
            continue
        if not may_see or not access.allows(Operation.DELETE, ResourceType.TOPIC, name):
            denied[place] = DeletableTopicResult(
                name=name if may_see or is_by_name else None,
                topic_id=one.topic_id,
                error_code=TopicAuthorizationFailed.code,
                error_message=_DENIED,
            )
    return denied


def topics_to_delete(request: DeleteTopicsRequest) -> list[DeleteTopicState]:
    """Return the topics in the shape of v6, where each is named by name or by id."""
    return request.topics or [DeleteTopicState(name=name) for name in request.topic_names]


def create_partitions(
    image: MetadataImage, request: CreatePartitionsRequest, context: Context
) -> Decision[CreatePartitionsResponse]:
    counts = Counter(topic.name for topic in request.topics)
    denied = {
        name
        for name, count in counts.items()
        if count == 1 and not context.access.allows(Operation.ALTER, ResourceType.TOPIC, name)
    }
    records, results = topics.create_partitions(
        image,
        [topic for topic in request.topics if topic.name not in denied],
        validate_only=request.validate_only,
        charge=context.charge,
    )
    answers = {one.name: partitions_result(one.name or "", one.error) for one in results}
    answers |= {name: partitions_result(name, TopicAuthorizationFailed(_DENIED)) for name in denied}
    return Decision(records, CreatePartitionsResponse(results=[answers[name] for name in counts]))


def partitions_result(name: str, error: KafkaError | None) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(
        name=name,
        error_code=error.code if error else 0,
        error_message=str(error) if error else None,
    )
