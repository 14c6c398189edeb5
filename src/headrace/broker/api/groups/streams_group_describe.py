"""StreamsGroupDescribe v0: streams groups with their topology, members and tasks (KIP-1071)."""

from collections.abc import Coroutine, Iterator
from typing import Any

from headrace.broker.api.groups.describing import DESCRIBING_RIGHTS, describe_each
from headrace.broker.api.registry import Call, api
from headrace.groups.streams.description import describe
from headrace.groups.streams.group import StreamsGroup
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)


@api(ApiKey.STREAMS_GROUP_DESCRIBE, versions=range(1), rights=DESCRIBING_RIGHTS)
def streams_group_describe(
    request: StreamsGroupDescribeRequest, call: Call
) -> StreamsGroupDescribeResponse | Coroutine[Any, Any, StreamsGroupDescribeResponse]:
    return describe_each(
        request,
        call,
        StreamsGroup,
        describe,
        DescribedGroup,
        lambda groups: StreamsGroupDescribeResponse(groups=groups),
        _topics,
    )


def _topics(group: DescribedGroup) -> Iterator[str]:
    if group.topology is not None:
        for one in group.topology.subtopologies or ():
            yield from one.source_topics
            yield from one.repartition_sink_topics
            yield from (topic.name for topic in one.repartition_source_topics)
            yield from (topic.name for topic in one.state_changelog_topics)
