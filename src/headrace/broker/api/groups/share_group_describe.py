"""ShareGroupDescribe v1: share groups with their members and assignments."""

from collections.abc import Coroutine, Iterator
from typing import Any

from headrace.broker.api.groups.describing import DESCRIBING_RIGHTS, describe_each
from headrace.broker.api.registry import Call, api
from headrace.groups.share.description import describe
from headrace.groups.share.group import ShareGroup
from headrace.metadata.features import check_share_groups
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)


@api(ApiKey.SHARE_GROUP_DESCRIBE, versions=range(1, 2), rights=DESCRIBING_RIGHTS)
def share_group_describe(
    request: ShareGroupDescribeRequest, call: Call
) -> ShareGroupDescribeResponse | Coroutine[Any, Any, ShareGroupDescribeResponse]:
    broker = call.broker
    check_share_groups(broker.image.features)
    image, assignor = broker.image, broker.settings.group_share_assignors[0]
    return describe_each(
        request,
        call,
        ShareGroup,
        lambda group: describe(group, image, assignor),
        DescribedGroup,
        lambda groups: ShareGroupDescribeResponse(groups=groups),
        _topics,
    )


def _topics(group: DescribedGroup) -> Iterator[str]:
    for member in group.members:
        yield from (one.topic_name for one in member.assignment.topic_partitions)
