"""OffsetDelete v0: delete offsets of topics to which a group does not subscribe (KIP-496)."""

from collections.abc import Coroutine
from typing import Any

from headrace.broker.api.registry import Call, api
from headrace.errors import InvalidGroupId, UnknownTopicOrPartition
from headrace.groups.offsets import delete
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


@api(ApiKey.OFFSET_DELETE, versions=range(1))
async def offset_delete(request: OffsetDeleteRequest, call: Call) -> OffsetDeleteResponse:
    if not request.group_id:
        raise InvalidGroupId("the group id is empty; set group.id")
    shard = call.broker.groups.shard_for(request.group_id)
    known = [
        (topic.name, one.partition_index)
        for topic in request.topics
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
                            (topic.name, one.partition_index), UnknownTopicOrPartition.code
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
