"""DescribeProducers v0: the idempotent producers that a partition remembers (KIP-664)."""

from headrace.broker.api.registry import Call, api
from headrace.broker.topics.topology import why_missing
from headrace.errors import KafkaError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


def _refuse(
    request: DescribeProducersRequest, error: KafkaError, version: int
) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[_failed(index, error) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


@api(ApiKey.DESCRIBE_PRODUCERS, versions=range(1), refuse=_refuse)
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
        log = call.broker.partitions.find(topic, index).online_log()
    except KafkaError as error:
        return _failed(index, error)
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


def _failed(index: int, error: KafkaError) -> PartitionResponse:
    return PartitionResponse(
        partition_index=index, error_code=error.code, error_message=str(error) or None
    )
