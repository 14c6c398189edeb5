"""DeleteShareGroupOffsets v0: delete the states of topics of a share group without members."""

from headrace.broker.api.registry import Call, api
from headrace.broker.shares.group_states import forget_states
from headrace.errors import (
    InvalidGroupId,
    KafkaError,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)
from headrace.groups.share.protocol import share_group
from headrace.groups.share.states import Forgetting, forget_topics
from headrace.metadata.features import check_share_groups
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from headrace.protocol.schemas.delete_share_group_offsets import (
    DeleteShareGroupOffsetsResponseTopic as Topic,
)
from headrace.protocol.uuids import Uuid
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_each, for_request

_RIGHTS = (
    for_request(Operation.DELETE, ResourceType.GROUP),
    for_each(Operation.READ, ResourceType.TOPIC),
)


@api(ApiKey.DELETE_SHARE_GROUP_OFFSETS, versions=range(1), rights=_RIGHTS)
async def delete_share_group_offsets(
    request: DeleteShareGroupOffsetsRequest, call: Call
) -> DeleteShareGroupOffsetsResponse:
    check_share_groups(call.broker.image.features)
    access = call.access
    access.check(Operation.DELETE, ResourceType.GROUP, request.group_id)
    if not request.group_id:
        raise InvalidGroupId("the group id is empty; name the share group")
    broker, group_id = call.broker, request.group_id
    shard = broker.groups.shard_for(group_id)
    group = share_group(shard.state, group_id)
    image = broker.image
    names = [one.topic_name for one in request.topics]
    forbidden = dict.fromkeys(access.denied(Operation.READ, ResourceType.TOPIC, names))
    names = [name for name in names if name not in forbidden]
    forgetting: Forgetting = await shard.applied(forget_topics(group, names, image))
    refused = await forget_states(broker.share_persister, shard, group_id, forgetting.partitions)
    answered = [
        _answered(image.topics_by_id[one].name, one, refused.get(one))
        for one in forgetting.partitions
    ]
    unknown = [
        Topic(topic_name=name, error_code=UnknownTopicOrPartition.code, error_message=why)
        for name, why in forgetting.unknown.items()
    ]
    refusals = [
        Topic(
            topic_name=name,
            error_code=TopicAuthorizationFailed.code,
            error_message="Topic authorization failed.",
        )
        for name in forbidden
    ]
    return DeleteShareGroupOffsetsResponse(responses=refusals + answered + unknown)


def _answered(name: str, topic_id: Uuid, error: KafkaError | None) -> Topic:
    row = Topic(topic_name=name, topic_id=topic_id)
    if error is not None:
        row.error_code, row.error_message = error.code, str(error)
    return row
