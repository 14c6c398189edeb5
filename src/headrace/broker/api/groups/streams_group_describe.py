"""StreamsGroupDescribe v0: streams groups with their topology, members and tasks (KIP-1071)."""

from collections.abc import Coroutine
from typing import Any

from headrace.broker.api.groups.describing import describe_each
from headrace.broker.api.registry import Call, api
from headrace.groups.streams.description import describe
from headrace.groups.streams.group import StreamsGroup
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)


@api(ApiKey.STREAMS_GROUP_DESCRIBE, versions=range(1))
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
    )
