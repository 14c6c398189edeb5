"""OffsetForLeaderEpoch v2-4: the end of a leader epoch, by which readers notice a truncated log.

v3 adds the id of the replica; consumers use this API since KIP-320.
"""

from headrace.broker.api.registry import Call, api
from headrace.errors import KafkaError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


@api(ApiKey.OFFSET_FOR_LEADER_EPOCH, versions=range(2, 5))
def offset_for_leader_epoch(
    request: OffsetForLeaderEpochRequest, call: Call
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_end_offset(topic.topic, one, call) for one in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _end_offset(topic: str, asked: OffsetForLeaderPartition, call: Call) -> EpochEndOffset:
    try:
        partition = call.broker.partitions.led(topic, asked.partition)
        partition.check_leader_epoch(asked.current_leader_epoch)
        log = partition.online_log()
        epoch, end_offset = partition.end_of_epoch(log, asked.leader_epoch)
    except KafkaError as error:
        return EpochEndOffset(partition=asked.partition, error_code=error.code)
    return EpochEndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=end_offset)
