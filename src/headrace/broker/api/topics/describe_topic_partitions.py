"""DescribeTopicPartitions v0: the partitions of topics, page by page (KIP-966).

Topics come in the order of their names. The cursor in the response is
the start of the next page; the client returns it, and it must name a topic of the request.
"""

from headrace.broker.api.registry import Call, api
from headrace.broker.authorized_operations import on_topic
from headrace.broker.topics.topology import (
    INTERNAL_TOPICS,
    NO_NODE,
    leader_of,
    offline_replicas,
    why_missing,
)
from headrace.errors import InvalidRequest, KafkaError, TopicAuthorizationFailed
from headrace.metadata.image import MetadataImage, PartitionImage
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_each, to_list

_RIGHTS = (
    for_each(Operation.DESCRIBE, ResourceType.TOPIC, "topics by name"),
    to_list(Operation.DESCRIBE, ResourceType.TOPIC, "all topics"),
)


@api(ApiKey.DESCRIBE_TOPIC_PARTITIONS, versions=range(1), rights=_RIGHTS)
def describe_topic_partitions(
    request: DescribeTopicPartitionsRequest, call: Call
) -> DescribeTopicPartitionsResponse:
    image, access = call.broker.image, call.access
    limit = min(
        request.response_partition_limit, call.broker.settings.max_request_partition_size_limit
    )
    room = max(limit, 1)
    response = DescribeTopicPartitionsResponse(topics=[])
    names = _names(request, image)
    hidden = set(access.denied(Operation.DESCRIBE, ResourceType.TOPIC, names))
    for name in names:
        if name in hidden:
            continue
        if room == 0:
            response.next_cursor = DescribeTopicPartitionsResponseCursor(
                topic_name=name, partition_index=0
            )
            break
        start = _start_of(name, request)
        described = _topic(name, image, range(start, start + room), call)
        response.topics.append(described)
        room -= len(described.partitions)
        topic = image.topics.get(name)
        if topic is not None and start + len(described.partitions) < len(topic.partitions):
            reached = start + len(described.partitions)
            response.next_cursor = DescribeTopicPartitionsResponseCursor(
                topic_name=name, partition_index=reached
            )
            break
    if request.topics:
        response.topics += [_refused(name) for name in names if name in hidden]
    return response


def _names(request: DescribeTopicPartitionsRequest, image: MetadataImage) -> list[str]:
    """The topics from the cursor on, in order; an empty list selects all topics."""
    cursor = request.cursor
    first = "" if cursor is None else cursor.topic_name
    asked = {topic.name for topic in request.topics} or image.topics.keys()
    names = sorted(name for name in asked if name >= first)
    if cursor is not None and request.topics and cursor.topic_name not in names:
        raise InvalidRequest(f"the cursor is at topic {first}, which is not in the request")
    if cursor is not None and cursor.partition_index < 0:
        raise InvalidRequest(
            f"the cursor is at partition {cursor.partition_index}; it must be 0 or more"
        )
    return names


def _start_of(name: str, request: DescribeTopicPartitionsRequest) -> int:
    cursor = request.cursor
    return cursor.partition_index if cursor is not None and cursor.topic_name == name else 0


def _refused(name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(name=name, error_code=TopicAuthorizationFailed.code)


def _topic(
    name: str, image: MetadataImage, indexes: range, call: Call
) -> DescribeTopicPartitionsResponseTopic:
    described = DescribeTopicPartitionsResponseTopic(
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=on_topic(call.access, name),
    )
    topic = image.topics.get(name)
    if topic is None:
        described.error_code = why_missing(name).code
        return described
    described.topic_id = topic.id
    described.partitions = [
        _partition(index, topic.partitions[index], image, call.listener)
        for index in indexes[: max(len(topic.partitions) - indexes.start, 0)]
    ]
    return described


def _partition(
    index: int, partition: PartitionImage, image: MetadataImage, listener: str
) -> DescribeTopicPartitionsResponsePartition:
    try:
        leader = leader_of(image, partition, listener)
    except KafkaError:
        leader = NO_NODE
    return DescribeTopicPartitionsResponsePartition(
        partition_index=index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.elr),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=offline_replicas(image, partition, listener),
    )
