"""DescribeQuorum v0-2: the voters and the leader of the metadata quorum, and their positions.

v1 adds the times at which a replica last fetched and was last caught up (KIP-836), v2 directories
and the addresses of the voters (KIP-853). The leader of the quorum answers.
"""

from headrace.broker.api.registry import Call, api
from headrace.errors import UnknownTopicOrPartition
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.metadata_topic import METADATA_TOPIC
from headrace.protocol.schemas.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
)
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_request

_RIGHTS = (for_request(Operation.DESCRIBE, ResourceType.CLUSTER),)


@api(ApiKey.DESCRIBE_QUORUM, versions=range(3), rights=_RIGHTS)
async def describe_quorum(request: DescribeQuorumRequest, call: Call) -> DescribeQuorumResponse:
    if _asked(request) == [(METADATA_TOPIC, 0)]:
        response: DescribeQuorumResponse = await call.broker.controller.ask(
            request, call.version, call.caller
        )
        return response
    call.access.check_on_cluster(Operation.DESCRIBE)
    return DescribeQuorumResponse(
        topics=[
            DescribeQuorumResponseTopicData(
                topic_name=topic.topic_name,
                partitions=[_unknown(one.partition_index) for one in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _asked(request: DescribeQuorumRequest) -> list[tuple[str, int]]:
    return [
        (topic.topic_name, one.partition_index)
        for topic in request.topics
        for one in topic.partitions
    ]


def _unknown(index: int) -> DescribeQuorumResponsePartitionData:
    return DescribeQuorumResponsePartitionData(
        partition_index=index,
        error_code=UnknownTopicOrPartition.code,
        error_message=f"only {METADATA_TOPIC}-0 has a quorum",
    )
