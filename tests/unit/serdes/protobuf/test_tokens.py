"""A .proto text cut into tokens."""

import pytest

from headrace.serdes.protobuf.tokens import Kind, tokens_of, unquoted
from headrace.serdes.schemas import InvalidSchema


def test_comments_and_blanks_are_left_out() -> None:
    texts = [token.text for token in tokens_of("a /* b\n */ // c\n\t= -1.5e+3;")]
    assert texts == ["a", "=", "-", "1.5e+3", ";", ""]


def test_a_string_is_one_token_with_its_escapes() -> None:
    found = tokens_of(r'"a//b\"c" ' + "'d'")
    assert [token.text for token in found if token.kind is Kind.STRING] == [r'"a//b\"c"', "'d'"]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a\n  /* b", "line 2, column 3: the comment has no end"),
        ('a = "b', "line 1, column 5: invalid character"),
    ],
)
def test_an_unterminated_token_is_refused_with_its_position(text: str, where: str) -> None:
    with pytest.raises(InvalidSchema, match=where):
        tokens_of(text)


def test_many_unterminated_comments_cost_as_much_as_one() -> None:
    with pytest.raises(InvalidSchema, match="line 1, column 1"):
        tokens_of("/* " * 300_000)


@pytest.mark.parametrize(
    ("token", "value"),
    [
        (r'"\a\b\f\n\r\t\v\\\'\"\?"', b"\a\b\f\n\r\t\v\\'\"?"),
        (r'"\1\101\x41\xfg"', b"\x01AA\x0fg"),
        (r'"\u00e9\U0001F600"', "é😀".encode()),
        ('"é"', "é".encode()),
    ],
)
def test_escapes_denote_bytes(token: str, value: bytes) -> None:
    assert unquoted(token) == value
