"""InitializeShareGroupState v0: begin the states of share partitions, from broker to broker."""

from headrace.broker.api.registry import Call, api
from headrace.errors import KafkaError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeStateResult,
    PartitionData,
    PartitionResult,
)
from headrace.protocol.uuids import Uuid
from headrace.shares.state import SharePartitionKey


def _refuse(
    request: InitializeShareGroupStateRequest, error: KafkaError, version: int
) -> InitializeShareGroupStateResponse:
    return InitializeShareGroupStateResponse(
        results=[
            InitializeStateResult(
                topic.topic_id,
                [
                    PartitionResult(one.partition, error.code, str(error))
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


@api(ApiKey.INITIALIZE_SHARE_GROUP_STATE, versions=range(1), refuse=_refuse)
async def initialize_share_group_state(
    request: InitializeShareGroupStateRequest, call: Call
) -> InitializeShareGroupStateResponse:
    return InitializeShareGroupStateResponse(
        results=[
            InitializeStateResult(
                topic.topic_id,
                [
                    await _initialize(request.group_id, topic.topic_id, one, call)
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


async def _initialize(
    group_id: str, topic_id: Uuid, asked: PartitionData, call: Call
) -> PartitionResult:
    key = SharePartitionKey(group_id, topic_id, asked.partition)
    try:
        await call.broker.share_coordinator.initialize(key, asked.state_epoch, asked.start_offset)
    except KafkaError as error:
        return PartitionResult(asked.partition, error.code, str(error))
    return PartitionResult(asked.partition)
