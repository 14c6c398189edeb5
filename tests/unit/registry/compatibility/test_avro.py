"""Changes of Avro schemas, and those that break readers."""

import json
from typing import Any

import pytest

from headrace.registry.compatibility import avro
from headrace.registry.compatibility.avro import incompatibilities
from headrace.registry.compatibility.levels import Conflict, Level
from headrace.registry.compatibility.messages import messages_of
from headrace.serdes.avro.parsing import parse
from headrace.serdes.avro.schema import AvroSchema
from headrace.serdes.schemas import Dependency, SchemaType

OLD_CUSTOMER: dict[str, Any] = {
    "type": "record",
    "name": "Customer",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "email", "type": "string"},
        {"name": "faxNumber", "type": "string", "default": ""},
    ],
}
NEW_CUSTOMER: dict[str, Any] = OLD_CUSTOMER | {
    "fields": [
        {"name": "customerId", "type": "long", "aliases": ["id"]},
        {"name": "email", "type": ["null", "string"]},
        {"name": "prefLang", "type": "string", "default": "en_US"},
    ]
}


def schema(value: Any) -> AvroSchema:
    return parse(json.dumps(value))


def record(*fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": list(fields), **more}


def field(kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": "a", "type": kind, **more}


def enum(*symbols: str, **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": "E", "symbols": list(symbols), **more}


def test_a_customer_that_evolves_with_care_is_read() -> None:
    """SCH-6"""
    assert incompatibilities(schema(NEW_CUSTOMER), schema(OLD_CUSTOMER)) == []


@pytest.mark.parametrize(("position", "attribute"), [(0, "aliases"), (2, "default")])
def test_a_customer_without_alias_or_default_is_refused(position: int, attribute: str) -> None:
    """SCH-6"""
    careless = json.loads(json.dumps(NEW_CUSTOMER))
    del careless["fields"][position][attribute]
    (found,) = incompatibilities(schema(careless), schema(OLD_CUSTOMER))
    assert found.name == "READER_FIELD_MISSING_DEFAULT_VALUE"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (record(field("int")), record(field("int", doc="new"), doc="new")),
        (record(field("int", default=1)), record(field("int", default=2))),
        (record(), record(field("int", default=1))),
        (record(field("int", default=1)), record()),
        (record(field("int")), record(field("long"))),
        (record(field("int")), record({"name": "b", "type": "int", "aliases": ["a"]})),
        (record(field("int")), record(field(["null", "int"]))),
    ],
    ids=["doc", "default", "added", "removed", "widened", "alias", "nullable"],
)
def test_a_safe_change_passes(old: Any, new: Any) -> None:
    """SCH-7"""
    assert incompatibilities(schema(new), schema(old)) == []


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        (record(), record(name="Other"), "NAME_MISMATCH"),
        (record(), record(field("int")), "READER_FIELD_MISSING_DEFAULT_VALUE"),
        (record(field(enum("A", "B"))), record(field(enum("A"))), "MISSING_ENUM_SYMBOLS"),
        (record(field(["null", "int"])), record(field(["null"])), "MISSING_UNION_BRANCH"),
        (record(field("long")), record(field("int")), "TYPE_MISMATCH"),
    ],
    ids=["renamed", "added", "symbol", "branch", "narrowed"],
)
def test_a_breaking_change_is_refused(old: Any, new: Any, error: str) -> None:
    """SCH-7"""
    (found,) = incompatibilities(schema(new), schema(old))
    assert found.name == error


def test_a_changed_namespace_is_refused_where_full_names_count() -> None:
    """SCH-7"""
    old, new = schema(record(namespace="a")), schema(record(namespace="b"))
    (found,) = incompatibilities(new, old, full_names=True)
    assert found.detail == "expected: a.R"


def test_java_does_not_look_at_namespaces() -> None:
    old, new = schema(record(namespace="a")), schema(record(namespace="b"))
    assert incompatibilities(new, old) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            record(),
            record(field("int")),
            "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'a' at path"
            " '/fields/0' in the new schema has no default value and is missing in the old schema',"
            " additionalInfo:'a'}",
        ),
        (
            record(field("long")),
            record(field("int")),
            "{errorType:'TYPE_MISMATCH', description:'The type (path '/fields/0/type') of a field"
            " in the new schema does not match with the old schema', additionalInfo:'reader type:"
            " INT not compatible with writer type: LONG'}",
        ),
        (
            enum("A", "C", "B"),
            enum("A"),
            "{errorType:'MISSING_ENUM_SYMBOLS', description:'The new schema is missing enum symbols"
            " '[B, C]' at path '/symbols' in the old schema', additionalInfo:'[B, C]'}",
        ),
        (
            ["null", "int"],
            ["null"],
            "{errorType:'MISSING_UNION_BRANCH', description:'The new schema is missing a type"
            " inside a union field at path '/1' in the old schema', additionalInfo:'reader union"
            " lacking writer type: INT'}",
        ),
        (
            {"type": "fixed", "name": "F", "size": 1},
            {"type": "fixed", "name": "F", "size": 2},
            "{errorType:'FIXED_SIZE_MISMATCH', description:'The size of FIXED type field at path"
            " '/size' in the new schema does not match with the old schema',"
            " additionalInfo:'expected: 1, found: 2'}",
        ),
        (
            record(),
            record(name="Q"),
            "{errorType:'NAME_MISMATCH', description:'The name of the schema has changed (path"
            " '/name')', additionalInfo:'expected: R'}",
        ),
    ],
)
def test_messages_are_those_of_confluents_registry(old: Any, new: Any, message: str) -> None:
    found = incompatibilities(schema(new), schema(old))
    conflict = Conflict(Level.BACKWARD, SchemaType.AVRO, tuple(found))
    assert messages_of(conflict)[:-1] == [message]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (enum("A", "B"), enum("A", default="A")),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "long"}),
        ({"type": "map", "values": "int"}, {"type": "map", "values": ["null", "double"]}),
        (["int", "long"], "double"),
        (record(name="Old"), record(aliases=["Old"])),
    ],
)
def test_more_compatible_changes(old: Any, new: Any) -> None:
    assert incompatibilities(schema(new), schema(old)) == []


def test_records_within_themselves_are_compared_once() -> None:
    old = record(field(["null", "R"]), {"name": "b", "type": "long"})
    new = record(field(["null", "R"]), {"name": "b", "type": "int"})
    every = incompatibilities(schema(new), schema(old))
    assert [found.name for found in every] == ["TYPE_MISMATCH"]


def test_aliases_that_name_two_fields_are_an_error() -> None:
    old = record(field("int"), {"name": "b", "type": "int"})
    new = record({"name": "c", "type": "int", "aliases": ["a", "b"]})
    (found,) = incompatibilities(schema(new), schema(old))
    assert "matches multiple fields" in found.text


def test_references_are_looked_into() -> None:
    old, new = (Dependency("F", f'{{"type":"fixed","name":"F","size":{n}}}') for n in (1, 2))
    (found,) = incompatibilities(parse('"F"', [new]), parse('"F"', [old]))
    assert found.name == "FIXED_SIZE_MISMATCH"


def records(name: str, count: int, kind: str) -> list[Any]:
    return [record(field(kind), name=name.format(number)) for number in range(count)]


def test_long_unions_are_compared_by_name_and_not_all_with_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each record, its field, and the union itself: three pairs for each branch, and the root."""
    monkeypatch.setattr(avro, "PAIRS_MAX", 3 * 200 + 1)
    old, new = schema(records("R{}", 200, "int")), schema(records("R{}", 200, "long"))
    assert incompatibilities(new, old) == []


def test_unions_that_differ_in_namespaces_alone_are_given_up_with_a_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(avro, "PAIRS_MAX", 1_000)
    old, new = schema(records("a{}.R", 40, "int")), schema(records("b{}.R", 40, "string"))
    (found,) = incompatibilities(new, old)
    assert found.name == "TOO_COMPLEX"


def test_a_branch_that_was_renamed_is_found_by_its_alias() -> None:
    old = schema(["null", record(field("int"), name="a.Old")])
    new = schema(["null", record(field("long"), name="b.New", aliases=["a.Old"])])
    assert incompatibilities(new, old) == []


def test_a_difference_is_reported_once_for_all_paths_to_it() -> None:
    def twice(depth: int, leaf: str) -> Any:
        """Each record uses the next one in two fields: a million ways to the last."""
        if depth == 0:
            return leaf
        inner = {"name": "a", "type": twice(depth - 1, leaf)}
        again = {"name": "b", "type": f"R{depth - 1}" if depth > 1 else leaf}
        return {"type": "record", "name": f"R{depth}", "fields": [inner, again]}

    every = incompatibilities(schema(twice(20, "int")), schema(twice(20, "string")))
    assert len(every) == avro.DIFFERENCES_MAX
