"""RemoveRaftVoter v0: remove a controller from the voters of the quorum (KIP-853).

The leader of the quorum decides; a leader that removes itself hands over.
"""

from headrace.broker.api.registry import Call, api
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.remove_raft_voter import (
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_request

_RIGHTS = (for_request(Operation.ALTER, ResourceType.CLUSTER),)


@api(ApiKey.REMOVE_RAFT_VOTER, versions=range(1), rights=_RIGHTS)
async def remove_raft_voter(request: RemoveRaftVoterRequest, call: Call) -> RemoveRaftVoterResponse:
    response: RemoveRaftVoterResponse = await call.broker.controller.ask(
        request, call.version, call.caller
    )
    return response
