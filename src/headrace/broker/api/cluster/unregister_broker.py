"""UnregisterBroker v0: remove a broker from the cluster."""

from headrace.broker.api.registry import Call, api
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)


@api(ApiKey.UNREGISTER_BROKER, versions=range(1))
async def unregister_broker(
    request: UnregisterBrokerRequest, call: Call
) -> UnregisterBrokerResponse:
    response: UnregisterBrokerResponse = await call.broker.controller.ask(
        request, call.version, call.caller
    )
    return response
