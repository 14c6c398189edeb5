"""DeleteRecords v0-2: delete all records before an offset; -1 means the high watermark.

The answer waits until every live replica has moved the start of its log, which followers report
with their fetches. A sole replica is answered at once.
"""

from collections.abc import Coroutine
from typing import Any, NamedTuple

from headrace.broker.api.registry import Call, api
from headrace.broker.topics.topology import INTERNAL_TOPICS
from headrace.errors import (
    NONE,
    InvalidTopicException,
    KafkaError,
    OffsetOutOfRange,
    PolicyViolation,
    RequestTimedOut,
)
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from headrace.replication.delayed import until
from headrace.replication.partition import Partition
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_each

_RIGHTS = (for_each(Operation.DELETE, ResourceType.TOPIC),)
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


@api(ApiKey.DELETE_RECORDS, versions=range(3), rights=_RIGHTS, refuse=_refuse)
def delete_records(
    request: DeleteRecordsRequest, call: Call
) -> DeleteRecordsResponse | Coroutine[Any, Any, DeleteRecordsResponse]:
    topics: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        # A repeated partition is answered once, for its last offset.
        offsets = {one.partition_index: one.offset for one in topic.partitions}
        if offsets:
            topics.setdefault(topic.name, {}).update(offsets)
    waiting: list[_Waiting] = []
    response = DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=name,
                partitions=[
                    _delete(name, index, offset, call, waiting) for index, offset in asked.items()
                ],
            )
            for name, asked in topics.items()
        ]
    )
    if not waiting:
        return response
    return _answer_later(response, waiting, request.timeout_ms)


class _Waiting(NamedTuple):
    """A partition whose followers still have the deleted records, and its place in the answer."""

    partition: Partition
    offset: int
    result: DeleteRecordsPartitionResult
    call: Call

    def is_done(self) -> bool:
        """Fill in the result; false while a live replica has records before the offset."""
        try:
            self.partition.check_led()
            low_watermark = _low_watermark(self.partition, self.call)
        except KafkaError as error:
            self.result.error_code = error.code
            return True
        if low_watermark < self.offset:
            return False
        self.result.low_watermark = low_watermark
        self.result.error_code = NONE
        return True


async def _answer_later(
    response: DeleteRecordsResponse, waiting: list[_Waiting], timeout_ms: int
) -> DeleteRecordsResponse:
    def are_done() -> bool:
        return not [one for one in waiting if not one.is_done()]

    await until(are_done, [one.partition for one in waiting], timeout_ms / 1000)
    return response


def _delete(
    topic: str, index: int, offset: int, call: Call, waiting: list[_Waiting]
) -> DeleteRecordsPartitionResult:
    try:
        call.access.check(Operation.DELETE, ResourceType.TOPIC, topic)
        partition = call.broker.partitions.led(topic, index)
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
        partition.delete_records_before(offset)
        low_watermark = _low_watermark(partition, call)
    except KafkaError as error:
        return _failed(index, error)
    if low_watermark >= offset:
        return DeleteRecordsPartitionResult(partition_index=index, low_watermark=low_watermark)
    # Stays like this if the time is up.
    result = _failed(index, RequestTimedOut("the replicas did not delete the records in time"))
    waiting.append(_Waiting(partition, offset, result, call))
    return result


def _low_watermark(partition: Partition, call: Call) -> int:
    """Return the first offset that a live replica still has."""
    start = partition.online_log().log_start_offset
    if partition.in_sync is None:
        return start
    brokers = call.broker.image.brokers
    live = {one.id for one in brokers.values() if not one.fenced}
    return partition.in_sync.low_watermark(start, live)


def _failed(index: int, error: KafkaError) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=_NO_LOW_WATERMARK, error_code=error.code
    )
