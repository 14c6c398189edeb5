"""AlterUserScramCredentials v0: set and remove the SCRAM credentials of users (KIP-554)."""

from headrace.broker.api.registry import Call, api
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_request

_RIGHTS = (for_request(Operation.ALTER, ResourceType.CLUSTER),)


@api(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, versions=range(1), rights=_RIGHTS)
async def alter_user_scram_credentials(
    request: AlterUserScramCredentialsRequest, call: Call
) -> AlterUserScramCredentialsResponse:
    response: AlterUserScramCredentialsResponse = await call.ask_controller(request)
    return response
