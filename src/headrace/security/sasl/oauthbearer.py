"""SASL OAUTHBEARER (RFC 7628): a token that somebody else signed stands for the client.

Also the unsigned token of Kafka's and librdkafka's development handlers, which any client may
make for itself: good for a broker on a desk, and for no other.
"""

import base64
from collections.abc import Mapping

import msgspec

from headrace.errors import SaslAuthenticationFailed
from headrace.security.sasl import Exchange

_SEPARATOR = "\x01"
_LIFETIME_S = 3600


def authenticate(token: str, extensions: Mapping[str, str] | None = None) -> Exchange:
    """Show the token; a server that refuses it says why before it ends the exchange."""
    pairs = {"auth": f"Bearer {token}", **(extensions or {})}
    fields = "".join(f"{name}={value}{_SEPARATOR}" for name, value in pairs.items())
    refusal = yield f"n,,{_SEPARATOR}{fields}{_SEPARATOR}".encode()
    if refusal:
        # The server waits for this before it says no in its own words.
        yield _SEPARATOR.encode()
        raise SaslAuthenticationFailed(f"the token is refused: {refusal.decode(errors='replace')}")


def unsecured_token(principal: str, now_s: float, lifetime_s: int = _LIFETIME_S) -> str:
    """A token without a signature, in the name of `principal`."""
    claims = {"sub": principal, "iat": int(now_s), "exp": int(now_s) + lifetime_s}
    parts = ({"alg": "none", "typ": "JWT"}, claims)
    return ".".join(_part(part) for part in parts) + "."


def _part(content: Mapping[str, object]) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(content)).decode().rstrip("=")
