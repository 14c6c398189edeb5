"""AddRaftVoter v0-1: add a controller to the voters of the quorum (KIP-853).

The leader of the quorum decides. v1 can answer before the change is committed (KIP-1186).
"""

from headrace.broker.api.registry import Call, api
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_request

_RIGHTS = (for_request(Operation.ALTER, ResourceType.CLUSTER),)


@api(ApiKey.ADD_RAFT_VOTER, versions=range(2), rights=_RIGHTS)
async def add_raft_voter(request: AddRaftVoterRequest, call: Call) -> AddRaftVoterResponse:
    response: AddRaftVoterResponse = await call.broker.controller.ask(
        request, call.version, call.caller
    )
    return response
