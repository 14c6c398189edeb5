"""SCRAM (RFC 5802, RFC 7677): both sides prove knowledge of the password without sending it.

An eavesdropper cannot use the client's proof. The server's last message proves that it has the same
secret, so a false broker is detected before any request.
"""

import base64
import binascii
import hashlib
import hmac
from enum import StrEnum
from typing import NamedTuple

from headrace.errors import SaslAuthenticationFailed
from headrace.security.sasl import Exchange

ITERATIONS_MIN = 4096
"""Fewer iterations make passwords easy to guess from a recorded exchange; Kafka's minimum."""
ITERATIONS_MAX = 1_000_000
"""A hostile server must not keep a client computing for hours."""

TOKEN_AUTH = "tokenauth"
"""The extension of clients that log in with a delegation token."""

_NO_CHANNEL_BINDING = "n,,"


class Mechanism(StrEnum):
    """The SCRAM mechanisms of Kafka."""

    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"

    @property
    def hash_name(self) -> str:
        return "sha256" if self is Mechanism.SHA_256 else "sha512"


class _Challenge(NamedTuple):
    """The content of the server's first message."""

    nonce: str
    salt: bytes
    iterations: int


def authenticate(
    mechanism: Mechanism, username: str, password: str, nonce: str, *, by_token: bool = False
) -> Exchange:
    """Prove knowledge of the password, and verify the server's proof.

    With `by_token` the name is the id of a delegation token.
    """
    name = username.replace("=", "=3D").replace(",", "=2C")
    first = f"n={name},r={nonce}" + (f",{TOKEN_AUTH}=true" if by_token else "")
    answer = (yield f"{_NO_CHANNEL_BINDING}{first}".encode()).decode(errors="replace")
    challenge = _challenge(answer, nonce)
    binding = base64.b64encode(_NO_CHANNEL_BINDING.encode()).decode()
    final = f"c={binding},r={challenge.nonce}"
    signed = f"{first},{answer},{final}".encode()
    salted = salted_password(mechanism, password, challenge.salt, challenge.iterations)
    verdict = yield f"{final},p={_base64(_proof(mechanism, salted, signed))}".encode()
    _check_verdict(verdict, server_signature(mechanism, salted, signed))


def salted_password(mechanism: Mechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """Hash a password. New passwords are sent to a cluster in this form."""
    return hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)


def server_signature(mechanism: Mechanism, salted: bytes, signed: bytes) -> bytes:
    """Compute the signature of a server that has the password's keys."""
    server_key = _mac(mechanism, salted, b"Server Key")
    return _mac(mechanism, server_key, signed)


def _proof(mechanism: Mechanism, salted: bytes, signed: bytes) -> bytes:
    client_key = _mac(mechanism, salted, b"Client Key")
    stored_key = hashlib.new(mechanism.hash_name, client_key).digest()
    signature = _mac(mechanism, stored_key, signed)
    return bytes(one ^ other for one, other in zip(client_key, signature, strict=True))


def _challenge(answer: str, nonce: str) -> _Challenge:
    fields = _fields(answer)
    try:
        found = _Challenge(
            fields["r"], base64.b64decode(fields["s"], validate=True), int(fields["i"])
        )
    except (KeyError, ValueError, binascii.Error) as error:
        raise SaslAuthenticationFailed("the broker's SCRAM challenge is malformed") from error
    if not found.nonce.startswith(nonce) or found.nonce == nonce:
        raise SaslAuthenticationFailed("the broker's SCRAM challenge answers another client")
    if not ITERATIONS_MIN <= found.iterations <= ITERATIONS_MAX:
        raise SaslAuthenticationFailed(
            f"the broker requires {found.iterations} iterations of SCRAM; this client allows"
            f" {ITERATIONS_MIN} to {ITERATIONS_MAX}"
        )
    return found


def _check_verdict(verdict: bytes, expected: bytes) -> None:
    fields = _fields(verdict.decode(errors="replace"))
    if "e" in fields:
        raise SaslAuthenticationFailed(f"the broker rejects the login: {fields['e']}")
    if not hmac.compare_digest(fields.get("v", "").encode(), _base64(expected).encode()):
        raise SaslAuthenticationFailed(
            "the broker does not have the password; it may be an impostor"
        )


def _fields(text: str) -> dict[str, str]:
    """Parse `r=...,s=...,i=...`."""
    pairs = (part.partition("=") for part in text.split(","))
    return {name: value for name, _, value in pairs}


def _mac(mechanism: Mechanism, key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, mechanism.hash_name)


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
