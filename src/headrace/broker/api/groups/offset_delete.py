"""OffsetDelete v0: delete offsets of topics to which a group does not subscribe (KIP-496)."""

from collections.abc import Coroutine
from typing import Any

from headrace.broker.api.registry import Call, api
from headrace.errors import InvalidGroupId, TopicAuthorizationFailed, UnknownTopicOrPartition
from headrace.groups.offsets import delete
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_each, for_request

_RIGHTS = (
    for_request(Operation.DELETE, ResourceType.GROUP),
    for_each(Operation.READ, ResourceType.TOPIC),
)


@api(ApiKey.OFFSET_DELETE, versions=range(1), rights=_RIGHTS)
async def offset_delete(request: OffsetDeleteRequest, call: Call) -> OffsetDeleteResponse:
    access = call.access
    access.check(Operation.DELETE, ResourceType.GROUP, request.group_id)
    if not request.group_id:
        raise InvalidGroupId("the group id is empty; set group.id")
    shard = call.broker.groups.shard_for(request.group_id)
    names = [topic.name for topic in request.topics]
    forbidden = set(access.denied(Operation.READ, ResourceType.TOPIC, names))
    known = [
        (topic.name, one.partition_index)
        for topic in request.topics
        if topic.name not in forbidden
        for one in topic.partitions
        if _exists(call, topic.name, one.partition_index)
    ]
    codes: Any = shard.apply(delete(shard.state, request.group_id, known))
    if isinstance(codes, Coroutine):
        codes = await codes
    by_place = dict(zip(known, codes, strict=True))
    return OffsetDeleteResponse(
        topics=[
            OffsetDeleteResponseTopic(
                topic.name,
                [
                    OffsetDeleteResponsePartition(
                        one.partition_index,
                        by_place.get(
                            (topic.name, one.partition_index),
                            TopicAuthorizationFailed.code
                            if topic.name in forbidden
                            else UnknownTopicOrPartition.code,
                        ),
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _exists(call: Call, topic: str, partition: int) -> bool:
    image = call.broker.image.topics.get(topic)
    return image is not None and 0 <= partition < len(image.partitions)
