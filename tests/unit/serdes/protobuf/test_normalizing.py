"""Equivalent files have one normal form."""

import pytest

from headrace.serdes.protobuf.parsing import parse

HEAD = 'syntax = "proto3"; package p; '


def normalized(text: str) -> str:
    return parse(text).normalized()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("message A { B b = 1; message B {} }", "message A { .p.A.B b = 1; message B {} }"),
        ("message A { int32 x = 1; int32 y = 2; }", "message A { int32 y = 2; int32 x = 1; }"),
        (
            "message A { oneof o { int32 x = 1; int32 y = 2; } oneof q { int32 z = 3; } }",
            "message A { oneof q { int32 z = 3; } oneof o { int32 y = 2; int32 x = 1; } }",
        ),
        (
            'message A { reserved 5, 3; reserved "b", "a"; }',
            'message A { reserved "a"; reserved 3; reserved 5; reserved "b"; }',
        ),
        ("enum E { Z = 0; B = 2; A = 1; }", "enum E { Z = 0; A = 1; B = 2; }"),
        (
            "message A { int64 x = 1 [deprecated = true, jstype = JS_STRING]; }",
            "message A { int64 x = 1 [jstype = JS_STRING, deprecated = true]; }",
        ),
        (
            'message A { option (confluent.message_meta) = { doc: "d" tags: "t" }; }',
            'message A { option (confluent.message_meta).tags = "t"; '
            'option (.confluent.message_meta).doc = "d"; }',
        ),
        (
            "message A { map<string, B> m = 1; } message B {}",
            "message A { repeated MEntry m = 1; message MEntry { option map_entry = true; "
            "string key = 1; .p.B value = 2; } } message B {}",
        ),
        (
            "message A {} service S { rpc R (A) returns (A); }",
            "message A {} service S { rpc R (.p.A) returns (p.A) {} }",
        ),
    ],
)  # fmt: skip
def test_files_that_mean_the_same_have_one_form(one: str, other: str) -> None:
    assert normalized(HEAD + one) == normalized(HEAD + other)


def test_the_constant_that_is_the_default_stays_first() -> None:
    text = normalized(f"{HEAD} enum E {{ ZERO = 0; TWO = 2; ONE = 1; LOW = -1; }}")
    assert text.endswith("enum E {\n  ZERO = 0;\n  LOW = -1;\n  ONE = 1;\n  TWO = 2;\n}\n")


def test_messages_stay_in_their_order() -> None:
    text = normalized(f"{HEAD} message B {{}} message A {{}}")
    assert text.index("message B") < text.index("message A")


def test_imports_are_sorted() -> None:
    text = normalized(
        'syntax = "proto3"; import "google/protobuf/timestamp.proto"; '
        'import "google/protobuf/any.proto"; message A {}'
    )
    assert text.index("any.proto") < text.index("timestamp.proto")


def test_proto2_needs_no_syntax() -> None:
    assert normalized('syntax = "proto2"; message A {}') == normalized("message A {}")


def test_extensions_of_one_message_are_brought_together() -> None:
    text = normalized(
        "package p; message A { extensions 10, 5 to 6; } extend A { optional int32 y = 10; } "
        "extend .p.A { optional int32 x = 5; }"
    )
    assert text == (
        "package p;\n\nmessage A {\n  extensions 5 to 6;\n  extensions 10;\n}\n\n"
        "extend .p.A {\n  optional int32 x = 5;\n  optional int32 y = 10;\n}\n"
    )


@pytest.mark.parametrize(
    ("type_", "written", "text"),
    [
        ("int32", "0x1F", "31"),
        ("int32", "-017", "-15"),
        ("double", "1.50", "1.5"),
        ("double", "1e3", "1000"),
        ("double", "1024.0", "1024"),
        ("double", "-inf", "-inf"),
        ("float", ".5", "0.5"),
        ("bool", "true", "true"),
    ],
)
def test_numbers_have_one_writing(type_: str, written: str, text: str) -> None:
    schema = f"message A {{ optional {type_} x = 1 [default = {written}]; }}"
    assert f"[default = {text}]" in normalized(schema)


def test_normalizing_twice_changes_no_text() -> None:
    form = normalized(f"{HEAD} message A {{ B b = 2; map<string, B> m = 1; }} message B {{}}")
    assert normalized(form) == form
