"""AlterShareGroupOffsets v0: change the start offsets of a share group without members."""

from collections.abc import Collection

from headrace.broker.api.registry import Call, api
from headrace.broker.shares.group_states import Refusals, begin_states
from headrace.errors import InvalidGroupId, TopicAuthorizationFailed, UnknownTopicOrPartition
from headrace.groups.share.protocol import share_group_or_new
from headrace.groups.share.states import Alteration, alter, not_initialized
from headrace.metadata.features import check_share_groups
from headrace.metadata.image import MetadataImage
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from headrace.protocol.schemas.alter_share_group_offsets import (
    AlterShareGroupOffsetsResponsePartition as Partition,
)
from headrace.protocol.schemas.alter_share_group_offsets import (
    AlterShareGroupOffsetsResponseTopic as Topic,
)
from headrace.protocol.uuids import Uuid
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_each, for_request

_RIGHTS = (
    for_request(Operation.READ, ResourceType.GROUP),
    for_each(Operation.READ, ResourceType.TOPIC),
)

_FORBIDDEN = TopicAuthorizationFailed("Topic authorization failed.")
_UNKNOWN = UnknownTopicOrPartition("This server does not host this topic-partition.")


@api(ApiKey.ALTER_SHARE_GROUP_OFFSETS, versions=range(1), rights=_RIGHTS)
async def alter_share_group_offsets(
    request: AlterShareGroupOffsetsRequest, call: Call
) -> AlterShareGroupOffsetsResponse:
    check_share_groups(call.broker.image.features)
    access = call.access
    access.check(Operation.READ, ResourceType.GROUP, request.group_id)
    if not request.group_id:
        raise InvalidGroupId("the group id is empty; name the share group")
    broker, group_id = call.broker, request.group_id
    shard = broker.groups.shard_for(group_id)
    group = share_group_or_new(shard.state, group_id)
    names = [topic.topic_name for topic in request.topics]
    forbidden = set(access.denied(Operation.READ, ResourceType.TOPIC, names))
    offsets = _existing(request, broker.image, forbidden)
    effects = alter(shard.state, group, offsets, broker.clock.now_ms())
    if forbidden and not offsets:
        return _response(request, broker.image, {}, forbidden)
    alteration: Alteration = await shard.applied(effects)
    refused = await begin_states(
        broker.share_persister, shard, group_id, alteration.state_epoch, alteration.offsets
    )
    await shard.applied(not_initialized(shard.state, group_id, alteration.offsets))
    return _response(request, broker.image, refused, forbidden)


def _response(
    request: AlterShareGroupOffsetsRequest,
    image: MetadataImage,
    refused: Refusals,
    forbidden: Collection[str],
) -> AlterShareGroupOffsetsResponse:
    return AlterShareGroupOffsetsResponse(
        responses=[
            _answered(topic, image, refused, is_forbidden=topic.topic_name in forbidden)
            for topic in request.topics
        ]
    )


def _existing(
    request: AlterShareGroupOffsetsRequest, image: MetadataImage, forbidden: Collection[str]
) -> dict[Uuid, dict[int, int]]:
    """The requested offsets of existing partitions, without those of forbidden topics."""
    offsets: dict[Uuid, dict[int, int]] = {}
    for asked in request.topics:
        topic = image.topics.get(asked.topic_name)
        if topic is not None and topic.name not in forbidden:
            found = {
                one.partition_index: one.start_offset
                for one in asked.partitions
                if 0 <= one.partition_index < len(topic.partitions)
            }
            if found:
                offsets.setdefault(topic.id, {}).update(found)
    return offsets


def _answered(
    asked: AlterShareGroupOffsetsRequestTopic,
    image: MetadataImage,
    refused: Refusals,
    *,
    is_forbidden: bool,
) -> Topic:
    topic = None if is_forbidden else image.topics.get(asked.topic_name)
    missing = _FORBIDDEN if is_forbidden else _UNKNOWN
    answered = Topic(topic_name=asked.topic_name, partitions=[])
    if topic is not None:
        answered.topic_id = topic.id
    for one in asked.partitions:
        row = Partition(one.partition_index)
        exists = topic is not None and 0 <= one.partition_index < len(topic.partitions)
        error = refused.get((answered.topic_id, one.partition_index)) if exists else missing
        if error is not None:
            row.error_code, row.error_message = error.code, str(error)
        answered.partitions.append(row)
    return answered
