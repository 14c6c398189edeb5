"""DescribeQuorum v0-2: who votes on the metadata, who leads, and how far everyone is.

v1 tells when a replica last fetched and was last caught up (KIP-836), v2 its directory and where
the voters listen (KIP-853). This node is the whole quorum, so it is always caught up.
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
    Listener,
    Node,
    ReplicaState,
)
from headrace.protocol.uuids import ZERO


@api(ApiKey.DESCRIBE_QUORUM, versions=range(3))
def describe_quorum(request: DescribeQuorumRequest, call: Call) -> DescribeQuorumResponse:
    if _asked(request) == [(METADATA_TOPIC, 0)]:
        topic = DescribeQuorumResponseTopicData(
            topic_name=METADATA_TOPIC, partitions=[_quorum(call)]
        )
        return DescribeQuorumResponse(topics=[topic], nodes=_nodes(call))
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


def _quorum(call: Call) -> DescribeQuorumResponsePartitionData:
    log, now_ms = call.broker.controller.log, call.broker.clock.now_ms()
    voter = ReplicaState(
        replica_id=log.node_id,
        replica_directory_id=log.directory_id if call.version >= 2 else ZERO,
        log_end_offset=log.end_offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    return DescribeQuorumResponsePartitionData(
        leader_id=log.node_id,
        leader_epoch=log.leader_epoch,
        high_watermark=log.high_watermark,
        current_voters=[voter],
    )


def _nodes(call: Call) -> list[Node]:
    """Where the voters listen, as the voters' own record tells; from v2 on."""
    voters = call.broker.controller.log.voters
    if call.version < 2 or voters is None:
        return []
    return [
        Node(
            node_id=voter.voter_id,
            listeners=[
                Listener(name=endpoint.name, host=endpoint.host, port=endpoint.port)
                for endpoint in voter.endpoints
            ],
        )
        for voter in voters.voters
    ]


def _unknown(index: int) -> DescribeQuorumResponsePartitionData:
    return DescribeQuorumResponsePartitionData(
        partition_index=index,
        error_code=UnknownTopicOrPartition.code,
        error_message=f"only {METADATA_TOPIC}-0 has a quorum",
    )
