"""How a payload names its schema: Confluent's wire format.

Usually by a first byte of 0 and the registry's id in four bytes, before the encoded value. Or by a
header with a byte of 1 and the schema's GUID in sixteen, and the payload is the value alone. A
Protobuf payload has the way to its message after either (`protobuf/indexes.py`).
"""

from typing import Any, Final
from uuid import UUID

from headrace.errors import HeadraceError

SchemaId = int | str
"""The number that a registry gave a schema, or its GUID."""

ID_SIZE: Final = 5
GUID_SIZE: Final = 17
_MAGIC_ID = 0
_MAGIC_GUID = 1


class UnframedPayload(HeadraceError):
    """A payload that does not say which schema it has."""


def front_of(id_: int) -> bytes:
    return b"\0" + id_.to_bytes(4, "big", signed=True)


def id_at_front(payload: bytes) -> int | None:
    """The id that a payload begins with, None if it does not begin with one."""
    if len(payload) < ID_SIZE or payload[0] != _MAGIC_ID:
        return None
    return int.from_bytes(payload[1:ID_SIZE], "big", signed=True)


def header_name(part: str) -> str:
    """The header for the schema of a `key` or of a `value`."""
    return f"__{part}_schema_id"


def schema_header(headers: Any, part: str) -> bytes | None:
    """The header for the schema of a `key` or of a `value`; of several the last, as in Java.

    Headers are pairs, a dict, or None, as clients hand them over.
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
    """The GUID or the id that a header holds; what follows it is Protobuf's way to a message."""
    if len(content) >= GUID_SIZE and content[0] == _MAGIC_GUID:
        return str(UUID(bytes=content[1:GUID_SIZE]))
    return id_at_front(content)
