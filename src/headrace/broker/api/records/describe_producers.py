"""DescribeProducers v0: the idempotent producers that a partition remembers (KIP-664).

Followers answer, too: an operator who looks for hanging transactions asks a certain broker.
"""

from headrace.broker.api.registry import Call, api
from headrace.broker.topics.topology import why_missing
from headrace.errors import InvalidTopicException, KafkaError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.refusals import refused
from headrace.protocol.schemas.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_each

_RIGHTS = (for_each(Operation.READ, ResourceType.TOPIC),)


@api(ApiKey.DESCRIBE_PRODUCERS, versions=range(1), rights=_RIGHTS)
def describe_producers(request: DescribeProducersRequest, call: Call) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[
                    _partition(topic.name, index, call) for index in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )


def _partition(topic: str, index: int, call: Call) -> PartitionResponse:
    try:
        missing = None if topic in call.broker.image.topics else why_missing(topic)
        if not isinstance(missing, InvalidTopicException):
            call.access.check(Operation.READ, ResourceType.TOPIC, topic)
        if missing is not None:
            raise missing
        log = call.broker.partitions.hosted(topic, index).online_log()
    except KafkaError as error:
        return refused(PartitionResponse, index, error)
    return PartitionResponse(
        partition_index=index,
        active_producers=[
            ProducerState(
                producer_id=producer.id,
                producer_epoch=producer.epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.transaction_first_offset,
            )
            for producer in log.producers.entries.values()
        ],
    )
