"""OffsetFetch v1-10: the committed positions of a group.

v2 can fetch all topics, v7 can wait for open transactions (KIP-447), v8 accepts several groups
(KIP-709), v9 serves the new group protocol, v10 names topics by id.
"""

from collections.abc import Coroutine
from typing import Any

from headrace.broker.api.registry import Call, api
from headrace.broker.coordinators import Shard, when_committed
from headrace.errors import (
    KafkaError,
    TopicAuthorizationFailed,
    UnknownTopicId,
    UnstableOffsetCommit,
)
from headrace.groups.committed_offsets import Offsets
from headrace.groups.offset_records import CommittedOffset, OffsetKey
from headrace.groups.offsets import offsets_to_fetch
from headrace.groups.shard import GroupShard
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from headrace.protocol.uuids import ZERO
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_each, to_list

_RIGHTS = (
    for_each(Operation.DESCRIBE, ResourceType.GROUP),
    for_each(Operation.DESCRIBE, ResourceType.TOPIC, "topics by name or id"),
    to_list(Operation.DESCRIBE, ResourceType.TOPIC, "all topics"),
)

_ERROR_AT_TOP_FROM, _SEVERAL_FROM, _TOPIC_IDS_FROM = 2, 8, 10
_NO_OFFSET = -1
_NOTHING = CommittedOffset(_NO_OFFSET)


def _refuse(request: OffsetFetchRequest, error: KafkaError, version: int) -> OffsetFetchResponse:
    groups = [_refused(group, error) for group in _groups(request, version)]
    return _shaped(groups, version)


@api(ApiKey.OFFSET_FETCH, versions=range(1, 11), rights=_RIGHTS, refuse=_refuse)
def offset_fetch(
    request: OffsetFetchRequest, call: Call
) -> OffsetFetchResponse | Coroutine[Any, Any, OffsetFetchResponse]:
    groups = []
    shards: list[Shard[GroupShard]] = []
    for group in _groups(request, call.version):
        try:
            call.access.check(Operation.DESCRIBE, ResourceType.GROUP, group.group_id)
            shard = call.broker.groups.shard_for(group.group_id)
            shards.append(shard)
            is_stable = request.require_stable
            groups.append(_fetch(group, shard.state, call, require_stable=is_stable))
        except KafkaError as error:
            groups.append(_refused(group, error))
    return when_committed(shards, _shaped(groups, call.version))


def _groups(request: OffsetFetchRequest, version: int) -> list[OffsetFetchRequestGroup]:
    """The groups of a request; before v8 there is one, without a member."""
    if version >= _SEVERAL_FROM:
        return request.groups
    topics = request.topics
    return [
        OffsetFetchRequestGroup(
            group_id=request.group_id,
            topics=None
            if topics is None
            else [
                OffsetFetchRequestTopics(one.name, ZERO, one.partition_indexes) for one in topics
            ],
        )
    ]


def _fetch(
    group: OffsetFetchRequestGroup, state: GroupShard, call: Call, *, require_stable: bool
) -> OffsetFetchResponseGroup:
    known = offsets_to_fetch(state, group.group_id, group.member_id, group.member_epoch)
    unstable = state.offsets if require_stable and state.offsets.pending else None
    image, access = call.broker.image, call.access
    asked = group.topics
    if asked is None:
        topics = image.topics
        asked = [
            OffsetFetchRequestTopics(name, topics[name].id if name in topics else ZERO, [*offsets])
            for name, offsets in known.items()
            if (name in topics or call.version < _TOPIC_IDS_FROM)
            and access.allows(Operation.DESCRIBE, ResourceType.TOPIC, name)
        ]
    answer = OffsetFetchResponseGroup(group.group_id)
    for topic in asked:
        name = topic.name
        if call.version >= _TOPIC_IDS_FROM:
            found = image.topics_by_id.get(topic.topic_id)
            if found is None:
                answer.topics.append(_failed(topic, UnknownTopicId.code))
                continue
            name = found.name
        if not access.allows(Operation.DESCRIBE, ResourceType.TOPIC, name):
            answer.topics.append(_failed(topic, TopicAuthorizationFailed.code))
            continue
        offsets = known.get(name, {})
        partitions = [
            _partition(group.group_id, name, index, offsets.get(index, _NOTHING), unstable)
            for index in topic.partition_indexes
        ]
        answer.topics.append(OffsetFetchResponseTopics(name, topic.topic_id, partitions))
    return answer


def _partition(
    group_id: str, topic: str, index: int, committed: CommittedOffset, unstable: Offsets | None
) -> OffsetFetchResponsePartitions:
    if unstable is not None and unstable.is_pending(OffsetKey(group_id, topic, index)):
        return OffsetFetchResponsePartitions(index, _NO_OFFSET, -1, "", UnstableOffsetCommit.code)
    return OffsetFetchResponsePartitions(
        index, committed.offset, committed.leader_epoch, committed.metadata, 0
    )


def _failed(topic: OffsetFetchRequestTopics, code: int) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        topic.name,
        topic.topic_id,
        [
            OffsetFetchResponsePartitions(index, _NO_OFFSET, -1, "", code)
            for index in topic.partition_indexes
        ],
    )


def _refused(group: OffsetFetchRequestGroup, error: KafkaError) -> OffsetFetchResponseGroup:
    return OffsetFetchResponseGroup(
        group_id=group.group_id,
        topics=[_failed(topic, error.code) for topic in group.topics or ()],
        error_code=error.code,
    )


def _shaped(groups: list[OffsetFetchResponseGroup], version: int) -> OffsetFetchResponse:
    if version >= _SEVERAL_FROM:
        for group in groups:
            if group.error_code:
                group.topics = []
        return OffsetFetchResponse(groups=groups)
    (group,) = groups
    has_own_code = version >= _ERROR_AT_TOP_FROM
    return OffsetFetchResponse(
        topics=[]
        if has_own_code and group.error_code
        else [
            OffsetFetchResponseTopic(
                topic.name,
                [
                    OffsetFetchResponsePartition(
                        one.partition_index,
                        one.committed_offset,
                        one.committed_leader_epoch,
                        one.metadata,
                        one.error_code,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in group.topics
        ],
        error_code=group.error_code if has_own_code else 0,
    )
