"""ListGroups v0-5: the groups of all kinds that this broker coordinates.

v4 filters by state (KIP-518), v5 by type (KIP-848); both ignore the case.
"""

from collections.abc import Coroutine
from typing import Any

from headrace.broker.api.registry import Call, api
from headrace.errors import CoordinatorLoadInProgress
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


@api(ApiKey.LIST_GROUPS, versions=range(6))
def list_groups(
    request: ListGroupsRequest, call: Call
) -> ListGroupsResponse | Coroutine[Any, Any, ListGroupsResponse]:
    groups = call.broker.groups
    if groups.is_loading:
        raise CoordinatorLoadInProgress("the groups are still being loaded; retry soon")
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    response = ListGroupsResponse(
        groups=[
            ListedGroup(group.group_id, group.protocol_type, group.state_name, group.type.value)
            for shard in groups.shards.values()
            for group in shard.state.groups.values()
            if (not states or group.state_name.lower() in states)
            and (not types or group.type.value in types)
        ]
    )
    return groups.listed(response)
