"""UnregisterBroker v0: remove a broker from the cluster."""

from headrace.broker.api.registry import Call, api
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_request

_RIGHTS = (for_request(Operation.ALTER, ResourceType.CLUSTER),)


@api(ApiKey.UNREGISTER_BROKER, versions=range(1), rights=_RIGHTS)
async def unregister_broker(
    request: UnregisterBrokerRequest, call: Call
) -> UnregisterBrokerResponse:
    response: UnregisterBrokerResponse = await call.broker.controller.ask(
        request, call.version, call.caller
    )
    return response
