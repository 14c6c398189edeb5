"""DeleteShareGroupOffsets v0: delete the states of topics of a share group without members."""

from headrace.broker.api.registry import Call, api
from headrace.broker.shares.group_states import forget_states
from headrace.errors import InvalidGroupId, KafkaError, UnknownTopicOrPartition
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


@api(ApiKey.DELETE_SHARE_GROUP_OFFSETS, versions=range(1))
async def delete_share_group_offsets(
    request: DeleteShareGroupOffsetsRequest, call: Call
) -> DeleteShareGroupOffsetsResponse:
    check_share_groups(call.broker.image.features)
    if not request.group_id:
        raise InvalidGroupId("the group id is empty; name the share group")
    broker, group_id = call.broker, request.group_id
    shard = broker.groups.shard_for(group_id)
    group = share_group(shard.state, group_id)
    image = broker.image
    names = [one.topic_name for one in request.topics]
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
    return DeleteShareGroupOffsetsResponse(responses=answered + unknown)


def _answered(name: str, topic_id: Uuid, error: KafkaError | None) -> Topic:
    row = Topic(topic_name=name, topic_id=topic_id)
    if error is not None:
        row.error_code, row.error_message = error.code, str(error)
    return row
