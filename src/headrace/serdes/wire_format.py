"""Confluent's wire format: the schema of a payload.

Usually the payload starts with a byte of 0 and the registry's id in four bytes. Alternatively a
header has a byte of 1 and the schema's GUID in sixteen, and the payload is the value alone. In a
Protobuf payload the path to its message follows either (`protobuf/indexes.py`).
"""

from typing import Any, Final
from uuid import UUID

from headrace.errors import HeadraceError

SchemaId = int | str
"""The number that a registry has assigned to a schema, or its GUID."""

ID_SIZE: Final = 5
GUID_SIZE: Final = 17
_MAGIC_ID = 0
_MAGIC_GUID = 1


class UnframedPayload(HeadraceError):
    """A payload does not name its schema."""


def front_of(id_: int) -> bytes:
    return b"\0" + id_.to_bytes(4, "big", signed=True)


def id_at_front(payload: bytes) -> int | None:
    """Return the id at the beginning of a payload, None without an id."""
    if len(payload) < ID_SIZE or payload[0] != _MAGIC_ID:
        return None
    return int.from_bytes(payload[1:ID_SIZE], "big", signed=True)


def header_name(part: str) -> str:
    """Return the header's name for the schema of a `key` or a `value`."""
    return f"__{part}_schema_id"


def schema_header(headers: Any, part: str) -> bytes | None:
    """Return the header for the schema of a `key` or a `value`; the last of several, as in Java.

    Headers are pairs, a dict, or None, as clients pass them.
    """
    name = header_name(part)
    pairs = headers.items() if isinstance(headers, dict) else headers or ()
    found: bytes | None = None
    for key, content in pairs:
        if key == name:
            found = content
    return found


def header_of(guid: str) -> bytes:
    return b"\x01" + UUID(guid).bytes


def id_in_header(content: bytes) -> SchemaId | None:
    """Return the GUID or the id in a header; Protobuf's path to a message may follow it."""
    if len(content) >= GUID_SIZE and content[0] == _MAGIC_GUID:
        return str(UUID(bytes=content[1:GUID_SIZE]))
    return id_at_front(content)
