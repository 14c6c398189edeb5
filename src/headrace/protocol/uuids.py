"""Kafka's UUIDs: 16 bytes on the wire, 22 characters of URL-safe base64 for people.

They are kept as plain `bytes`: a topic id is compared, hashed and copied on every fetch, and
nothing is ever computed with it.
"""

from binascii import Error, a2b_base64, b2a_base64
from typing import Annotated, TypeAlias

from headrace.runtime import chance

Uuid: TypeAlias = Annotated[bytes, "uuid"]

ZERO: Uuid = bytes(16)
"""The value for "no UUID": Kafka has no null for this type."""

_RESERVED_BELOW = 100
_TO_URL = bytes.maketrans(b"+/", b"-_")
_FROM_URL = bytes.maketrans(b"-_+/", b"+/!!")


def random_uuid() -> Uuid:
    """A new version 4 UUID that is neither reserved nor awkward on a command line.

    Kafka keeps the lowest hundred values for itself and, as we do, draws again when the text
    would start with a dash, because tools take that for an option.
    """
    while True:
        drawn = bytearray(chance.urandom(16))
        drawn[6] = drawn[6] & 0x0F | 0x40
        drawn[8] = drawn[8] & 0x3F | 0x80
        uuid = bytes(drawn)
        if not to_text(uuid).startswith("-") and not is_reserved(uuid):
            return uuid


def is_reserved(uuid: Uuid) -> bool:
    """Return whether a UUID has a special meaning, such as "none" or "not assigned yet"."""
    return int.from_bytes(uuid) < _RESERVED_BELOW


def to_text(uuid: Uuid) -> str:
    """The 22 characters in which Kafka prints a UUID and writes it to its files."""
    return b2a_base64(uuid, newline=False).translate(_TO_URL, b"=").decode()


def from_text(text: str) -> Uuid:
    """The UUID that `to_text` has printed; `ValueError` for anything else."""
    try:
        uuid = a2b_base64(text.encode("ascii").translate(_FROM_URL) + b"==", strict_mode=True)
    except (Error, UnicodeEncodeError):
        uuid = b""
    if len(uuid) != 16:
        raise ValueError(f"{text!r} is not a UUID: expected 22 characters of URL-safe base64")
    return uuid
