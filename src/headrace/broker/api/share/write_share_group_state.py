"""WriteShareGroupState v0-1: the leader of a partition tells how far its delivery has got.

v1 adds the count of completed deliveries, from which the lag is told.
"""

from headrace.broker.api.registry import Call, api
from headrace.errors import KafkaError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.write_share_group_state import (
    PartitionData,
    PartitionResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStateResult,
)
from headrace.protocol.uuids import Uuid
from headrace.shares.state import SharePartitionKey, StateBatch, StateChange


def _refuse(
    request: WriteShareGroupStateRequest, error: KafkaError, version: int
) -> WriteShareGroupStateResponse:
    return WriteShareGroupStateResponse(
        results=[
            WriteStateResult(
                topic.topic_id,
                [
                    PartitionResult(one.partition, error.code, str(error))
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


@api(ApiKey.WRITE_SHARE_GROUP_STATE, versions=range(2), refuse=_refuse)
async def write_share_group_state(
    request: WriteShareGroupStateRequest, call: Call
) -> WriteShareGroupStateResponse:
    return WriteShareGroupStateResponse(
        results=[
            WriteStateResult(
                topic.topic_id,
                [
                    await _write(request.group_id, topic.topic_id, one, call)
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


async def _write(
    group_id: str, topic_id: Uuid, asked: PartitionData, call: Call
) -> PartitionResult:
    key = SharePartitionKey(group_id, topic_id, asked.partition)
    batches = [
        StateBatch(one.first_offset, one.last_offset, one.delivery_state, one.delivery_count)
        for one in asked.state_batches
    ]
    try:
        await call.broker.share_coordinator.write(
            key,
            StateChange(
                asked.state_epoch,
                asked.leader_epoch,
                asked.start_offset,
                asked.delivery_complete_count,
                batches,
            ),
        )
    except KafkaError as error:
        return PartitionResult(asked.partition, error.code, str(error))
    return PartitionResult(asked.partition)
