"""StreamsGroupDescribe v0: streams groups with their topology, members and tasks (KIP-1071)."""

from headrace.broker.api.registry import Call, api
from headrace.broker.authorized_operations import ON_GROUP
from headrace.errors import GroupIdNotFound, InvalidGroupId, KafkaError
from headrace.groups.streams_description import describe
from headrace.groups.streams_group import StreamsGroup
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)


def _refuse(
    request: StreamsGroupDescribeRequest, error: KafkaError, version: int
) -> StreamsGroupDescribeResponse:
    return StreamsGroupDescribeResponse(groups=[_refused(one, error) for one in request.group_ids])


@api(ApiKey.STREAMS_GROUP_DESCRIBE, versions=range(1), refuse=_refuse)
def streams_group_describe(
    request: StreamsGroupDescribeRequest, call: Call
) -> StreamsGroupDescribeResponse:
    described = [_described(group_id, call) for group_id in request.group_ids]
    if request.include_authorized_operations:
        for one in described:
            if not one.error_code:
                one.authorized_operations = ON_GROUP
    return StreamsGroupDescribeResponse(groups=described)


def _described(group_id: str, call: Call) -> DescribedGroup:
    try:
        if not group_id:
            raise InvalidGroupId("the group id is empty; name the group to describe")
        group = call.broker.groups.shard_for(group_id).state.groups.get(group_id)
        if not isinstance(group, StreamsGroup):
            what = "not found" if group is None else "not a streams group"
            raise GroupIdNotFound(f"Group {group_id} is {what}.")
    except KafkaError as error:
        return _refused(group_id, error)
    return describe(group)


def _refused(group_id: str, error: KafkaError) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=error.code, error_message=str(error))
