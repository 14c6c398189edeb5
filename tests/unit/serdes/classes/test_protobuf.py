"""Protobuf files of classes, and the model of their descriptors."""

from dataclasses import make_dataclass
from typing import Annotated, Any

import pytest
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    EnumValueDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    MessageOptions,
    OneofDescriptorProto,
)

from headrace.serdes.classes import Inexpressible, Wire, named, protobuf
from headrace.serdes.classes.inspection import shape_of
from headrace.serdes.classes.model import Field, ListOf, MapOf, Named, Scalar, Type, UnionOf
from tests.unit.serdes.classes.orders import Line, Payment

PAYMENT = """\
syntax = "proto3";

import "google/protobuf/duration.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";

// Money.
message Payment {
  string amount = 1;
  google.protobuf.Timestamp at = 2;
  Color color = 3;
  Level level = 4;
  PaymentState state = 5;
  repeated Line lines = 6;
  map<int64, Line> by = 7;
  // A note.
  optional string note = 20;
  oneof means {
    string card = 21;
    int64 cash = 22;
  }
  uint32 count = 23;
  google.protobuf.Duration wait = 24;
  google.protobuf.Value more = 25;
}

message Line {
  string sku = 1;
  int32 count = 2;
}

// Colors that we print.
enum Color {
  COLOR_UNSPECIFIED = 0;
  COLOR_RED = 1;
  COLOR_BLUE = 2;
}

enum Level {
  LEVEL_LOW = 0;
  LEVEL_HIGH = 5;
}

enum PaymentState {
  PAYMENT_STATE_UNSPECIFIED = 0;
  PAYMENT_STATE_NEW = 1;
  PAYMENT_STATE_DONE = 2;
}
"""

INT64, STRING, MESSAGE, ENUM = 3, 9, 11, 14


def written(*fields: Any) -> str:
    return protobuf.write(shape_of(make_dataclass("Holder", fields)))


def file(*fields: FieldDescriptorProto, **more: Any) -> Any:
    entry = DescriptorProto(
        name="ByEntry",
        field=[field("key", 1, INT64), field("value", 2, STRING)],
        options=MessageOptions(map_entry=True),
    )
    inner = DescriptorProto(name="Inner", field=[field("x", 1, STRING)])
    level = EnumDescriptorProto(
        name="Level", value=[EnumValueDescriptorProto(name="LEVEL_LOW", number=0)]
    )
    message = DescriptorProto(
        name="M",
        field=fields,
        nested_type=[entry, inner],
        enum_type=[level],
        oneof_decl=[OneofDescriptorProto(name="means")],
    )
    return FileDescriptorProto(
        name="m.proto", package="acme", message_type=[message], **{"syntax": "proto3", **more}
    )


def field(name: str, number: int, kind: int, **more: Any) -> FieldDescriptorProto:
    return FieldDescriptorProto(name=name, number=number, type=kind, **{"label": 1, **more})


def read(*fields: FieldDescriptorProto, **more: Any) -> Field:
    return protobuf.read(file(*fields, **more)).record("acme.M").fields[0]


def test_a_class_is_a_file() -> None:
    """SCH-13"""
    assert protobuf.write(shape_of(Payment)) == PAYMENT


def test_a_namespace_is_a_package() -> None:
    cls = named("com.acme.Holder")(make_dataclass("Holder", []))
    assert "\n\npackage com.acme;\n" in protobuf.write(shape_of(cls))


def test_numbers_that_are_given_leave_room_for_the_others() -> None:
    text = written(("a", int), ("b", Annotated[int, Wire(number=3)]), ("c", int), ("d", int))
    assert [line.split()[-1] for line in text.splitlines() if "int64" in line] == [
        "1;",
        "3;",
        "4;",
        "5;",
    ]


def test_numbers_of_protobuf_itself_are_skipped() -> None:
    text = written(("a", Annotated[int, Wire(number=18_999)]), ("b", int))
    assert "int64 b = 20000;" in text


@pytest.mark.parametrize(
    ("hints", "reason"),
    [
        ([int | str], "Protobuf has no unions"),
        ([list[int] | None], "cannot be null in Protobuf"),
        ([list[list[int]]], r"Holder\.f0: a list, dict or union is not possible here"),
        ([None], "None is not possible here"),
        ([Annotated[int, Wire(name="a-b")]], "'a-b' is not a name in Protobuf"),
        ([Annotated[int, Wire(number=1)], Annotated[int, Wire(number=1)]], "1 is used twice"),
        ([Annotated[int, Wire(number=19_500)]], "19500 is not a valid field number"),
    ],
)
def test_a_type_that_protobuf_lacks_is_reported_with_its_place(
    hints: list[Any], reason: str
) -> None:
    with pytest.raises(Inexpressible, match=reason):
        written(*((f"f{index}", hint) for index, hint in enumerate(hints)))


def test_a_file_has_one_package() -> None:
    other = named("other.Line")(make_dataclass("Line", [("sku", str)]))
    with pytest.raises(Inexpressible, match=r"other\.Line is not in the package"):
        written(("line", other))


def test_a_class_of_the_same_package_needs_no_name_of_its_own() -> None:
    assert "repeated Line lines = 1;" in written(("lines", list[Line]))


@pytest.mark.parametrize(
    ("descriptor", "type_", "default"),
    [
        (field("x", 1, STRING), Scalar.STRING, ""),
        (field("x", 1, 13), Scalar.UINT32, 0),
        (field("x", 1, STRING, label=3), ListOf(Scalar.STRING), []),
        (
            field("x", 1, MESSAGE, label=3, type_name=".acme.M.ByEntry"),
            MapOf(Scalar.STRING, Scalar.LONG),
            {},
        ),
        (
            field("x", 1, MESSAGE, type_name=".acme.M.Inner"),
            UnionOf((Named("acme.MInner"), Scalar.NULL)),
            None,
        ),
        (field("x", 1, ENUM, type_name=".acme.M.Level"), Named("acme.MLevel"), 0),
        (
            field("x", 1, MESSAGE, type_name=".google.protobuf.Timestamp"),
            UnionOf((Scalar.TIMESTAMP, Scalar.NULL)),
            None,
        ),
        (
            field("x", 1, STRING, proto3_optional=True, oneof_index=0),
            UnionOf((Scalar.STRING, Scalar.NULL)),
            None,
        ),
    ],
)
def test_a_descriptor_is_a_type_with_a_zero(
    descriptor: FieldDescriptorProto, type_: Type, default: Any
) -> None:
    found = read(descriptor)
    assert (found.type, found.default) == (type_, default)


def test_a_member_of_a_oneof_has_its_name() -> None:
    assert read(field("x", 1, STRING, oneof_index=0)).oneof == "means"


def test_only_a_number_out_of_order_is_kept() -> None:
    numbers = protobuf.read(file(field("a", 1, STRING), field("b", 7, STRING))).record("acme.M")
    assert [each.number for each in numbers.fields] == [None, 7]


def test_a_field_of_proto2_may_be_missing() -> None:
    assert read(field("x", 1, STRING), syntax="proto2").default is None


def test_comments_are_docstrings() -> None:
    described = file(field("x", 1, STRING))
    described.source_code_info.location.add(path=[4, 0], leading_comments=" The message.\n")
    described.source_code_info.location.add(path=[4, 0, 2, 0], leading_comments=" A\n B\n")
    record = protobuf.read(described).record("acme.M")
    assert (record.doc, record.fields[0].doc) == ("The message.", "A\nB")


def test_a_type_of_another_file_is_found_there() -> None:
    other = FileDescriptorProto(
        name="o.proto", package="other", message_type=[DescriptorProto(name="O")]
    )
    descriptor = file(field("x", 1, MESSAGE, type_name=".other.O"))
    shape = protobuf.read(descriptor, dependencies=[other])
    assert "other.O" in shape.definitions


def test_a_type_of_an_unknown_file_is_an_error() -> None:
    with pytest.raises(Inexpressible, match=r"other\.O is not defined in the files given"):
        read(field("x", 1, MESSAGE, type_name=".other.O"))


def test_another_message_may_be_asked_for() -> None:
    assert protobuf.read(file(), "M.Inner").root == Named("acme.MInner")


def test_a_file_without_messages_gives_no_class() -> None:
    with pytest.raises(Inexpressible, match="has no message"):
        protobuf.read(FileDescriptorProto(name="empty.proto"))
