"""A .proto text read into its statements."""

import pytest

from headrace.serdes.protobuf.elements import (
    Constant,
    Enum,
    Extensions,
    Field,
    File,
    Import,
    Message,
    OneOf,
    Option,
    Quoted,
    Reserved,
    Rpc,
    Service,
    Word,
)
from headrace.serdes.protobuf.reading import read
from headrace.serdes.schemas import InvalidSchema


def test_a_file_begins_with_syntax_package_and_imports() -> None:
    text = 'syntax = "proto3"; package a.b; import "x.proto"; import public "y.proto";'
    assert read(text) == File(
        syntax="proto3", package="a.b", imports=(Import("x.proto"), Import("y.proto", "public"))
    )


def test_a_message_has_fields_oneofs_and_nested_types() -> None:
    text = """message A {
      repeated .b.C c = 1 [packed = true];
      map<string, A.D> m = 2;
      oneof o { int32 x = 3; };
      message D {}
      enum E { Z = 0; }
      reserved 5, 7 to 9, 100 to max;
      reserved "p", "q";
      extensions 200 to 300;
    }"""
    assert read(text).messages == (
        Message(
            "A",
            fields=(
                Field("repeated", ".b.C", "c", 1, (Option("packed", Word("true")),)),
                Field(None, "map<string, A.D>", "m", 2),
            ),
            oneofs=(OneOf("o", (Field(None, "int32", "x", 3),)),),
            messages=(Message("D"),),
            enums=(Enum("E", (Constant("Z", 0),)),),
            reserved=(
                Reserved(((5, 5), (7, 9), (100, 536_870_911))),
                Reserved((Quoted(b"p"), Quoted(b"q"))),
            ),
            extensions=(Extensions(((200, 300),)),),
        ),
    )


def test_a_group_is_a_field_that_holds_a_message() -> None:
    (message,) = read("message A { optional group G = 1 { optional int32 x = 2; } }").messages
    inner = Message("G", (Field("optional", "int32", "x", 2),))
    assert message.fields == (Field("optional", "group", "g", 1, (), inner),)


def test_words_of_the_language_may_be_names() -> None:
    (message,) = read("message A { string message = 1; int32 syntax = 2; bool to = 3; }").messages
    assert [field.name for field in message.fields] == ["message", "syntax", "to"]


def test_a_service_has_calls_with_streams_and_options() -> None:
    text = "service S { rpc A (B) returns (stream .c.D) { option deprecated = true; } ; }"
    assert read(text).services == (
        Service(
            "S",
            (Rpc("A", "B", ".c.D", False, True, (Option("deprecated", Word("true")),)),),
        ),
    )


def test_default_and_json_name_come_behind_other_options() -> None:
    text = 'message A { optional int32 x = 1 [json_name = "y", default = 5, deprecated = true]; }'
    options = read(text).messages[0].fields[0].options
    assert [option.name for option in options] == ["deprecated", "default", "json_name"]


def test_an_edition_has_visibility_and_reserved_words() -> None:
    file = read('edition = "2024"; export message A { reserved x; local enum E { Z = 0; } }')
    assert file.messages[0] == Message(
        "A",
        enums=(Enum("E", (Constant("Z", 0),), visibility="local"),),
        reserved=(Reserved((Word("x"),)),),
        visibility="export",
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("message A {\n  int32 x 1;\n}", "line 2, column 11: '=' belongs here, not '1'"),
        ("message A { int32 x = y; }", "a whole number belongs here, not 'y'"),
        ("message A {", "a name belongs here, not the end of the text"),
        ("int32 x = 1;", "a statement of a file belongs here"),
        ("import x;", "a string belongs here"),
    ],
)
def test_an_invalid_statement_is_refused_with_its_position(text: str, reason: str) -> None:
    with pytest.raises(InvalidSchema, match=reason):
        read(text)
