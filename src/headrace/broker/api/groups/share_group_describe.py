"""ShareGroupDescribe v1: share groups with their members and what each has."""

from headrace.broker.api.registry import Call, api
from headrace.broker.authorized_operations import ON_GROUP
from headrace.errors import InvalidGroupId, KafkaError
from headrace.groups.share import share_group
from headrace.groups.share_description import describe
from headrace.metadata.features import check_share_groups
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)


def _refuse(
    request: ShareGroupDescribeRequest, error: KafkaError, version: int
) -> ShareGroupDescribeResponse:
    return ShareGroupDescribeResponse(groups=[_refused(one, error) for one in request.group_ids])


@api(ApiKey.SHARE_GROUP_DESCRIBE, versions=range(1, 2), refuse=_refuse)
def share_group_describe(
    request: ShareGroupDescribeRequest, call: Call
) -> ShareGroupDescribeResponse:
    check_share_groups(call.broker.image.features)
    described = [_described(group_id, call) for group_id in request.group_ids]
    if request.include_authorized_operations:
        for one in described:
            if not one.error_code:
                one.authorized_operations = ON_GROUP
    return ShareGroupDescribeResponse(groups=described)


def _described(group_id: str, call: Call) -> DescribedGroup:
    broker = call.broker
    try:
        if not group_id:
            raise InvalidGroupId("the group id is empty; name the group to describe")
        group = share_group(broker.groups.shard_for(group_id).state, group_id)
    except KafkaError as error:
        return _refused(group_id, error)
    return describe(group, broker.image, broker.settings.group_share_assignors[0])


def _refused(group_id: str, error: KafkaError) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=error.code, error_message=str(error))
