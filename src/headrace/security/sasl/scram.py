"""SCRAM (RFC 5802, RFC 7677): both sides prove that they know the password, and neither says it.

The client's proof is worth nothing to who overhears it, and the server's last word proves that it
holds the same secret, so a false broker is found out before it is told anything.
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
"""Fewer make a password easy to guess from an overheard exchange; Kafka asks for as many."""
ITERATIONS_MAX = 1_000_000
"""A hostile server must not keep a client computing for hours."""

_NO_CHANNEL_BINDING = "n,,"


class Mechanism(StrEnum):
    """The two that Kafka has."""

    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"

    @property
    def hash_name(self) -> str:
        return "sha256" if self is Mechanism.SHA_256 else "sha512"


class _Challenge(NamedTuple):
    """What the server's first message asks for."""

    nonce: str
    salt: bytes
    iterations: int


def authenticate(mechanism: Mechanism, username: str, password: str, nonce: str) -> Exchange:
    """Prove the password, and let the server prove that it knows it too."""
    name = username.replace("=", "=3D").replace(",", "=2C")
    first = f"n={name},r={nonce}"
    answer = (yield f"{_NO_CHANNEL_BINDING}{first}".encode()).decode(errors="replace")
    challenge = _challenge(answer, nonce)
    binding = base64.b64encode(_NO_CHANNEL_BINDING.encode()).decode()
    final = f"c={binding},r={challenge.nonce}"
    signed = f"{first},{answer},{final}".encode()
    salted = hashlib.pbkdf2_hmac(
        mechanism.hash_name, password.encode(), challenge.salt, challenge.iterations
    )
    verdict = yield f"{final},p={_base64(_proof(mechanism, salted, signed))}".encode()
    _check_verdict(verdict, server_signature(mechanism, salted, signed))


def server_signature(mechanism: Mechanism, salted: bytes, signed: bytes) -> bytes:
    """What only a server that knows the password, or what is stored of it, can sign."""
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
            f"the broker asks for {found.iterations} iterations of SCRAM; this client does"
            f" {ITERATIONS_MIN} to {ITERATIONS_MAX}"
        )
    return found


def _check_verdict(verdict: bytes, expected: bytes) -> None:
    fields = _fields(verdict.decode(errors="replace"))
    if "e" in fields:
        raise SaslAuthenticationFailed(f"the broker refuses: {fields['e']}")
    if not hmac.compare_digest(fields.get("v", "").encode(), _base64(expected).encode()):
        raise SaslAuthenticationFailed(
            "the broker does not know the password itself: it may not be the one it claims to be"
        )


def _fields(text: str) -> dict[str, str]:
    """`r=...,s=...,i=...` by letter."""
    pairs = (part.partition("=") for part in text.split(","))
    return {name: value for name, _, value in pairs}


def _mac(mechanism: Mechanism, key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, mechanism.hash_name)


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
