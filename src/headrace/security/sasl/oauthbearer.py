"""SASL OAUTHBEARER (RFC 7628): a token signed by a third party identifies the client.

Also the unsigned token of Kafka's and librdkafka's development handlers, which any client can
create: for development only.
"""

import base64
from collections.abc import Mapping

import msgspec

from headrace.errors import SaslAuthenticationFailed
from headrace.security.sasl import Exchange

_SEPARATOR = "\x01"
_LIFETIME_S = 3600


def authenticate(token: str, extensions: Mapping[str, str] | None = None) -> Exchange:
    """Send the token; a server that rejects it sends the reason before the end."""
    pairs = {"auth": f"Bearer {token}", **(extensions or {})}
    fields = "".join(f"{name}={value}{_SEPARATOR}" for name, value in pairs.items())
    reason = yield f"n,,{_SEPARATOR}{fields}{_SEPARATOR}".encode()
    if reason:
        # The server waits for this message before it ends the exchange.
        yield _SEPARATOR.encode()
        raise SaslAuthenticationFailed(f"the token is rejected: {reason.decode(errors='replace')}")


def unsecured_token(principal: str, now_s: float, lifetime_s: int = _LIFETIME_S) -> str:
    """Create a token for `principal` without a signature."""
    claims = {"sub": principal, "iat": int(now_s), "exp": int(now_s) + lifetime_s}
    parts = ({"alg": "none", "typ": "JWT"}, claims)
    return ".".join(_part(part) for part in parts) + "."


def _part(content: Mapping[str, object]) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(content)).decode().rstrip("=")
