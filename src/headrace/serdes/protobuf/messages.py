"""Messages of a schema: bytes and JSON to messages and back, without generated classes.

The JSON is Protobuf's mapping: 64-bit numbers are strings, bytes are base64, enums are names.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, EncodeError, Message
from google.protobuf.message_factory import GetMessageClass

from headrace.serdes.payload_errors import CorruptPayload, PayloadError, UnfitValue
from headrace.serdes.protobuf.parsing import ProtobufSchema

PAYLOAD_BYTES_MAX = 128 << 20
DEPTH_MAX = 100
"""Limit of nested messages in JSON, equal to Protobuf's limit for bytes."""

TYPES_KEPT_MAX = 4096
"""Types are looked up for each payload, and their classes are costly to create."""

NAMES_SHOWN_MAX = 10
REASON_CHARS_MAX = 500

UNFIT = (
    json_format.Error, ValueError, TypeError, AttributeError, KeyError, OverflowError,
    RecursionError, EncodeError,
)  # fmt: skip
"""Errors of Protobuf's library for invalid values."""


class UnknownMessage(PayloadError):
    """A message name or indexes that the schema does not contain."""


@dataclass(frozen=True)
class MessageType:
    """One message of a schema."""

    schema: ProtobufSchema
    name: str
    """The full name."""

    indexes: tuple[int, ...]
    """The path to the message in the wire format."""

    @cached_property
    def descriptor(self) -> Descriptor:
        return self.schema.pool.FindMessageTypeByName(self.name)

    @cached_property
    def message_class(self) -> Any:
        return GetMessageClass(self.descriptor)

    def decode(self, payload: bytes) -> Message:
        """Decode a message; fields unknown to the schema are kept."""
        if len(payload) > PAYLOAD_BYTES_MAX:
            raise CorruptPayload(f"{len(payload)} bytes are too many for a message {self.name}")
        try:
            message: Message = self.message_class.FromString(payload)
        except (DecodeError, ValueError) as error:
            raise CorruptPayload(f"not a message {self.name}: {error}") from error
        return message

    def encode(self, value: Message | Mapping[str, Any]) -> bytes:
        """Encode a message of any class, or its JSON, with maps in a fixed order."""
        message = value if isinstance(value, Message) else self.from_json(value)
        if message.DESCRIPTOR.full_name != self.name:
            raise UnfitValue(f"a message {message.DESCRIPTOR.full_name} is not a {self.name}")
        try:
            payload: bytes = message.SerializeToString(deterministic=True)
        except (EncodeError, ValueError) as error:
            raise UnfitValue(f"{self.name}: {error}") from error
        if len(payload) > PAYLOAD_BYTES_MAX:
            raise UnfitValue(f"{len(payload)} bytes are too many for a message {self.name}")
        return payload

    def from_json(self, value: Mapping[str, Any] | str) -> Message:
        """Convert a JSON value or text to a message; unknown fields are an error."""
        message: Message = self.message_class()
        try:
            found = json.loads(value) if isinstance(value, str) else value
            if not isinstance(found, Mapping):
                raise TypeError(f"expected a JSON object, not a {type(found).__name__}")
            json_format.ParseDict(
                found, message, descriptor_pool=self.schema.pool, max_recursion_depth=DEPTH_MAX
            )
        except UNFIT as error:
            raise UnfitValue(f"{self.name}: {str(error)[:REASON_CHARS_MAX]}") from error
        return message

    def to_json(self, message: Message) -> Any:
        """Convert a message to JSON with JSON names of fields and defaults filled in."""
        try:
            return json_format.MessageToDict(
                message,
                always_print_fields_with_no_presence=True,
                descriptor_pool=self.schema.pool,
            )
        except UNFIT as error:
            raise UnfitValue(f"{self.name}: {error}") from error


@lru_cache(TYPES_KEPT_MAX)
def message_type(schema: ProtobufSchema, name: str = "") -> MessageType:
    """Return the message with a name, with or without its package; the first one by default."""
    known = schema.messages
    if not name:
        return message_type_at(schema, (0,))
    package = schema.payload_file.package
    for full_name in (name, f"{package}.{name}"):
        if full_name in known:
            return MessageType(schema, full_name, known[full_name])
    raise UnknownMessage(f"the Protobuf schema has no message {name}; it has {listed(known)}")


@lru_cache(TYPES_KEPT_MAX)
def message_type_at(schema: ProtobufSchema, indexes: tuple[int, ...]) -> MessageType:
    """Return the message at the wire format's indexes."""
    for name, way in schema.messages.items():
        if way == indexes:
            return message_type(schema, name)
    shown = ".".join(map(str, indexes[:NAMES_SHOWN_MAX]))
    raise UnknownMessage(
        f"the Protobuf schema has no message at {shown}; it has {listed(schema.messages)}"
    )


def listed(names: Mapping[str, object]) -> str:
    shown = sorted(names)[:NAMES_SHOWN_MAX]
    left_out = len(names) - len(shown)
    return (", ".join(shown) or "none") + (f" and {left_out} others" if left_out else "")
