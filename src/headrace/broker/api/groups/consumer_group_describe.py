"""ConsumerGroupDescribe v0-1: consumer groups with members, current and target assignments.

v1 adds the protocol that each member speaks (KIP-1099).
"""

from collections.abc import Coroutine, Iterator
from typing import Any

from headrace.broker.api.groups.describing import DESCRIBING_RIGHTS, describe_each
from headrace.broker.api.registry import Call, api
from headrace.groups.consumer.description import describe
from headrace.groups.consumer.group import ConsumerGroup
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)


@api(ApiKey.CONSUMER_GROUP_DESCRIBE, versions=range(2), rights=DESCRIBING_RIGHTS)
def consumer_group_describe(
    request: ConsumerGroupDescribeRequest, call: Call
) -> ConsumerGroupDescribeResponse | Coroutine[Any, Any, ConsumerGroupDescribeResponse]:
    image = call.broker.image
    return describe_each(
        request,
        call,
        ConsumerGroup,
        lambda group: describe(group, image),
        DescribedGroup,
        lambda groups: ConsumerGroupDescribeResponse(groups=groups),
        _topics,
    )


def _topics(group: DescribedGroup) -> Iterator[str]:
    for member in group.members:
        for assignment in (member.assignment, member.target_assignment):
            yield from (one.topic_name for one in assignment.topic_partitions)
