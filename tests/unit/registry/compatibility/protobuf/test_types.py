"""Messages and fields in the words of comparisons."""

from headrace.registry.compatibility.protobuf.types import (
    Label,
    Shape,
    constants_of,
    fields_of,
    label_of,
    types_of,
)
from headrace.serdes.protobuf.parsing import parse
from headrace.serdes.schemas import Dependency

SCHEMA = parse(
    """syntax = "proto3";
    package p;
    import "b.proto";
    message A {
      int32 x = 1;
      optional int32 y = 2;
      repeated b.B z = 3;
      map<string, int32> m = 4;
      oneof o { string s = 5; E e = 6; }
      message Inner {}
    }
    enum E { option allow_alias = true; ZERO = 0; NULL = 0; }
    """,
    [Dependency("b.proto", 'syntax = "proto3"; package b; message B {}')],
)
TYPES = types_of(SCHEMA.files)
(MESSAGE,) = SCHEMA.descriptor.message_type


def test_messages_have_their_file_and_their_name_in_it() -> None:
    inner, imported = TYPES.messages["p.A.Inner"], TYPES.messages["b.B"]
    assert (inner.local_name, inner.is_own) == ("A.Inner", True)
    assert (imported.local_name, imported.is_own) == ("B", False)


def test_entries_of_maps_are_no_messages() -> None:
    assert [info.name for info in TYPES.nested(TYPES.messages["p.A"])] == ["Inner"]


def test_a_field_has_a_label_where_one_is_written() -> None:
    labels = [label_of(field, "proto3") for field in MESSAGE.field]
    assert labels == [None, Label.OPTIONAL, Label.REPEATED, Label.REPEATED, None, None]


def test_a_field_holds_a_scalar_a_map_or_a_message() -> None:
    assert [TYPES.shape(field) for field in MESSAGE.field] == [
        *(Shape.SCALAR, Shape.SCALAR, Shape.MESSAGE, Shape.MAP, Shape.SCALAR, Shape.SCALAR)
    ]


def test_only_oneofs_that_were_written_are_oneofs() -> None:
    fields = fields_of(MESSAGE)
    assert (fields.oneofs, fields.oneof_of) == ({"o": [5, 6]}, {5: "o", 6: "o"})


def test_the_last_of_several_names_for_a_number_counts() -> None:
    assert constants_of(SCHEMA.descriptor.enum_type[0]) == {0: "NULL"}
