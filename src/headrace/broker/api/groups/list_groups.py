"""ListGroups v0-5: the groups of all kinds that this broker coordinates.

v4 filters by state (KIP-518), v5 by type (KIP-848); both ignore the case.
"""

from collections.abc import Coroutine
from typing import Any

from headrace.broker.api.registry import Call, api
from headrace.errors import CoordinatorLoadInProgress
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from headrace.security.access import OPEN
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import Alternative, to_list

_RIGHTS = (
    to_list(
        Operation.DESCRIBE,
        ResourceType.GROUP,
        instead=(Alternative(Operation.DESCRIBE, ResourceType.CLUSTER),),
    ),
)


@api(ApiKey.LIST_GROUPS, versions=range(6), rights=_RIGHTS)
def list_groups(
    request: ListGroupsRequest, call: Call
) -> ListGroupsResponse | Coroutine[Any, Any, ListGroupsResponse]:
    groups = call.broker.groups
    if groups.is_loading:
        raise CoordinatorLoadInProgress("the groups are still being loaded; retry soon")
    access = (
        OPEN if call.access.allows_on_cluster(Operation.DESCRIBE, is_audited=False) else call.access
    )
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    response = ListGroupsResponse(
        groups=[
            ListedGroup(group.group_id, group.protocol_type, group.state_name, group.type.value)
            for shard in groups.shards.values()
            for group in shard.state.groups.values()
            if (not states or group.state_name.lower() in states)
            and (not types or group.type.value in types)
            and access.allows(
                Operation.DESCRIBE, ResourceType.GROUP, group.group_id, is_audited=False
            )
        ]
    )
    return groups.listed(response)
