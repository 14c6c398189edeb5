"""Protobuf on any schemas and any bytes: what is written is read, all else is our own error."""

import base64
import contextlib
import json
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headrace.registry.compatibility.protobuf.comparing import differences, incompatibilities
from headrace.serdes.payload_errors import CorruptPayload, UnfitValue
from headrace.serdes.protobuf.elements import (
    Constant,
    Enum,
    Field,
    Fields,
    File,
    Items,
    Message,
    OneOf,
    Option,
    Quoted,
    Reserved,
    Word,
)
from headrace.serdes.protobuf.indexes import INDEXES_MAX, read_indexes, write_indexes
from headrace.serdes.protobuf.messages import message_type
from headrace.serdes.protobuf.parsing import ProtobufSchema, parse_afresh
from headrace.serdes.protobuf.printing import print_file
from headrace.serdes.protobuf.reading import read
from headrace.serdes.schemas import InvalidSchema

SCALARS = (
    *("int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32"),
    *("sfixed64", "bool", "string", "bytes", "float", "double"),
)
KEYS = ("int32", "sint64", "fixed32", "bool", "string")

# protoc is started for each text, so fewer examples than where a function is called.
with_protoc = settings(max_examples=max(20, settings().max_examples // 5))


def messages(depth: int, least: int) -> st.SearchStrategy[list[Message]]:
    nested: st.SearchStrategy[list[Message]] = st.just([]) if depth == 0 else messages(depth - 1, 0)
    one = st.builds(message, nested, st.data())
    return st.lists(one, min_size=least, max_size=2).map(named_in_turn)


def named_in_turn(found: list[Message]) -> list[Message]:
    return [
        Message(
            f"M{at}", one.fields, one.oneofs, one.messages, one.enums, one.options, one.reserved
        )
        for at, one in enumerate(found)
    ]


def message(nested: list[Message], data: Any) -> Message:
    """Numbers are drawn once for all, so that none comes twice."""
    numbers = data.draw(st.lists(st.integers(1, 5000), unique=True, max_size=6))
    own = [one.name for one in nested]
    has_enum = data.draw(st.booleans())
    types = st.sampled_from([*SCALARS, *own, *(["E"] if has_enum else [])])
    split = data.draw(st.integers(0, len(numbers)))
    fields = [field(number, types, data, is_member=False) for number in numbers[:split]]
    members = [field(number, types, data, is_member=True) for number in numbers[split:]]
    low = data.draw(st.integers(6000, 7000))
    reserved = (Reserved(((low, low + data.draw(st.integers(0, 5))), (9000, 9000))),)
    return Message(
        "M",
        tuple(fields),
        (OneOf("choice", tuple(members)),) if members else (),
        tuple(nested),
        (Enum("E", (Constant("ZERO", 0), Constant("LOW", -5))),) if has_enum else (),
        (Option("deprecated", Word("true")),) if data.draw(st.booleans()) else (),
        reserved if data.draw(st.booleans()) else (),
    )


def field(number: int, types: Any, data: Any, *, is_member: bool) -> Field:
    label = None if is_member else data.draw(st.sampled_from(["optional", "repeated", "map"]))
    type_ = data.draw(types)
    if label == "map":
        label, type_ = None, f"map<{data.draw(st.sampled_from(KEYS))}, {type_}>"
    options = [Option("deprecated", Word("true"))] if data.draw(st.booleans()) else []
    if type_ == "string" and label == "optional":
        options.append(Option("default", Quoted(data.draw(st.text(max_size=5)).encode())))
    if type_ == "bytes" and label == "optional":
        options.append(Option("default", Quoted(data.draw(st.binary(max_size=5)))))
    return Field(label, type_, f"f{number}", number, tuple(options))


FILES = st.builds(
    lambda found, package: File("proto2", "", package, messages=tuple(found)),
    messages(depth=2, least=1),
    st.sampled_from(["", "p", "p.q"]),
)


def in_order_of_numbers(schema: ProtobufSchema) -> FileDescriptorProto:
    """Fields in the order of their numbers: that of the text is another for oneofs."""
    copy = FileDescriptorProto.FromString(schema.descriptor.SerializeToString())
    pending = list(copy.message_type)
    while pending:
        found = pending.pop()
        found.field.sort(key=lambda one: one.number)
        found.nested_type.sort(key=lambda one: one.name)
        pending.extend(found.nested_type)
    return copy


@given(FILES)
def test_printed_files_are_parsed_to_equal_ones(file: File) -> None:
    assert read(print_file(file)) == file


@given(FILES)
@with_protoc
def test_the_canonical_text_keeps_the_meaning(file: File) -> None:
    schema = parse_afresh(print_file(file), ())
    again = parse_afresh(schema.canonical(), ())
    assert in_order_of_numbers(again) == in_order_of_numbers(schema)


@given(FILES)
@with_protoc
def test_the_normalized_text_keeps_the_meaning(file: File) -> None:
    schema = parse_afresh(print_file(file), ())
    again = parse_afresh(schema.normalized(), ())
    assert in_order_of_numbers(again) == in_order_of_numbers(schema)


@given(FILES)
@with_protoc
def test_a_descriptor_and_its_text_are_one_schema(file: File) -> None:
    schema = parse_afresh(print_file(file), ())
    lifted = parse_afresh(schema.formatted("serialized"), ())
    again = parse_afresh(lifted.canonical(), ())
    assert (lifted.normalized(), again.normalized()) == (schema.normalized(),) * 2
    assert again.messages == lifted.messages


@given(FILES)
@with_protoc
def test_a_schema_is_compatible_with_its_descriptor(file: File) -> None:
    schema = parse_afresh(print_file(file), ())
    lifted = parse_afresh(schema.formatted("serialized"), ())
    assert incompatibilities(lifted, schema) == incompatibilities(schema, lifted) == []
    assert all(found.kind == "MESSAGE_MOVED" for found in differences(schema, lifted))


def not_a_list(value: Any) -> bool:
    return not isinstance(value, Items)


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.builds(Quoted, st.binary(max_size=10))
    | st.sampled_from([Word("true"), Word("-1"), Word("1.5e3"), Word("NAME")]),
    lambda inner: (
        st.builds(Items, st.lists(inner.filter(not_a_list), min_size=2, max_size=3).map(tuple))
        | st.builds(
            Fields,
            st.dictionaries(st.sampled_from(["a", "b", "[c.d]"]), inner).map(
                lambda d: tuple(d.items())
            ),
        )
    ),
    max_leaves=10,
)


@given(VALUES)
def test_values_of_options_round_trip(value: Any) -> None:
    file = File(options=(Option("(x).y", value),))
    assert read(print_file(file)) == file


# Hostile input.

GOOD = """syntax = "proto3"; package p; import "google/protobuf/timestamp.proto";
option java_package = "x"; message A { map<string, B> m = 1 [deprecated = true];
oneof o { int32 x = 2; } message B { repeated .p.A a = 1; reserved 5 to 9; } enum E { Z = 0; } }
service S { rpc R (A) returns (A); }
"""


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(InvalidSchema):
        read(text)


@given(st.integers(0, len(GOOD)), st.integers(0, len(GOOD)), st.text(max_size=3))
@with_protoc
def test_a_damaged_text_is_a_schema_or_refused(start: int, end: int, put: str) -> None:
    try:
        schema = parse_afresh(GOOD[:start] + put + GOOD[end:], ())
    except InvalidSchema:
        return
    use(schema)


GOOD_DESCRIPTOR = base64.b64decode(parse_afresh(GOOD, ()).formatted("serialized"))


@given(st.integers(0, len(GOOD_DESCRIPTOR) - 1), st.integers(0, 3), st.binary(max_size=3))
@example(213, 1, b"\x80")  # A text of the options that is no UTF-8.
def test_a_damaged_descriptor_is_a_schema_or_refused(at: int, less: int, put: bytes) -> None:
    damaged = GOOD_DESCRIPTOR[:at] + put + GOOD_DESCRIPTOR[at + less :]
    try:
        schema = parse_afresh(base64.b64encode(damaged).decode(), ())
    except InvalidSchema:
        return
    use(schema)


def use(schema: ProtobufSchema) -> None:
    schema.canonical()
    schema.normalized()
    schema.formatted("ignore_extensions")
    assert incompatibilities(schema, schema) == []


MESSAGE = message_type(
    parse_afresh(
        'syntax = "proto3"; import "google/protobuf/struct.proto"; message A { '
        "int32 i = 1; string s = 2; repeated double d = 3; map<string, A> m = 4; "
        "google.protobuf.Struct t = 5; }",
        (),
    )
)


@given(st.binary())
def test_any_bytes_are_a_message_or_refused(payload: bytes) -> None:
    try:
        message = MESSAGE.decode(payload)
    except CorruptPayload:
        return
    try:
        MESSAGE.to_json(message)
    except UnfitValue:
        return
    assert MESSAGE.decode(MESSAGE.encode(message)) == message or b"nan" in repr(message).encode()


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["i", "s", "d", "m", "t", "x", "@type"]), inner, max_size=3
        )
    ),
    max_leaves=10,
)


@given(JSON)
def test_any_json_is_a_message_or_refused(value: Any) -> None:
    for form in (value, json.dumps(value)):
        with contextlib.suppress(UnfitValue):
            MESSAGE.encode(MESSAGE.from_json(form))


@given(st.lists(st.integers(0, 1 << 30), min_size=1, max_size=INDEXES_MAX), st.binary())
def test_indexes_round_trip(indexes: list[int], rest: bytes) -> None:
    written = write_indexes(indexes)
    assert read_indexes(written + rest) == (tuple(indexes), len(written))


@given(st.binary(max_size=10))
def test_any_bytes_are_indexes_or_none(body: bytes) -> None:
    found = read_indexes(body)
    assert found is None or 0 < found[1] <= len(body)


@pytest.mark.parametrize("text", ["A" * 100, "AAAA====", "CgE=", "Cg==" * 1000])
def test_invalid_base64_is_rejected_or_empty(text: str) -> None:
    with contextlib.suppress(InvalidSchema):
        use(parse_afresh(text, ()))
