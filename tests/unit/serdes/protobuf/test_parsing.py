"""Protobuf schemas by their texts."""

import base64

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from headrace.serdes.protobuf.indexes import read_indexes
from headrace.serdes.protobuf.messages import message_type, message_type_at
from headrace.serdes.protobuf.parsing import KEPT_CHARS_MAX, parse
from headrace.serdes.schemas import Dependency, InvalidSchema, SchemaType

TEXT = """
// Comments go.
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Order {
  map<string, Line> lines = 1;
  google.protobuf.Timestamp at = 2 [json_name = "when"];
  message Line { string sku = 1; }
}
message Other {}
"""

WRITTEN_OUT = """syntax = "proto3";
package shop;

message Order {
  repeated .shop.Order.LinesEntry lines = 1;

  message Line {
    string sku = 1;
  }
  message LinesEntry {
    option map_entry = true;
  
    string key = 1;
    .shop.Order.Line value = 2;
  }
  message Last {}
}
"""  # noqa: W293


def test_a_schema_has_its_type() -> None:
    """SCH-13"""
    assert parse(TEXT).type is SchemaType.PROTOBUF


def test_the_canonical_text_keeps_all_declarations() -> None:
    assert parse(TEXT).canonical() == (
        'syntax = "proto3";\npackage shop;\n\nimport "google/protobuf/timestamp.proto";\n\n'
        "message Order {\n  map<string, Line> lines = 1;\n"
        '  google.protobuf.Timestamp at = 2 [json_name = "when"];\n\n'
        "  message Line {\n    string sku = 1;\n  }\n}\nmessage Other {}\n"
    )


@pytest.mark.parametrize(
    "syntax", ['syntax = "proto2";', 'syntax = "proto3";', 'edition = "2023";']
)
def test_all_versions_of_the_language_are_read(syntax: str) -> None:
    assert parse(f"{syntax} message A {{}}").canonical() == f"{syntax}\n\nmessage A {{}}\n"


def test_the_same_schema_is_parsed_once() -> None:
    assert parse(TEXT) is parse(TEXT)


def test_a_long_text_is_not_kept() -> None:
    text = f"message A {{}} // {'x' * KEPT_CHARS_MAX}"
    assert parse(text) is not parse(text)


def test_an_error_has_its_line_and_column() -> None:
    with pytest.raises(InvalidSchema, match=r'^line 3, column 3: "Nope" is not defined\.$'):
        parse('syntax = "proto3";\nmessage A {\n  Nope x = 1;\n}')


@pytest.mark.parametrize("text", ["", "  \n", "x" * ((1 << 20) + 1), "\ud800", "nonsense!", "AAAA"])
def test_an_invalid_schema_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchema):
        parse(text)


# Dependencies.


def test_dependencies_are_found_by_their_names() -> None:
    schema = parse(
        'syntax = "proto3"; import "b.proto"; message A { b.B b = 1; }',
        [
            Dependency("c/c.proto", 'syntax = "proto3"; package c; message C {}'),
            Dependency(
                "b.proto",
                'syntax = "proto3"; package b; import "c/c.proto"; message B { c.C c = 1; }',
            ),
        ],
    )
    assert {"A", "b.B", "c.C"} <= schema.names.types


def test_a_dependency_may_be_a_descriptor() -> None:
    part = parse(WRITTEN_OUT).formatted("serialized")
    schema = parse(
        'syntax = "proto3"; import "part.proto"; message A { shop.Order.Line line = 1; }',
        [Dependency("part.proto", part)],
    )
    assert "shop.Order.Line" in schema.names.types


def test_a_file_that_only_passes_another_on_has_its_messages() -> None:
    schema = parse(
        'syntax = "proto3"; import public "b.proto";',
        [Dependency("b.proto", 'syntax = "proto3"; package b; message A {} message B {}')],
    )
    assert (schema.messages, message_type(schema, "B").indexes) == (
        {"b.A": (0,), "b.B": (1,)},
        (1,),
    )


def test_a_missing_dependency_is_named() -> None:
    with pytest.raises(InvalidSchema, match=r"b\.proto: File not found"):
        parse('syntax = "proto3"; import "b.proto"; message A { b.B b = 1; }')


# Texts that Confluent's registry accepts and protoc rejects.


def test_entries_of_maps_may_be_written_out() -> None:
    schema = parse(WRITTEN_OUT)
    assert schema.canonical() == WRITTEN_OUT
    assert "map<string, .shop.Order.Line> lines = 1;" in schema.normalized()


def test_entries_count_as_messages_only_where_they_are_written_out() -> None:
    assert parse(TEXT).messages == {
        "shop.Order": (0,),
        "shop.Order.Line": (0, 0),
        "shop.Other": (1,),
    }
    assert parse(WRITTEN_OUT).messages == {
        "shop.Order": (0,),
        "shop.Order.Line": (0, 0),
        "shop.Order.LinesEntry": (0, 1),
        "shop.Order.Last": (0, 2),
    }


def test_options_without_a_definition_are_kept() -> None:
    text = (
        'syntax = "proto3";\n\nimport "rules.proto";\n\n'
        "message A {\n  int32 x = 1 [(rules.max) = 5];\n}\n"
    )
    assert parse(text).canonical() == text


def test_a_dependency_may_lack_the_definitions_of_its_options() -> None:
    schema = parse(
        'syntax = "proto3"; import "b.proto"; message A { b.B b = 1; }',
        [
            Dependency(
                "b.proto",
                'syntax = "proto3"; package b; import "rules.proto"; '
                "message B { int32 x = 1 [(rules.max) = 5]; }",
            )
        ],
    )
    assert "b.B" in schema.names.types


def test_confluents_options_need_no_import() -> None:
    schema = parse(
        'syntax = "proto3"; message A { int32 x = 1 [(confluent.field_meta).doc = "d"]; }'
    )
    option = schema.descriptor.message_type[0].field[0].options
    assert b"d" in option.SerializeToString()


def test_confluents_options_are_found_in_a_package_that_hides_them() -> None:
    """In `io.confluent`, protoc resolves `confluent` to that package; Java does not."""
    schema = parse(
        'syntax = "proto3"; package io.confluent.shop; import "confluent/meta.proto"; '
        'message A { int32 x = 1 [(confluent.field_meta).doc = "d"]; }'
    )
    assert "(confluent.field_meta)" in schema.canonical()
    assert "io.confluent.shop.A" in schema.messages


def test_an_error_next_to_an_unknown_option_is_reported() -> None:
    with pytest.raises(InvalidSchema, match=r"Without its custom options: .*Nope"):
        parse('syntax = "proto3"; import "no.proto"; message A { Nope x = 1 [(y) = 5]; }')


# Descriptors.


def test_a_descriptor_is_the_schema_that_it_was_made_of() -> None:
    serialized = parse(TEXT).formatted("serialized")
    assert parse(serialized).normalized() == parse(TEXT).normalized()


def test_the_text_of_a_descriptor_is_that_schema_again() -> None:
    schema = parse(parse(TEXT).formatted("serialized"))
    again = parse(schema.canonical())
    assert (again.descriptor, again.messages) == (schema.descriptor, schema.messages)


def test_schemas_and_payloads_of_confluents_python_client_are_read() -> None:
    """SCH-13: the client registers a descriptor and counts map entries as messages."""
    client = SchemaRegistryClient.new_client({"url": "mock://"})
    line = message_type(parse(TEXT), "Order.Line")
    serializer = ProtobufSerializer(line.message_class, client)
    context = SerializationContext("orders", MessageField.VALUE)
    payload = serializer(line.from_json({"sku": "a"}), context)
    assert payload is not None
    text = client.get_latest_version("orders-value").schema.schema_str
    assert text is not None
    found = read_indexes(payload[5:])
    assert found is not None
    written = message_type_at(parse(text), found[0])
    assert (written.name, written.to_json(written.decode(payload[5 + found[1] :]))) == (
        "shop.Order.Line",
        {"sku": "a"},
    )


def test_a_descriptor_whose_imports_are_missing_is_refused() -> None:
    file = FileDescriptorProto(name="a.proto", dependency=["b.proto"])
    with pytest.raises(InvalidSchema, match=r"b\.proto: File not found; name it among"):
        parse(base64.b64encode(file.SerializeToString()).decode())


def test_a_descriptor_that_makes_no_sense_is_refused() -> None:
    file = FileDescriptorProto(name="a.proto")
    file.message_type.add(name="A").field.add(name="x", number=1, label=1, type_name=".Nope")
    with pytest.raises(InvalidSchema, match="do not fit together"):
        parse(base64.b64encode(file.SerializeToString()).decode())


# Formats.


def test_the_serialized_format_is_base64_of_the_descriptor() -> None:
    serialized = parse(TEXT).formatted("serialized")
    file = FileDescriptorProto.FromString(base64.b64decode(serialized))
    assert [message.name for message in file.message_type] == ["Order", "Other"]


def test_without_extensions_custom_options_are_left_out() -> None:
    schema = parse('syntax = "proto3"; message A { option (x) = 1; option deprecated = true; }')
    assert schema.formatted("ignore_extensions") == (
        'syntax = "proto3";\n\nmessage A {\n  option deprecated = true;\n}\n'
    )


@pytest.mark.parametrize("format", ["", "default", "unheard-of"])
def test_any_other_format_is_the_canonical_text(format: str) -> None:
    assert parse(TEXT).formatted(format) == parse(TEXT).canonical()
