"""SaslHandshake v0-1: name the mechanism of a login.

The gate of a SASL listener serves the first one (`broker/logins/gate.py`). This handler gets those
of clients that are logged in already, which renew their session (KIP-368), and of clients of
listeners without SASL.
"""

from headrace.broker.api.registry import Call, api
from headrace.errors import IllegalSaslState
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


@api(ApiKey.SASL_HANDSHAKE, versions=range(2), rights=())
def sasl_handshake(request: SaslHandshakeRequest, call: Call) -> SaslHandshakeResponse:
    login = call.peer.login
    if login is None:
        return SaslHandshakeResponse(error_code=IllegalSaslState.code)
    return login.begin_again(request, call.version)
