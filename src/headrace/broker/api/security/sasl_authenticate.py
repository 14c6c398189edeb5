"""SaslAuthenticate v0-2: a message of a login, which only the gate of a listener serves."""

from headrace.broker.api.registry import Call, api
from headrace.errors import IllegalSaslState
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)


@api(ApiKey.SASL_AUTHENTICATE, versions=range(3), rights=())
def sasl_authenticate(request: SaslAuthenticateRequest, call: Call) -> SaslAuthenticateResponse:
    raise IllegalSaslState("SaslAuthenticate request received without a SaslHandshake before it")
