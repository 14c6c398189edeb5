"""JSON to payloads and back by one schema: Avro's JSON encoding, JSON itself, Protobuf's JSON.

What a codec makes is the value alone; the id of its schema goes before it.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from headrace.errors import HeadraceError
from headrace.rest.formats import Format
from headrace.serdes.schemas import Dependency, InvalidSchema, SchemaType

SCHEMA_TYPES = {
    Format.AVRO: SchemaType.AVRO,
    Format.JSONSCHEMA: SchemaType.JSON,
    Format.PROTOBUF: SchemaType.PROTOBUF,
}
FORMATS = {type: format for format, type in SCHEMA_TYPES.items()}


class Unconvertible(HeadraceError):
    """A value that does not fit its schema, or bytes that are no value of it."""


class Codec(Protocol):
    """Converts by one schema."""

    @property
    def name(self) -> str | None:
        """The schema's own name, where it has one."""
        ...

    def encode(self, value: Any) -> bytes: ...

    def decode(self, payload: bytes) -> Any: ...


def codec_of(format: Format, text: str, dependencies: Sequence[Dependency] = ()) -> Codec:
    """Reads a schema; raises `InvalidSchema`. The libraries of a form are loaded when needed."""
    match format:
        case Format.AVRO:
            return _Avro(text, dependencies)
        case Format.JSONSCHEMA:
            return _JsonSchema(text, dependencies)
        case Format.PROTOBUF:
            return _Protobuf(text, dependencies)
        case _:
            raise InvalidSchema(f"{format} does not support schemas.")


class _Avro:
    def __init__(self, text: str, dependencies: Sequence[Dependency]) -> None:
        from headrace.serdes.avro.parsing import parse

        self._schema = parse(text, dependencies)
        self.name = self._schema.name

    def encode(self, value: Any) -> bytes:
        from headrace.serdes.avro.errors import AvroError
        from headrace.serdes.avro.json_writing import payload_of_json

        try:
            return payload_of_json(self._schema, value)
        except AvroError as error:
            raise Unconvertible(str(error)) from error

    def decode(self, payload: bytes) -> Any:
        from headrace.serdes.avro.errors import AvroError
        from headrace.serdes.avro.json_reading import json_of_payload

        try:
            return json_of_payload(self._schema, payload)
        except AvroError as error:
            raise Unconvertible(str(error)) from error


class _JsonSchema:
    def __init__(self, text: str, dependencies: Sequence[Dependency]) -> None:
        from headrace.serdes.json_schema.parsing import parse

        self._schema = parse(text, dependencies)
        document = self._schema.document
        title = document.get("title") if isinstance(document, dict) else None
        self.name = title if isinstance(title, str) else None

    def encode(self, value: Any) -> bytes:
        from headrace.serdes.json_schema.codec import InvalidValue, encode

        try:
            return encode(self._schema, value)
        except InvalidValue as error:
            raise Unconvertible(str(error)) from error

    def decode(self, payload: bytes) -> Any:
        """Shown as it was written; whoever wrote it has checked it."""
        from headrace.serdes.json_schema.codec import InvalidValue, decode

        try:
            decode(self._schema, payload, validated=False)
        except InvalidValue as error:
            raise Unconvertible(str(error)) from error
        return msgspec.Raw(payload)


class _Protobuf:
    def __init__(self, text: str, dependencies: Sequence[Dependency]) -> None:
        from headrace.serdes.protobuf.messages import message_type
        from headrace.serdes.protobuf.parsing import parse

        self._schema = parse(text, dependencies)
        self._type = message_type(self._schema)
        self.name = self._type.name

    def encode(self, value: Any) -> bytes:
        from headrace.serdes.protobuf.errors import ProtobufError
        from headrace.serdes.protobuf.indexes import write_indexes

        try:
            return write_indexes(self._type.indexes) + self._type.encode(value)
        except ProtobufError as error:
            raise Unconvertible(str(error)) from error

    def decode(self, payload: bytes) -> Any:
        from headrace.serdes.protobuf.errors import ProtobufError
        from headrace.serdes.protobuf.indexes import read_indexes
        from headrace.serdes.protobuf.messages import message_type_at

        found = read_indexes(payload)
        if found is None:
            raise Unconvertible("the payload does not say which message it is")
        way, begin = found
        try:
            kind = message_type_at(self._schema, way)
            return kind.to_json(kind.decode(payload[begin:]))
        except ProtobufError as error:
            raise Unconvertible(str(error)) from error
