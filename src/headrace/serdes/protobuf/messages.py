"""Messages of a schema: bytes and JSON to messages and back, without generated classes.

JSON is Protobuf's own mapping: 64-bit numbers are strings, bytes are base64, enums are names.
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

from headrace.serdes.protobuf.errors import CorruptPayload, UnfitValue, UnknownMessage
from headrace.serdes.protobuf.parsing import ProtobufSchema

PAYLOAD_BYTES_MAX = 128 << 20
DEPTH_MAX = 100
"""How deep messages may nest; Protobuf's own bound for bytes, so JSON has the same."""

TYPES_KEPT_MAX = 4096
"""Types are asked for with each payload, and their classes are costly to make."""

NAMES_SHOWN_MAX = 10
REASON_CHARS_MAX = 500

UNFIT = (
    json_format.Error, ValueError, TypeError, AttributeError, KeyError, OverflowError,
    RecursionError, EncodeError,
)  # fmt: skip
"""What Protobuf's library refuses a value with."""


@dataclass(frozen=True)
class MessageType:
    """One message of a schema."""

    schema: ProtobufSchema
    name: str
    """Its full name."""

    indexes: tuple[int, ...]
    """The way to it in the wire format."""

    @cached_property
    def descriptor(self) -> Descriptor:
        return self.schema.pool.FindMessageTypeByName(self.name)

    @cached_property
    def message_class(self) -> Any:
        return GetMessageClass(self.descriptor)

    def decode(self, payload: bytes) -> Message:
        """The message that the bytes are; fields that the schema lacks are kept along."""
        if len(payload) > PAYLOAD_BYTES_MAX:
            raise CorruptPayload(f"{len(payload)} bytes are too many for a message {self.name}")
        try:
            message: Message = self.message_class.FromString(payload)
        except (DecodeError, ValueError) as error:
            raise CorruptPayload(f"not a message {self.name}: {error}") from error
        return message

    def encode(self, value: Message | Mapping[str, Any]) -> bytes:
        """The bytes of a message, of whatever class, or of its JSON. Maps come in one order."""
        message = value if isinstance(value, Message) else self.from_json(value)
        if message.DESCRIPTOR.full_name != self.name:
            raise UnfitValue(f"a message {message.DESCRIPTOR.full_name} is no {self.name}")
        try:
            payload: bytes = message.SerializeToString(deterministic=True)
        except (EncodeError, ValueError) as error:
            raise UnfitValue(f"{self.name}: {error}") from error
        if len(payload) > PAYLOAD_BYTES_MAX:
            raise UnfitValue(f"{len(payload)} bytes are too many for a message {self.name}")
        return payload

    def from_json(self, value: Mapping[str, Any] | str) -> Message:
        """The message of a JSON value or text; a field that the schema lacks is an error."""
        message: Message = self.message_class()
        try:
            found = json.loads(value) if isinstance(value, str) else value
            if not isinstance(found, Mapping):
                raise TypeError(f"a JSON object belongs here, not a {type(found).__name__}")
            json_format.ParseDict(
                found, message, descriptor_pool=self.schema.pool, max_recursion_depth=DEPTH_MAX
            )
        except UNFIT as error:
            raise UnfitValue(f"{self.name}: {str(error)[:REASON_CHARS_MAX]}") from error
        return message

    def to_json(self, message: Message) -> Any:
        """The message as JSON, its fields by their JSON names, with defaults filled in."""
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
    """The message of this name, with or without its package; the first one without a name."""
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
    """The message that the wire format's indexes lead to."""
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
