"""ShareAcknowledge v1-2: a member of a share group acknowledges its records (KIP-932).

v2 can renew locks (KIP-1222). A request with the epoch -1 ends the member's session.
"""

from headrace.broker.api.registry import Call, api
from headrace.broker.api.share.acknowledging import (
    MEMBER_RIGHTS,
    RENEWALS_FROM,
    Verdicts,
    acknowledge_all,
    check_member,
)
from headrace.broker.topics.topology import leader_nodes
from headrace.metadata.features import check_share_groups
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.share_acknowledge import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from headrace.protocol.uuids import Uuid
from headrace.runtime.eager import finish_now
from headrace.shares.sessions import FINAL_EPOCH, Target


@api(ApiKey.SHARE_ACKNOWLEDGE, versions=range(1, 3), rights=MEMBER_RIGHTS)
def share_acknowledge(request: ShareAcknowledgeRequest, call: Call) -> ShareAcknowledgeResponse:
    return finish_now(_acknowledge(request, call))  # type: ignore[return-value]


async def _acknowledge(request: ShareAcknowledgeRequest, call: Call) -> ShareAcknowledgeResponse:
    check_share_groups(call.broker.image.features)
    shares = call.broker.share_partitions
    key = check_member(request.group_id, request.member_id, call.access)
    epoch = request.share_session_epoch
    shares.sessions.acknowledge(key, epoch)
    acknowledged = [
        (Target(topic.topic_id, partition.partition_index), partition.acknowledgement_batches)
        for topic in request.topics
        for partition in topic.partitions
    ]
    may_renew = call.version >= RENEWALS_FROM and request.is_renew_ack
    verdicts = await acknowledge_all(
        call.broker, call.access, key, acknowledged, may_renew=may_renew
    )
    if epoch == FINAL_EPOCH:
        releasing = shares.end_session(key)
        if releasing is not None:
            await releasing
    lock_duration_ms = shares.rules_of(key.group_id).limits.lock_duration_ms
    nodes = leader_nodes(call.broker.image, call.listener, filter(None, verdicts.values()))
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=lock_duration_ms,
        responses=_topics(verdicts),
        node_endpoints=[NodeEndpoint(*node) for node in nodes],
    )


def _topics(verdicts: Verdicts) -> list[ShareAcknowledgeTopicResponse]:
    topics: dict[Uuid, list[PartitionData]] = {}
    for (topic_id, partition), error in verdicts.items():
        answer = PartitionData(partition_index=partition)
        if error is not None:
            answer.error_code, answer.error_message = error.code, str(error)
            if error.current_leader is not None:
                answer.current_leader = LeaderIdAndEpoch(*error.current_leader)
        topics.setdefault(topic_id, []).append(answer)
    return [
        ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=partitions)
        for topic_id, partitions in topics.items()
    ]
