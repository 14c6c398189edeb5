"""ConsumerGroupDescribe v0-1: consumer groups with their members, as they are and shall be.

v1 tells which protocol each member speaks (KIP-1099).
"""

from headrace.broker.api.registry import Call, api
from headrace.broker.authorized_operations import ON_GROUP
from headrace.errors import GroupIdNotFound, InvalidGroupId, KafkaError
from headrace.groups.consumer_description import describe
from headrace.groups.consumer_group import ConsumerGroup
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)


def _refuse(
    request: ConsumerGroupDescribeRequest, error: KafkaError, version: int
) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(groups=[_refused(one, error) for one in request.group_ids])


@api(ApiKey.CONSUMER_GROUP_DESCRIBE, versions=range(2), refuse=_refuse)
def consumer_group_describe(
    request: ConsumerGroupDescribeRequest, call: Call
) -> ConsumerGroupDescribeResponse:
    described = [_described(group_id, call) for group_id in request.group_ids]
    if request.include_authorized_operations:
        for one in described:
            if not one.error_code:
                one.authorized_operations = ON_GROUP
    return ConsumerGroupDescribeResponse(groups=described)


def _described(group_id: str, call: Call) -> DescribedGroup:
    try:
        if not group_id:
            raise InvalidGroupId("the group id is empty; name the group to describe")
        group = call.broker.groups.shard_for(group_id).state.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            what = "not found" if group is None else "not a consumer group"
            raise GroupIdNotFound(f"Group {group_id} is {what}.")
    except KafkaError as error:
        return _refused(group_id, error)
    return describe(group, call.broker.image, group.settings())


def _refused(group_id: str, error: KafkaError) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=error.code, error_message=str(error))
