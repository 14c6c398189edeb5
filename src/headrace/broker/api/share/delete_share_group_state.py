"""DeleteShareGroupState v0: forget the states of share partitions, from broker to broker."""

from headrace.broker.api.registry import Call, api
from headrace.errors import KafkaError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    PartitionResult,
)
from headrace.protocol.uuids import Uuid
from headrace.shares.state import SharePartitionKey


def _refuse(
    request: DeleteShareGroupStateRequest, error: KafkaError, version: int
) -> DeleteShareGroupStateResponse:
    return DeleteShareGroupStateResponse(
        results=[
            DeleteStateResult(
                topic.topic_id,
                [
                    PartitionResult(one.partition, error.code, str(error))
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


@api(ApiKey.DELETE_SHARE_GROUP_STATE, versions=range(1), refuse=_refuse)
async def delete_share_group_state(
    request: DeleteShareGroupStateRequest, call: Call
) -> DeleteShareGroupStateResponse:
    return DeleteShareGroupStateResponse(
        results=[
            DeleteStateResult(
                topic.topic_id,
                [
                    await _delete(request.group_id, topic.topic_id, one.partition, call)
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


async def _delete(group_id: str, topic_id: Uuid, partition: int, call: Call) -> PartitionResult:
    try:
        await call.broker.share_coordinator.delete(SharePartitionKey(group_id, topic_id, partition))
    except KafkaError as error:
        return PartitionResult(partition, error.code, str(error))
    return PartitionResult(partition)
