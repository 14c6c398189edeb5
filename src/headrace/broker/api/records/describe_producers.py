"""DescribeProducers v0: the idempotent producers that a partition remembers (KIP-664).

Followers answer, too: an operator who looks for hanging transactions asks a certain broker.
"""

from headrace.broker.api.registry import Call, api
from headrace.broker.topics.topology import why_missing
from headrace.errors import KafkaError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.refusals import refused
from headrace.protocol.schemas.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


@api(ApiKey.DESCRIBE_PRODUCERS, versions=range(1))
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
        if topic not in call.broker.image.topics:
            raise why_missing(topic)
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
