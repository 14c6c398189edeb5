"""UnregisterBroker v0: forget a broker for good."""

from headrace.broker.api.registry import Call, api
from headrace.controller import registration
from headrace.errors import InvalidRequest
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)


@api(ApiKey.UNREGISTER_BROKER, versions=range(1))
async def unregister_broker(
    request: UnregisterBrokerRequest, call: Call
) -> UnregisterBrokerResponse:
    if request.broker_id == call.broker.node_id:
        # Its next heartbeat would bring a Kafka broker back; ours is the controller as well.
        raise InvalidRequest("a node that is its own controller cannot be unregistered; stop it")
    controller = call.broker.controller
    await controller.submit(
        lambda image: registration.unregister_broker(image, request.broker_id, controller.defaults)
    )
    return UnregisterBrokerResponse(error_message=None)
