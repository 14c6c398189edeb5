"""DescribeShareGroupOffsets v0-1: the start offsets and the lag of share groups.

v1 adds the lag (KIP-1226): the records that are neither acknowledged nor archived.
"""

from collections.abc import Iterable

from headrace.broker.api.registry import Call, api
from headrace.errors import KafkaError, TopicAuthorizationFailed
from headrace.groups.share.group import ShareGroup
from headrace.metadata.features import check_share_groups
from headrace.metadata.image import TopicImage
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.refusals import refused
from headrace.protocol.schemas.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
)
from headrace.protocol.schemas.describe_share_group_offsets import (
    DescribeShareGroupOffsetsResponseGroup as Group,
)
from headrace.protocol.schemas.describe_share_group_offsets import (
    DescribeShareGroupOffsetsResponsePartition as Partition,
)
from headrace.protocol.schemas.describe_share_group_offsets import (
    DescribeShareGroupOffsetsResponseTopic as Topic,
)
from headrace.runtime.eager import finish_each
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_each, to_list
from headrace.shares.state import UNINITIALIZED, UNKNOWN_COUNT, SharePartitionKey

_RIGHTS = (
    for_each(Operation.DESCRIBE, ResourceType.GROUP),
    for_each(Operation.DESCRIBE, ResourceType.TOPIC, "topics by name"),
    to_list(Operation.DESCRIBE, ResourceType.TOPIC, "all topics"),
)
_UNKNOWN_LAG = -1


@api(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, versions=range(2), rights=_RIGHTS)
async def describe_share_group_offsets(
    request: DescribeShareGroupOffsetsRequest, call: Call
) -> DescribeShareGroupOffsetsResponse:
    check_share_groups(call.broker.image.features)
    return DescribeShareGroupOffsetsResponse(
        groups=[await _group(one, call) for one in request.groups]
    )


async def _group(asked: DescribeShareGroupOffsetsRequestGroup, call: Call) -> Group:
    topics_by_name, access = call.broker.image.topics, call.access
    described = []
    try:
        access.check(Operation.DESCRIBE, ResourceType.GROUP, asked.group_id)
        for name, partitions in await _topics(asked, call):
            topic = topics_by_name.get(name)
            if not access.allows(Operation.DESCRIBE, ResourceType.TOPIC, name):
                if asked.topics is not None:
                    described.append(_forbidden(name, partitions))
            elif topic is None:
                unknown = [Partition(one, UNINITIALIZED) for one in partitions]
                described.append(Topic(topic_name=name, partitions=unknown))
            else:
                rows = await finish_each(
                    _partition(asked.group_id, topic, one, call) for one in partitions
                )
                described.append(Topic(name, topic.id, [_sound(row) for row in rows]))
    except KafkaError as error:
        return refused(Group, asked, error)
    return Group(group_id=asked.group_id, topics=described)


def _forbidden(name: str, partitions: Iterable[int]) -> Topic:
    code, message = TopicAuthorizationFailed.code, "Topic authorization failed."
    return Topic(
        topic_name=name,
        partitions=[
            Partition(one, UNINITIALIZED, error_code=code, error_message=message)
            for one in partitions
        ],
    )


async def _topics(
    asked: DescribeShareGroupOffsetsRequestGroup, call: Call
) -> Iterable[tuple[str, Iterable[int]]]:
    """The requested partitions; without topics, all partitions with a state."""
    shard = call.broker.groups.shard_for(asked.group_id)
    if asked.topics is not None:
        return [(one.topic_name, one.partitions) for one in asked.topics]
    group = shard.state.groups.get(asked.group_id)
    if not isinstance(group, ShareGroup):
        return []
    known = call.broker.image.topics_by_id
    found = [
        (known[topic_id].name, sorted(one.partitions))
        for topic_id, one in group.states.initialized.items()
        if topic_id in known
    ]
    await shard.settled()
    return found


def _sound(row: Partition | KafkaError) -> Partition:
    assert isinstance(row, Partition), "`_partition` has a row for each error"
    return row


async def _partition(group_id: str, topic: TopicImage, index: int, call: Call) -> Partition:
    key = SharePartitionKey(group_id, topic.id, index)
    try:
        state = await call.broker.share_persister.summary(key)
    except KafkaError:
        return Partition(index, UNINITIALIZED)
    row = Partition(index, state.start_offset, state.leader_epoch, _UNKNOWN_LAG)
    if state.start_offset != UNINITIALIZED and state.delivery_complete_count != UNKNOWN_COUNT:
        try:
            end_offset = await call.broker.leaders.end_offset(topic.name, index)
        except KafkaError as error:
            return Partition(index, error_code=error.code, error_message=str(error))
        row.lag = end_offset - state.start_offset - state.delivery_complete_count
    return row
