"""ReadShareGroupState v0: a partition's new leader asks for states, and locks the last one out."""

from headrace.broker.api.registry import Call, api
from headrace.errors import KafkaError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.read_share_group_state import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadStateResult,
    StateBatch,
)
from headrace.protocol.uuids import Uuid
from headrace.shares.state import SharePartitionKey


def _refuse(
    request: ReadShareGroupStateRequest, error: KafkaError, version: int
) -> ReadShareGroupStateResponse:
    return ReadShareGroupStateResponse(
        results=[
            ReadStateResult(
                topic.topic_id,
                [
                    PartitionResult(one.partition, error.code, str(error))
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


@api(ApiKey.READ_SHARE_GROUP_STATE, versions=range(1), refuse=_refuse)
async def read_share_group_state(
    request: ReadShareGroupStateRequest, call: Call
) -> ReadShareGroupStateResponse:
    return ReadShareGroupStateResponse(
        results=[
            ReadStateResult(
                topic.topic_id,
                [
                    await _read(request.group_id, topic.topic_id, one, call)
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


async def _read(group_id: str, topic_id: Uuid, asked: PartitionData, call: Call) -> PartitionResult:
    key = SharePartitionKey(group_id, topic_id, asked.partition)
    try:
        state = await call.broker.share_coordinator.read(key, asked.leader_epoch)
    except KafkaError as error:
        return PartitionResult(asked.partition, error.code, str(error))
    return PartitionResult(
        partition=asked.partition,
        state_epoch=state.state_epoch,
        start_offset=state.start_offset,
        state_batches=[StateBatch(*one) for one in state.batches],
    )
