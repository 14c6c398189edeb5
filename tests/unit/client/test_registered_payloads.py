"""Which format is behind the ids of schemas."""

import pytest

from headrace.client.payload_shapes import registered_format

ID = b"\x00\x00\x00\x00\x05"
EMPTY = b"\x00"
FIELDS = b"\x08\x96\x01\x12\x02hi\x19" + bytes(8) + b"\x25" + bytes(4)
"""One of each type: a number, a text, and what has eight bytes and four."""


@pytest.mark.parametrize(
    ("contents", "format_"),
    [
        ([b'{"a": 1}', b" [1]"], "json"),
        ([b"\x00" + FIELDS, EMPTY], "protobuf"),
        ([b"\x04\x02\x06" + FIELDS], "protobuf"),
        ([b"abc"], "avro"),
        ([b'{"a": 1}', b"abc"], "avro"),
        ([b"\x00" + FIELDS, b"abc"], "avro"),
        ([b"\x00" + FIELDS[:-1]], "avro"),
        ([b"\x00\x12\x09hi"], "avro"),
        ([b"\x00\x0b"], "avro"),
        ([b"\x00\x00\x01"], "avro"),
        ([b"\xff" * 20], "avro"),
    ],
    ids=[
        *("objects and lists", "the first message of a schema", "a message within another"),
        *("none of them", "some are no JSON", "some are no Protobuf", "a field without its end"),
        *("a text without its end", "an unknown type", "a field 0", "a number without an end"),
    ],
)
def test_a_format_is_known_by_all_payloads(contents: list[bytes], format_: str) -> None:
    assert registered_format(ID + content for content in contents) == format_
