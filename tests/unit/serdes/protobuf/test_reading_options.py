"""Options and their values, read from text."""

import pytest

from headrace.serdes.protobuf.elements import Fields, Items, Option, Quoted, Value, Word
from headrace.serdes.protobuf.reading import read
from headrace.serdes.schemas import InvalidSchema


def test_an_option_may_be_a_message_in_text_format() -> None:
    text = """option (a.b).c = { x: -1 y: "p" 'q', z < w: [1, 2] >; z { }; [e.f] { } };"""
    assert read(text).options == (
        Option(
            "(a.b).c",
            Fields(
                (
                    ("x", Word("-1")),
                    ("y", Quoted(b"pq")),
                    ("z", Items((Fields((("w", Items((Word("1"), Word("2")))),)), Fields(())))),
                    ("[e.f]", Fields(())),
                )
            ),
        ),
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", Word("true")),
        ("- 5", Word("-5")),
        ("-inf", Word("-inf")),
        ("0x1F", Word("0x1F")),
        ("'a' \"b\"", Quoted(b"ab")),
        ("[1, 'x']", Items((Word("1"), Quoted(b"x")))),
        ("[]", Items(())),
        ("{ a: [1] a: 2, a: [3, 4] }", Fields((("a", Items(tuple(map(Word, "1234")))),))),
        ("{ [t.com/a.B] { } }", Fields((("[t.com/a.B]", Fields(())),))),
    ],
)
def test_a_value_is_kept_as_written(text: str, value: Value) -> None:
    assert read(f"option x = {text};").options == (Option("x", value),)


def test_an_option_within_brackets_is_read_too() -> None:
    (message,) = read("message A { int32 x = 1 [(a) = 1, (.b.c).d = E]; }").messages
    assert message.fields[0].options == (Option("(a)", Word("1")), Option("(.b.c).d", Word("E")))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("option x = ;", "a value belongs here, not ';'"),
        ("option x = { y 1 };", "':' belongs here, not '1'"),
        ("option x = [1 2];", "',' belongs here, not '2'"),
        ("option (x = 1;", "')' belongs here"),
    ],
)
def test_an_invalid_value_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidSchema, match=reason.replace(")", r"\)")):
        read(text)
