"""SCRAM credentials: the keys by which a server verifies logins without knowing passwords.

The metadata has two keys of each user and mechanism. The stored key verifies the client's proof.
The server key proves the server to the client. Neither one lets anybody log in as the client.
"""

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from headrace.security.sasl.scram import ITERATIONS_MIN, Mechanism, salted_password

STORED_ITERATIONS_MAX = 16_384
"""Kafka's limit for credentials in the metadata: each login costs the client as many hashes."""

MECHANISM_IDS: Mapping[Mechanism, int] = MappingProxyType(
    {Mechanism.SHA_256: 1, Mechanism.SHA_512: 2}
)
"""The number of each mechanism in requests and in records."""

_MECHANISMS = {number: mechanism for mechanism, number in MECHANISM_IDS.items()}
_SALT_BYTES = 24


class ScramCredential(msgspec.Struct, frozen=True):
    """The keys of a user for one mechanism."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential(iterations={self.iterations})"


def mechanism_of(number: int) -> Mechanism | None:
    """Return the mechanism with a number, if it exists."""
    return _MECHANISMS.get(number)


def new_salt() -> bytes:
    return secrets.token_bytes(_SALT_BYTES)


def credential_of(
    mechanism: Mechanism, password: str, salt: bytes, iterations: int = ITERATIONS_MIN
) -> ScramCredential:
    """Derive the keys of a password."""
    salted = salted_password(mechanism, password, salt, iterations)
    return credential_of_salted(mechanism, salted, salt, iterations)


def credential_of_salted(
    mechanism: Mechanism, salted: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    """Derive the keys of a salted password."""
    hash_name = mechanism.hash_name
    client_key = hmac.digest(salted, b"Client Key", hash_name)
    return ScramCredential(
        salt=salt,
        stored_key=hashlib.new(hash_name, client_key).digest(),
        server_key=hmac.digest(salted, b"Server Key", hash_name),
        iterations=iterations,
    )
