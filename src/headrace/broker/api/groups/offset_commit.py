"""OffsetCommit v2-10: store the positions of a group.

v5 drops the retention time, v6 adds leader epochs, v7 instance ids, v9 serves the new group
protocol, v10 names topics by id. The empty group id is valid, as in the first versions of Kafka.
"""

from collections.abc import Coroutine
from typing import Any

from headrace.broker.api.registry import Call, api
from headrace.errors import TopicAuthorizationFailed, UnknownTopicId, UnknownTopicOrPartition
from headrace.groups.classic.protocol import keep_alive_by_commit
from headrace.groups.group import LateCommit
from headrace.groups.offsets import Commit, check_commit, commit
from headrace.metadata.image import MetadataImage
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.codec import encode
from headrace.protocol.schemas.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from headrace.security.access import Access
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_each, for_request

_RIGHTS = (
    for_request(Operation.READ, ResourceType.GROUP),
    for_each(Operation.READ, ResourceType.TOPIC),
)
_READ, _TOPIC = Operation.READ, ResourceType.TOPIC
_TOPIC_IDS_FROM = 10
_SHAPES_KNOWN_MAX = 2000

_fine_answers: dict[tuple[object, ...], bytes] = {}
"""Encoded responses without errors, because a member always commits the same partitions."""


@api(ApiKey.OFFSET_COMMIT, versions=range(2, 11), rights=_RIGHTS)
def offset_commit(
    request: OffsetCommitRequest, call: Call
) -> OffsetCommitResponse | bytes | Coroutine[Any, Any, OffsetCommitResponse | bytes]:
    group_id, member_id = request.group_id, request.member_id
    broker, access = call.broker, call.access
    access.check(Operation.READ, ResourceType.GROUP, group_id)
    commits, refused = _sorted_out(request, broker.image, call.version, access)
    if refused and not commits:
        return _answer([], refused, request, call.version)
    shard = broker.groups.shard_for(group_id)
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
        late.check((topic, topic_id, partition) for topic, topic_id, partition, *_ in commits)
    effects = commit(
        shard.state,
        group_id,
        commits,
        broker.clock.now_ms(),
        retention_ms=request.retention_time_ms,
    )
    if member_id:
        session = keep_alive_by_commit(shard.state, group_id, member_id)
        if session is not None:
            effects.timers[session[0]] = session[1]
    codes = shard.apply(effects)
    if isinstance(codes, list):
        return _answer(codes, refused, request, call.version)
    assert codes is not None  # A commit yields a code for each partition.
    return _later(codes, refused, request, call.version)


async def _later(
    codes: Coroutine[Any, Any, list[int]],
    refused: dict[int, int],
    request: OffsetCommitRequest,
    version: int,
) -> OffsetCommitResponse | bytes:
    return _answer(await codes, refused, request, version)


def _sorted_out(
    request: OffsetCommitRequest, image: MetadataImage, version: int, access: Access
) -> tuple[list[Commit], dict[int, int]]:
    """Return the commits of existing partitions, and the error codes of the others by place."""
    commits: list[Commit] = []
    refused: dict[int, int] = {}
    place = -1
    for asked in request.topics:
        by_id = version >= _TOPIC_IDS_FROM
        topic = image.topics_by_id.get(asked.topic_id) if by_id else image.topics.get(asked.name)
        count = 0 if topic is None else len(topic.partitions)
        code = UnknownTopicId.code if by_id and topic is None else UnknownTopicOrPartition.code
        name = asked.name if topic is None else topic.name
        if not ((by_id and topic is None) or access.allows(_READ, _TOPIC, name)):
            topic, code = None, TopicAuthorizationFailed.code
        for one in asked.partitions:
            place += 1
            if topic is None or not 0 <= one.partition_index < count:
                refused[place] = code
                continue
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
    return commits, refused


def _answer(
    codes: list[int], refused: dict[int, int], request: OffsetCommitRequest, version: int
) -> OffsetCommitResponse | bytes:
    if not refused and not any(codes):
        return _fine_answer(request, version)
    response = _response(request, 0)
    rest = iter(codes)
    places = [one for topic in response.topics for one in topic.partitions]
    for place, one in enumerate(places):
        one.error_code = refused[place] if place in refused else next(rest)
    return response


def _fine_answer(request: OffsetCommitRequest, version: int) -> bytes:
    shape = (
        version,
        *[
            (topic.name or topic.topic_id, *[one.partition_index for one in topic.partitions])
            for topic in request.topics
        ],
    )
    answer = _fine_answers.get(shape)
    if answer is None:
        if len(_fine_answers) >= _SHAPES_KNOWN_MAX:
            _fine_answers.clear()
        answer = _fine_answers[shape] = bytes(encode(_response(request, 0), version))
    return answer


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
