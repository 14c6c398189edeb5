"""ReadShareGroupStateSummary v0-1: where share partitions stand, without the details.

v1 adds the count of completed deliveries, from which the lag is told.
"""

from headrace.broker.api.registry import Call, api
from headrace.errors import KafkaError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.read_share_group_state_summary import (
    PartitionResult,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)
from headrace.protocol.uuids import Uuid
from headrace.shares.state import SharePartitionKey


def _refuse(
    request: ReadShareGroupStateSummaryRequest, error: KafkaError, version: int
) -> ReadShareGroupStateSummaryResponse:
    return ReadShareGroupStateSummaryResponse(
        results=[
            ReadStateSummaryResult(
                topic.topic_id,
                [
                    PartitionResult(one.partition, error.code, str(error))
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


@api(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, versions=range(2), refuse=_refuse)
async def read_share_group_state_summary(
    request: ReadShareGroupStateSummaryRequest, call: Call
) -> ReadShareGroupStateSummaryResponse:
    return ReadShareGroupStateSummaryResponse(
        results=[
            ReadStateSummaryResult(
                topic.topic_id,
                [
                    await _summary(request.group_id, topic.topic_id, one.partition, call)
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


async def _summary(group_id: str, topic_id: Uuid, partition: int, call: Call) -> PartitionResult:
    try:
        state = await call.broker.share_coordinator.summary(
            SharePartitionKey(group_id, topic_id, partition)
        )
    except KafkaError as error:
        return PartitionResult(partition, error.code, str(error))
    return PartitionResult(
        partition=partition,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
    )
