"""Records as clients see them."""

import json
from typing import Any

from confluent_kafka import Message

from headrace.rest.formats import Format
from headrace.rest.push.entries import Entry, Showing
from headrace.rest.push.filters import compiled
from headrace.rest.push.requested import Formats
from headrace.rest.schemas import Schemas
from headrace.rest.settings import RestSettings

JSON = Formats(Format.STRING, Format.JSON)


def entry(value: bytes | None, **more: Any) -> Entry:
    given = {"topic": "t", "partition": 1, "offset": 2, "timestamp": (1, 5), "key": b"k", **more}
    return Entry(Message(value=value, **given))


def shown(one: Entry, formats: Formats = JSON) -> bytes:
    Showing(Schemas(RestSettings()), formats).prepare([one])
    return one.shown(formats)


def test_a_record_is_one_line_for_any_layout_of_its_json() -> None:
    assert b"\n" not in shown(entry(b'{\r\n "a": [1,\n 2.50]}'))


def test_numbers_keep_their_digits() -> None:
    assert b'"value":{"n":1.50}' in shown(entry(b'{"n":1.50}'))


def test_the_reason_replaces_a_part_that_cannot_be_decoded() -> None:
    found = json.loads(shown(entry(b"\xff{")))
    assert (found["value"], found["error"][:27]) == (None, "the value cannot be shown: ")


def test_headers_are_base64_and_may_be_null() -> None:
    found = json.loads(shown(entry(None, headers=[("a", b"x"), ("b", None)])))
    assert found["headers"] == [{"name": "a", "value": "eA=="}, {"name": "b", "value": None}]


def test_a_filter_sees_the_value_in_its_form() -> None:
    one = entry(b'{"n":3}')
    shown(one)
    assert one.verdict(JSON, compiled('value.n == 3 && key == "k" && partition == 1'))


def test_a_filter_sees_binary_values_as_bytes() -> None:
    one = entry(b"ab")
    binary = Formats(Format.BINARY, Format.BINARY)
    shown(one, binary)
    assert one.verdict(binary, compiled('value == b"ab"'))
