"""SCRAM keys equal those of a second computation, written from RFC 5802 with plain loops."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from headrace.security.sasl.scram import Mechanism
from headrace.security.scram_credentials import credential_of

BLOCK_BYTES = {"sha256": 64, "sha512": 128}


def keyed_hash(name: str, key: bytes, message: bytes) -> bytes:
    """HMAC by RFC 2104."""
    block = BLOCK_BYTES[name]
    if len(key) > block:
        key = hashlib.new(name, key).digest()
    key = key.ljust(block, b"\0")
    inner = hashlib.new(name, bytes(one ^ 0x36 for one in key) + message).digest()
    return hashlib.new(name, bytes(one ^ 0x5C for one in key) + inner).digest()


def hi(name: str, password: bytes, salt: bytes, iterations: int) -> bytes:
    """The function Hi of RFC 5802."""
    previous = keyed_hash(name, password, salt + b"\0\0\0\x01")
    result = int.from_bytes(previous)
    for _ in range(iterations - 1):
        previous = keyed_hash(name, password, previous)
        result ^= int.from_bytes(previous)
    return result.to_bytes(len(previous))


@given(
    mechanism=st.sampled_from(Mechanism),
    password=st.text(max_size=200),
    salt=st.binary(max_size=60),
    iterations=st.integers(1, 40),
)
def test_the_keys_of_a_password_are_those_of_the_rfc(
    mechanism: Mechanism, password: str, salt: bytes, iterations: int
) -> None:
    """SEC-5: the limits of iterations are checked elsewhere, so few of them suffice here."""
    name = mechanism.hash_name
    salted = hi(name, password.encode(), salt, iterations)
    found = credential_of(mechanism, password, salt, iterations)
    client_key = keyed_hash(name, salted, b"Client Key")
    assert found.stored_key == hashlib.new(name, client_key).digest()
    assert found.server_key == keyed_hash(name, salted, b"Server Key")
    assert (found.salt, found.iterations) == (salt, iterations)
