"""A reader's schema sees a writer's values by the rules of Java's resolver."""

import json
from typing import Any

import pytest

from headrace.serdes.avro.codec import decode, encode
from headrace.serdes.avro.parsing import parse
from headrace.serdes.avro.schema import AvroSchema
from headrace.serdes.payload_errors import CorruptPayload


def schema(value: Any) -> AvroSchema:
    return parse(json.dumps(value))


def record(name: str, *fields: Any, **more: Any) -> dict[str, Any]:
    named = [{"name": field, "type": kind} for field, kind in fields]
    return {"type": "record", "name": name, "fields": named, **more}


def enum(*symbols: str, **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": "E", "symbols": list(symbols), **more}


@pytest.mark.parametrize(
    ("writer", "reader", "value", "read"),
    [
        ("int", "long", 5, 5),
        ("int", "double", 5, 5.0),
        ("long", "float", 5, 5.0),
        ("float", "double", 0.5, 0.5),
        ("string", "bytes", "é", b"\xc3\xa9"),
        ("bytes", "string", b"\xc3\xa9", "é"),
        ("int", ["double", "int"], 5, 5),
        ("int", ["string", "double"], 5, 5.0),
        (["null", "int"], "long", 5, 5),
        (["int", "string"], ["string", "long"], 5, 5),
        (enum("A", "B"), enum("B", "A"), "B", "B"),
        (enum("A", "B"), enum("A", default="A"), "B", "A"),
        (
            record("R", ("a", "int"), ("b", "int")),
            record("R", ("b", "long")),
            {"a": 1, "b": 2},
            {"b": 2},
        ),
        (
            record("R", ("a", "int"), ("b", "int")),
            record("R", ("b", "int"), ("a", "int")),
            {"a": 1, "b": 2},
            {"b": 2, "a": 1},
        ),
        (
            record("R", ("a", "int")),
            [record("S", ("b", "int")), record("T", ("a", "long"))],
            {"a": 1},
            {"a": 1},
        ),
        (
            record("Old", ("a", "int")),
            ["null", record("New", ("a", "int"), aliases=["Old"])],
            {"a": 1},
            {"a": 1},
        ),
    ],
)
def test_values_are_read_as_the_readers_schema_defines(
    writer: Any, reader: Any, value: Any, read: Any
) -> None:
    """SCH-10"""
    payload = encode(schema(writer), value)
    assert repr(decode(schema(writer), schema(reader), payload)) == repr(read)


@pytest.mark.parametrize(
    ("writer", "reader", "value", "reason"),
    [
        ("long", "int", 5, "the writer has long, the reader int"),
        (["null", "int"], "int", None, "writer has null"),
        ("int", ["null", "string"], 5, "no branch of the reader's union takes a int"),
        (enum("A", "B"), enum("A"), "B", "enum E has no symbol B"),
        (
            {"type": "fixed", "name": "F", "size": 1},
            {"type": "fixed", "name": "F", "size": 2},
            b"x",
            "fixed F",
        ),
    ],
)
def test_values_that_do_not_fit_the_reader_are_refused(
    writer: Any, reader: Any, value: Any, reason: str
) -> None:
    payload = encode(schema(writer), value)
    with pytest.raises(CorruptPayload, match=reason):
        decode(schema(writer), schema(reader), payload)


def test_a_branch_that_cannot_be_read_harms_only_its_own_values() -> None:
    payload = encode(schema(["null", "int"]), 5)
    assert decode(schema(["null", "int"]), schema("int"), payload) == 5


def test_records_within_themselves_are_projected() -> None:
    old = record("L", ("v", "int"), ("next", ["null", "L"]))
    new = record("L", ("v", "long"), ("next", ["null", "L"]))
    value = {"v": 1, "next": {"v": 2, "next": None}}
    assert decode(schema(old), schema(new), encode(schema(old), value)) == value
