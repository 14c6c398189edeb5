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
def test_json_becomes_the_bytes_of_its_form(
    format: Format, given: bytes, data: bytes | None
) -> None:
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
def test_what_is_not_of_its_form_is_shown_in_the_refusal(
    format: Format, given: bytes, words: str
) -> None:
    with pytest.raises(RestError, match=words) as refusal:
        encoder(format)(Raw(given))
    assert (refusal.value.status, refusal.value.code) == (400, 400)
    assert len(str(refusal.value)) < 200


def test_a_refusal_says_which_record_it_is_about() -> None:
    placed = at_record(RestError(400, 400, "it is wrong"), 3, "key")
    assert str(placed) == "it is wrong (key of record 3)"


@given(value=st.recursive(st.none() | st.booleans() | st.text(), st.lists, max_leaves=5))
def test_layout_goes_and_the_value_stays(value: object) -> None:
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


def test_what_is_no_json_is_not_shown_as_such() -> None:
    with pytest.raises(ValueError, match="truncated"):
        decode(Format.JSON, b"{")
