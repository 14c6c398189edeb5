"""Messages from bytes and JSON, and back."""

import json
from typing import Any

import pytest

from headrace.serdes.payload_errors import CorruptPayload, UnfitValue
from headrace.serdes.protobuf import messages
from headrace.serdes.protobuf.messages import UnknownMessage, message_type, message_type_at
from headrace.serdes.protobuf.parsing import parse

SCHEMA = parse(
    """syntax = "proto3";
    package shop;
    import "google/protobuf/any.proto";
    import "google/protobuf/timestamp.proto";
    import "google/type/money.proto";
    message Order {
      int64 order_id = 1;
      bytes raw = 2;
      Kind kind = 3;
      google.protobuf.Timestamp at = 4;
      google.protobuf.Any any = 5;
      map<string, int32> counts = 6;
      Order next = 7;
      string note = 8;
      message Line { string sku = 1; }
    }
    enum Kind { UNKNOWN = 0; CARD = 1; }
    message Other {}
    """
)
ORDER = message_type(SCHEMA, "shop.Order")

VALUE = {
    "orderId": "9007199254740993",
    "raw": "AP8=",
    "kind": "CARD",
    "at": "2024-05-01T10:00:00Z",
    "any": {
        "@type": "type.googleapis.com/google.type.Money",
        "currencyCode": "EUR",
        "units": "5",
        "nanos": 1,
    },
    "counts": {"b": 2, "a": 1},
    "note": "é",
}


def test_json_is_restored_from_its_bytes() -> None:
    shown = ORDER.to_json(ORDER.decode(ORDER.encode(VALUE)))
    assert shown == VALUE


def test_json_may_be_text() -> None:
    assert ORDER.from_json(json.dumps(VALUE)) == ORDER.from_json(VALUE)


def test_defaults_are_shown() -> None:
    assert ORDER.to_json(ORDER.decode(b"")) == {
        "orderId": "0", "raw": "", "kind": "UNKNOWN", "counts": {}, "note": "",
    }  # fmt: skip


def test_maps_are_written_in_one_order() -> None:
    one = ORDER.encode({"counts": {"a": 1, "b": 2}})
    assert ORDER.encode({"counts": {"b": 2, "a": 1}}) == one


def test_fields_that_the_schema_lacks_are_kept() -> None:
    payload = b"\xa0\x06\x05"
    assert ORDER.encode(ORDER.decode(payload)) == payload


@pytest.mark.parametrize(
    "payload", [b"\xff", b"\x08", b"\x42\x05ab", b"\x42\x01\xff", b"\x3a\x02\x3a"]
)
def test_bytes_that_are_no_message_are_refused(payload: bytes) -> None:
    with pytest.raises(CorruptPayload, match=r"not a message shop\.Order"):
        ORDER.decode(payload)


def test_messages_nest_within_a_bound() -> None:
    payload = b""
    for _ in range(101):
        payload = b"\x3a" + varint(len(payload)) + payload
    with pytest.raises(CorruptPayload):
        ORDER.decode(payload)


def varint(number: int) -> bytes:
    return bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80]) + varint(number >> 7)


def test_payloads_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "PAYLOAD_BYTES_MAX", 3)
    with pytest.raises(CorruptPayload, match="too many"):
        ORDER.decode(b"1234")
    with pytest.raises(UnfitValue, match="too many"):
        ORDER.encode({"note": "1234"})


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"nope": 1}, 'no field named "nope"'),
        ({"orderId": "x"}, "orderId"),
        ({"orderId": 1 << 64}, "orderId"),
        ({"at": "yesterday"}, "at"),
        ({"any": {"@type": "a/b.C"}}, "any"),
        ({"counts": {"a": "b"}}, "counts"),
        ("[1]", "expected a JSON object, not a list"),
        ("{", "shop.Order"),
        ('{"next":' * 100_000, "shop.Order"),
    ],
)
def test_json_that_does_not_fit_is_refused_with_the_field(value: Any, reason: str) -> None:
    with pytest.raises(UnfitValue, match=reason):
        ORDER.from_json(value)


def test_a_required_field_must_be_there() -> None:
    message = message_type(parse("message A { required int32 x = 1; }"))
    with pytest.raises(UnfitValue, match="x"):
        message.encode({})


def test_a_message_of_another_type_is_refused() -> None:
    other = message_type(SCHEMA, "Other")
    with pytest.raises(UnfitValue, match=r"shop\.Other is not a shop\.Order"):
        ORDER.encode(other.from_json({}))


def test_messages_are_found_by_name_by_way_and_first() -> None:
    assert message_type(SCHEMA, "Order.Line").indexes == (0, 0)
    assert message_type_at(SCHEMA, (1,)).name == "shop.Other"
    assert message_type(SCHEMA).name == "shop.Order"


def test_a_type_is_made_once() -> None:
    assert message_type(SCHEMA, "shop.Other") is message_type_at(SCHEMA, (1,))


def test_an_unknown_message_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownMessage, match=r"no message Nope; it has shop\.Order, "):
        message_type(SCHEMA, "Nope")
    with pytest.raises(UnknownMessage, match=r"no message at 0\.7; it has shop\.Order, "):
        message_type_at(SCHEMA, (0, 7))


def test_a_schema_without_messages_has_none() -> None:
    with pytest.raises(UnknownMessage, match="it has none"):
        message_type(parse("enum E { Z = 0; }"))
