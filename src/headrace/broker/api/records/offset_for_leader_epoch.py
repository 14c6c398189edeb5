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
from headrace.security.access import OPEN, Access
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import Alternative, for_each

_RIGHTS = (
    for_each(
        Operation.DESCRIBE,
        ResourceType.TOPIC,
        instead=(Alternative(Operation.CLUSTER_ACTION, ResourceType.CLUSTER),),
    ),
)


@api(ApiKey.OFFSET_FOR_LEADER_EPOCH, versions=range(2, 5), rights=_RIGHTS)
def offset_for_leader_epoch(
    request: OffsetForLeaderEpochRequest, call: Call
) -> OffsetForLeaderEpochResponse:
    access = call.access
    if access.allows_on_cluster(Operation.CLUSTER_ACTION, is_audited=False):
        access = OPEN
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    _end_offset(topic.topic, one, call, access) for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _end_offset(
    topic: str, asked: OffsetForLeaderPartition, call: Call, access: Access
) -> EpochEndOffset:
    try:
        access.check(Operation.DESCRIBE, ResourceType.TOPIC, topic)
        partition = call.broker.partitions.led(topic, asked.partition)
        partition.check_leader_epoch(asked.current_leader_epoch)
        log = partition.online_log()
        epoch, end_offset = partition.end_of_epoch(log, asked.leader_epoch)
    except KafkaError as error:
        return EpochEndOffset(partition=asked.partition, error_code=error.code)
    return EpochEndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=end_offset)
