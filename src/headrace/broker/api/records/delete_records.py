"""DeleteRecords v0-2: forget all records before an offset; -1 stands for the high watermark.

Kafka waits until every live replica has moved its log start. This node is the only replica, so
the answer is complete at once and the timeout never counts.
"""

from headrace.broker.api.registry import Call, api
from headrace.broker.topics.topology import INTERNAL_TOPICS
from headrace.errors import (
    InvalidTopicException,
    KafkaError,
    OffsetOutOfRange,
    PolicyViolation,
)
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

_HIGH_WATERMARK = -1
_NO_LOW_WATERMARK = -1


def _refuse(
    request: DeleteRecordsRequest, error: KafkaError, version: int
) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_failed(one.partition_index, error) for one in topic.partitions],
            )
            for topic in request.topics
        ]
    )


@api(ApiKey.DELETE_RECORDS, versions=range(3), refuse=_refuse)
def delete_records(request: DeleteRecordsRequest, call: Call) -> DeleteRecordsResponse:
    topics: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        # Named twice, a partition is answered once, for the offset that came last.
        offsets = {one.partition_index: one.offset for one in topic.partitions}
        if offsets:
            topics.setdefault(topic.name, {}).update(offsets)
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=name,
                partitions=[_delete(name, index, offset, call) for index, offset in asked.items()],
            )
            for name, asked in topics.items()
        ]
    )


def _delete(topic: str, index: int, offset: int, call: Call) -> DeleteRecordsPartitionResult:
    try:
        partition = call.broker.partitions.find(topic, index)
        if topic in INTERNAL_TOPICS:
            raise InvalidTopicException(f"{topic} is internal; records of it cannot be deleted")
        log = partition.online_log()
        if "delete" not in log.config.cleanup_policy:
            raise PolicyViolation(
                f"cleanup.policy of {topic} does not contain delete; add it first"
            )
        if offset == _HIGH_WATERMARK:
            offset = log.high_watermark
        if offset < 0:
            raise OffsetOutOfRange(f"there is no offset {offset}")
        low_watermark = log.delete_records_before(offset)
    except KafkaError as error:
        return _failed(index, error)
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=low_watermark)


def _failed(index: int, error: KafkaError) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=_NO_LOW_WATERMARK, error_code=error.code
    )
