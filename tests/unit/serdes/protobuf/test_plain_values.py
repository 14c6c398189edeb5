"""Messages as plain values, and back by their JSON."""

import datetime
import math
from typing import Any

import pytest

from headrace.serdes.payload_errors import CorruptPayload
from headrace.serdes.protobuf.messages import MessageType, message_type
from headrace.serdes.protobuf.parsing import parse
from headrace.serdes.protobuf.plain_values import json_of, values_of

LARGEST = float.fromhex("0x1.fffffep+127")
SCHEMA = """
syntax = "proto3";
import "google/protobuf/duration.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Thing {
  int64 large = 1;
  uint64 largest = 2;
  bytes raw = 3;
  double share = 4;
  Way way = 5;
  optional int32 maybe = 6;
  repeated int64 many = 7;
  map<int64, Thing> by_number = 8;
  map<bool, bytes> by_truth = 9;
  google.protobuf.Timestamp at = 10;
  google.protobuf.Duration pause = 11;
  google.protobuf.Int64Value wrapped = 12;
  google.protobuf.Value any = 13;
  Thing inner = 14;
  float rough = 15;
}
enum Way { IN = 0; OUT = 1; }
"""


@pytest.fixture(scope="module")
def thing() -> MessageType:
    return message_type(parse(SCHEMA), "Thing")


VALUES: list[dict[str, Any]] = [
    {"large": -(1 << 63), "largest": (1 << 64) - 1},
    {"raw": b"\xff\x00", "way": "OUT", "many": [1, -1]},
    {"maybe": 0, "wrapped": 1 << 40, "any": {"a": [1.0, None]}},
    {"by_number": {-7: {"large": 1, "way": "OUT"}}, "by_truth": {True: b"y", False: b"n"}},
    {"at": datetime.datetime(2026, 1, 2, 3, 4, 5, 6, datetime.UTC)},
    {"pause": datetime.timedelta(days=-1, microseconds=1), "inner": {"share": 0.5, "way": "OUT"}},
    {"share": math.inf, "rough": -math.inf},
    *({"rough": number} for number in (0.1, 1.4013e-45, LARGEST, 16777216.0)),
]


@pytest.mark.parametrize("values", VALUES)
def test_values_come_back_as_they_were(thing: MessageType, values: dict[str, Any]) -> None:
    message = thing.from_json(json_of(values))
    found = values_of(thing.decode(thing.encode(message)))
    assert {name: _bare(found[name]) for name in values} == values


def _bare(value: Any) -> Any:
    """Fields of inner messages with only default values are missing."""
    if not isinstance(value, dict):
        return value
    return {name: _bare(each) for name, each in value.items() if each or not isinstance(name, str)}


def test_absent_optional_fields_have_no_value(thing: MessageType) -> None:
    found = values_of(thing.decode(b""))
    assert found["large"] == 0
    assert found["by_number"] == {}
    assert not {"maybe", "at", "pause", "wrapped", "any", "inner"} & set(found)


def test_constants_that_the_schema_lacks_stay_numbers(thing: MessageType) -> None:
    assert values_of(thing.decode(b"\x28\x07"))["way"] == 7


def test_no_nanosecond_is_lost(thing: MessageType) -> None:
    found = values_of(thing.from_json({"at": "2026-01-02T03:04:05.000000001Z"}))
    assert found["at"] == "2026-01-02T03:04:05.000000001Z"


def test_nan_is_written_to_and_read_from_json(thing: MessageType) -> None:
    assert math.isnan(values_of(thing.from_json(json_of({"share": math.nan})))["share"])


def test_a_time_outside_of_all_calendars_is_an_error(thing: MessageType) -> None:
    message: Any = thing.decode(b"")
    message.at.seconds = 1 << 60
    with pytest.raises(CorruptPayload, match=r"google\.protobuf\.Timestamp"):
        values_of(message)
