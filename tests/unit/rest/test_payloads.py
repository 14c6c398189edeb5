"""Keys and values between JSON and bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, json

from headrace.rest.errors import RestError
from headrace.rest.formats import Format
from headrace.rest.payloads import at_record, decode, encoder, without_layout


@pytest.mark.parametrize(
    ("format", "given", "data"),
    [
        (Format.JSON, b'{"a":1.50}', b'{"a":1.50}'),
        (Format.JSON, b'"\\u00e9\\/"', '"é/"'.encode()),
        (Format.JSON, b"null", None),
        (Format.JSON, b"12345678901234567890123", b"12345678901234567890123"),
        (Format.BINARY, b'"AAE="', b"\0\1"),
        (Format.BINARY, b'"AAE"', b"\0\1"),
        (Format.BINARY, b'""', b""),
        (Format.BINARY, b"null", None),
        (Format.STRING, '"é"'.encode(), "é".encode()),
        (Format.STRING, b'"a\\nb"', b"a\nb"),
        (Format.STRING, b"null", None),
    ],
)
def test_json_is_encoded_in_each_format(format: Format, given: bytes, data: bytes | None) -> None:
    assert encoder(format)(Raw(given)) == data


@pytest.mark.parametrize(
    ("format", "given", "words"),
    [
        (Format.BINARY, b"7", "is not a base64 string"),
        (Format.BINARY, b'"%"', "is not a valid base64 string"),
        (Format.STRING, b"[1]", "is not a string"),
        (Format.BINARY, b'"' + b"%" * 500 + b'"', "…"),
    ],
)
def test_the_error_shows_a_value_of_another_format(
    format: Format, given: bytes, words: str
) -> None:
    with pytest.raises(RestError, match=words) as refusal:
        encoder(format)(Raw(given))
    assert (refusal.value.status, refusal.value.code) == (400, 400)
    assert len(str(refusal.value)) < 200


def test_an_error_names_its_record() -> None:
    placed = at_record(RestError(400, 400, "it is wrong"), 3, "key")
    assert str(placed) == "it is wrong (key of record 3)"


@given(value=st.recursive(st.none() | st.booleans() | st.text(), st.lists, max_leaves=5))
def test_removing_the_layout_keeps_the_value(value: object) -> None:
    from json import dumps

    assert json.decode(without_layout(dumps(value, indent=3).encode())) == value


@pytest.mark.parametrize(
    ("format", "data", "shown"),
    [
        (Format.BINARY, b"\0\1", "AAE="),
        (Format.STRING, b"\xff", "\ufffd"),
        (Format.JSON, None, None),
    ],
)
def test_bytes_are_shown_in_their_form(format: Format, data: bytes | None, shown: object) -> None:
    assert decode(format, data) == shown


def test_json_is_shown_as_it_was_written() -> None:
    assert json.encode(decode(Format.JSON, b'{"a": 1.50}')) == b'{"a": 1.50}'


def test_invalid_json_is_not_shown() -> None:
    with pytest.raises(ValueError, match="truncated"):
        decode(Format.JSON, b"{")
