"""OffsetCommit v2-10: a group notes how far it has read.

v5 drops the retention time, v6 adds leader epochs, v7 instance ids, v9 serves the new group
protocol, v10 names topics by id.
"""

from collections.abc import Coroutine
from typing import Any

from headrace.broker.api.registry import Call, api
from headrace.errors import (
    InvalidGroupId,
    KafkaError,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from headrace.groups.classic import keep_alive_by_commit
from headrace.groups.consumer_offsets import LateCommit
from headrace.groups.offsets import Commit, check_commit, commit
from headrace.metadata.image import MetadataImage
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

_TOPIC_IDS_FROM = 10


def _refuse(request: OffsetCommitRequest, error: KafkaError, version: int) -> OffsetCommitResponse:
    return _response(request, error.code)


@api(ApiKey.OFFSET_COMMIT, versions=range(2, 11), refuse=_refuse)
def offset_commit(
    request: OffsetCommitRequest, call: Call
) -> OffsetCommitResponse | Coroutine[Any, Any, OffsetCommitResponse]:
    if not request.group_id:
        raise InvalidGroupId("the group id is empty")
    shard = call.broker.groups.shard_for(request.group_id)
    group_id, member_id = request.group_id, request.member_id
    response = _response(request, 0)
    commits, places = _known(request, response, call.broker.image, call.version)
    try:
        check_commit(
            shard.state,
            group_id,
            member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            version=call.version,
        )
    except LateCommit as late:
        late.check((topic_id, partition) for _, topic_id, partition, *_ in commits)
    if not commits:
        return response
    effects = commit(
        shard.state,
        group_id,
        commits,
        call.broker.clock.now_ms(),
        retention_ms=request.retention_time_ms,
    )
    if member_id:
        session = keep_alive_by_commit(shard.state, group_id, member_id)
        if session is not None:
            effects.timers[session[0]] = session[1]
    codes = shard.carry_out(effects)
    if isinstance(codes, Coroutine):
        return _later(codes, places, response)
    return _fill_in(codes or [], places, response)


async def _later(
    codes: Coroutine[Any, Any, list[int]],
    places: list[OffsetCommitResponsePartition],
    response: OffsetCommitResponse,
) -> OffsetCommitResponse:
    return _fill_in(await codes, places, response)


def _known(
    request: OffsetCommitRequest,
    response: OffsetCommitResponse,
    image: MetadataImage,
    version: int,
) -> tuple[list[Commit], list[OffsetCommitResponsePartition]]:
    """What is committed for partitions that exist, and where its answers go."""
    commits: list[Commit] = []
    places: list[OffsetCommitResponsePartition] = []
    for asked, answered in zip(request.topics, response.topics, strict=True):
        by_id = version >= _TOPIC_IDS_FROM
        topic = image.topics_by_id.get(asked.topic_id) if by_id else image.topics.get(asked.name)
        count = 0 if topic is None else len(topic.partitions)
        for one, place in zip(asked.partitions, answered.partitions, strict=True):
            if topic is None or not 0 <= one.partition_index < count:
                is_id = by_id and topic is None
                place.error_code = UnknownTopicId.code if is_id else UnknownTopicOrPartition.code
                continue
            places.append(place)
            commits.append(
                (
                    topic.name,
                    topic.id,
                    one.partition_index,
                    one.committed_offset,
                    one.committed_leader_epoch,
                    one.committed_metadata,
                )
            )
    return commits, places


def _fill_in(
    codes: list[int],
    places: list[OffsetCommitResponsePartition],
    response: OffsetCommitResponse,
) -> OffsetCommitResponse:
    for place, code in zip(places, codes, strict=True):
        place.error_code = code
    return response


def _response(request: OffsetCommitRequest, code: int) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        0,
        [
            OffsetCommitResponseTopic(
                topic.name,
                topic.topic_id,
                [
                    OffsetCommitResponsePartition(one.partition_index, code)
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )
