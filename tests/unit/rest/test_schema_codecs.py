"""JSON to payloads and back by schemas."""

from typing import Any

import msgspec
import pytest

from headrace.rest.formats import Format
from headrace.rest.schema_codecs import codec_of
from headrace.serdes.payload_errors import PayloadError
from headrace.serdes.schemas import InvalidSchema

AVRO = (
    '{"type":"record","name":"Order","namespace":"shop","fields":['
    '{"name":"id","type":"long"},{"name":"note","type":["null","string"]}]}'
)
JSON_SCHEMA = '{"title":"Order","type":"object","properties":{"id":{"type":"integer"}}}'
PROTOBUF = 'syntax = "proto3"; package shop; message Order { int64 id = 1; message In {} }'


@pytest.mark.parametrize(
    ("format", "schema", "value", "payload"),
    [
        (Format.AVRO, AVRO, {"id": 1, "note": {"string": "a"}}, b"\x02\x02\x02a"),
        (Format.AVRO, AVRO, {"id": 1, "note": None}, b"\x02\x00"),
        (Format.JSONSCHEMA, JSON_SCHEMA, {"id": 1}, b'{"id":1}'),
        (Format.PROTOBUF, PROTOBUF, {"id": "7"}, b"\x00\x08\x07"),
    ],
)
def test_values_are_decoded_from_their_payloads(
    format: Format, schema: str, value: Any, payload: bytes
) -> None:
    """RST-4"""
    codec = codec_of(format, schema)
    assert codec.encode(value) == payload
    assert msgspec.json.decode(msgspec.json.encode(codec.decode(payload))) == value


@pytest.mark.parametrize(
    ("format", "schema", "value"),
    [
        (Format.AVRO, AVRO, {"id": "one", "note": None}),
        (Format.AVRO, AVRO, {"id": 1, "note": "untagged"}),
        (Format.JSONSCHEMA, JSON_SCHEMA, {"id": "one"}),
        (Format.PROTOBUF, PROTOBUF, {"unknown": 1}),
        (Format.PROTOBUF, PROTOBUF, [1]),
    ],
)
def test_a_value_of_another_type_is_rejected(format: Format, schema: str, value: Any) -> None:
    with pytest.raises(PayloadError):
        codec_of(format, schema).encode(value)


@pytest.mark.parametrize(
    ("format", "schema", "payload"),
    [
        (Format.AVRO, AVRO, b"\x02"),
        (Format.AVRO, AVRO, b"\x02\x00\x00"),
        (Format.JSONSCHEMA, JSON_SCHEMA, b"{"),
        (Format.PROTOBUF, PROTOBUF, b""),
        (Format.PROTOBUF, PROTOBUF, b"\x02\x12"),
        (Format.PROTOBUF, PROTOBUF, b"\x00\xff"),
    ],
)
def test_invalid_payloads_are_rejected(format: Format, schema: str, payload: bytes) -> None:
    with pytest.raises(PayloadError):
        codec_of(format, schema).decode(payload)


@pytest.mark.parametrize(
    ("format", "schema", "name"),
    [
        (Format.AVRO, AVRO, "shop.Order"),
        (Format.AVRO, '"int"', None),
        (Format.JSONSCHEMA, JSON_SCHEMA, "Order"),
        (Format.JSONSCHEMA, "true", None),
        (Format.PROTOBUF, PROTOBUF, "shop.Order"),
    ],
)
def test_schemas_have_their_names(format: Format, schema: str, name: str | None) -> None:
    assert codec_of(format, schema).name == name


@pytest.mark.parametrize("format", [Format.AVRO, Format.JSONSCHEMA, Format.PROTOBUF, Format.JSON])
def test_an_invalid_schema_is_rejected(format: Format) -> None:
    with pytest.raises(InvalidSchema):
        codec_of(format, "{")
