"""Protobuf payloads to columns."""

import datetime as dt
import pickle
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message_factory import GetMessageClass

from headrace.spark.decoding.errors import InvalidSchema
from headrace.spark.decoding.protobuf.decoder import ProtobufDecoder
from headrace.spark.decoding.protobuf.schemas import compile_proto

PROTO = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";

enum Kind { UNKNOWN = 0; CARD = 1; }

message Order {
  message Line { string sku = 1; uint32 count = 2; }
  int64 id = 1;
  optional string note = 2;
  repeated Line lines = 3;
  map<string, double> prices = 4;
  Kind kind = 5;
  google.protobuf.Timestamp at = 6;
  uint64 total = 7;
  bytes raw = 8;
  oneof payment { string card = 9; bool cash = 10; }
}

message Other { int32 x = 1; }
"""
DESCRIPTORS = compile_proto(PROTO)


def decoder(message: str = "Order") -> ProtobufDecoder:
    return ProtobufDecoder(DESCRIPTORS, message)


def order(**fields: Any) -> bytes:
    made: bytes = GetMessageClass(decoder().descriptor)(**fields).SerializeToString()
    return made


def test_a_message_becomes_a_row() -> None:
    payload = order(
        id=7, note="n", lines=[{"sku": "a", "count": 1 << 31}], prices={"x": 1.5}, kind=1,
        at={"seconds": 1, "nanos": 5000}, total=(1 << 64) - 1, raw=b"\xff", cash=True,
    )  # fmt: skip
    decoded = decoder().decode(pa.array([payload]))
    assert decoded.errors.to_pylist() == [None]
    assert decoded.columns.to_pylist() == [
        {
            "id": 7,
            "note": "n",
            "lines": [{"sku": "a", "count": 1 << 31}],
            "prices": [("x", 1.5)],
            "kind": "CARD",
            "at": dt.datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=dt.UTC),
            "total": Decimal((1 << 64) - 1),
            "raw": b"\xff",
            "card": None,
            "cash": True,
        }
    ]


def test_unset_fields_with_presence_are_null() -> None:
    (row,) = decoder().decode(pa.array([b""])).columns.to_pylist()
    assert (row["id"], row["kind"], row["lines"]) == (0, "UNKNOWN", [])
    assert (row["note"], row["at"], row["card"]) == (None, None, None)


def test_an_enum_value_without_a_name_is_its_number() -> None:
    (row,) = decoder().decode(pa.array([order(kind=42)])).columns.to_pylist()
    assert row["kind"] == "42"


def test_a_bad_payload_is_a_row_with_the_error() -> None:
    too_late = order(at={"seconds": (1 << 62)})
    payloads = pa.array([b"\xff\xff", too_late, None, order(id=1)], pa.binary())
    decoded = decoder().decode(payloads)
    errors = decoded.errors.to_pylist()
    assert errors[0].startswith("not a message shop.Order:")
    assert errors[1].startswith("at: 4611686018427387904 seconds")
    assert errors[2:] == [None, None]
    assert [row["id"] for row in decoded.columns.to_pylist()] == [None, None, None, 1]


def test_messages_are_found_by_name_and_the_first_one_without() -> None:
    assert decoder("shop.Other").schema == pa.schema([("x", pa.int32())])
    assert decoder("").descriptor.full_name == "shop.Order"
    assert decoder("shop.Order.Line").schema.names == ["sku", "count"]


def test_an_unknown_message_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidSchema, match=r"no message Nope; it has shop\.Order, "):
        _ = decoder("Nope").schema


def test_a_schema_that_protoc_refuses_is_refused_with_its_reason() -> None:
    with pytest.raises(InvalidSchema, match="invalid: line 1, column 41: "):
        compile_proto("syntax = 'proto3'; message X { in x = 1 }")


def test_a_recursive_message_is_refused() -> None:
    loop = compile_proto('syntax = "proto3"; message Node { Node next = 1; }')
    with pytest.raises(InvalidSchema, match="contains itself"):
        _ = ProtobufDecoder(loop, "").schema


def test_imports_come_by_their_names() -> None:
    made = compile_proto(
        'syntax = "proto3"; import "a/b.proto"; message M { B b = 1; }',
        {"a/b.proto": 'syntax = "proto3"; message B { int32 x = 1; }'},
    )
    assert ProtobufDecoder(made, "M").schema == pa.schema([("b", pa.struct([("x", pa.int32())]))])


@pytest.mark.parametrize("name", ["../evil.proto", "/etc/evil.proto", ""])
def test_an_import_cannot_leave_its_folder(name: str) -> None:
    with pytest.raises(InvalidSchema, match="imports a file by the name"):
        compile_proto('syntax = "proto3";', {name: ""})


def test_a_decoder_can_be_sent_to_a_worker_after_use() -> None:
    used = decoder()
    used.decode(pa.array([b""]))
    assert pickle.loads(pickle.dumps(used)).decode(pa.array([b""])).errors.to_pylist() == [None]
