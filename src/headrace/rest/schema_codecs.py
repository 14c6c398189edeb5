"""Codecs between JSON and payloads by one schema: Avro's JSON, JSON itself, Protobuf's JSON.

A codec encodes the value without the schema id in front of it.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from headrace.rest.formats import Format
from headrace.serdes.payload_errors import CorruptPayload
from headrace.serdes.schemas import Dependency, InvalidSchema, SchemaType

SCHEMA_TYPES = {
    Format.AVRO: SchemaType.AVRO,
    Format.JSONSCHEMA: SchemaType.JSON,
    Format.PROTOBUF: SchemaType.PROTOBUF,
}
FORMATS = {type: format for format, type in SCHEMA_TYPES.items()}


class Codec(Protocol):
    """Converts by one schema; raises `PayloadError`."""

    @property
    def name(self) -> str | None:
        """The name of the schema, if it has one."""
        ...

    def encode(self, value: Any) -> bytes: ...

    def decode(self, payload: bytes) -> Any: ...


def codec_of(format: Format, text: str, dependencies: Sequence[Dependency] = ()) -> Codec:
    """Parse a schema, or raise `InvalidSchema`; libraries are loaded on first use."""
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
        from headrace.serdes.avro.json_writing import payload_of_json

        return payload_of_json(self._schema, value)

    def decode(self, payload: bytes) -> Any:
        from headrace.serdes.avro.json_reading import json_of_payload

        return json_of_payload(self._schema, payload)


class _JsonSchema:
    def __init__(self, text: str, dependencies: Sequence[Dependency]) -> None:
        from headrace.serdes.json_schema.parsing import parse

        self._schema = parse(text, dependencies)
        document = self._schema.document
        title = document.get("title") if isinstance(document, dict) else None
        self.name = title if isinstance(title, str) else None

    def encode(self, value: Any) -> bytes:
        from headrace.serdes.json_schema.codec import encode

        return encode(self._schema, value)

    def decode(self, payload: bytes) -> Any:
        """Return the payload unchanged; its producer has validated it."""
        from headrace.serdes.json_schema.codec import decode

        decode(self._schema, payload, validated=False)
        return msgspec.Raw(payload)


class _Protobuf:
    def __init__(self, text: str, dependencies: Sequence[Dependency]) -> None:
        from headrace.serdes.protobuf.messages import message_type
        from headrace.serdes.protobuf.parsing import parse

        self._schema = parse(text, dependencies)
        self._type = message_type(self._schema)
        self.name = self._type.name

    def encode(self, value: Any) -> bytes:
        from headrace.serdes.protobuf.indexes import write_indexes

        return write_indexes(self._type.indexes) + self._type.encode(value)

    def decode(self, payload: bytes) -> Any:
        from headrace.serdes.protobuf.indexes import read_indexes
        from headrace.serdes.protobuf.messages import message_type_at

        found = read_indexes(payload)
        if found is None:
            raise CorruptPayload("the payload does not name its message")
        way, begin = found
        kind = message_type_at(self._schema, way)
        return kind.to_json(kind.decode(payload[begin:]))
