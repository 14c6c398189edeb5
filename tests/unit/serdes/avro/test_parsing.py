"""Avro schemas are parsed strictly, and errors have their place."""

import json
from typing import Any

import pytest

from headrace.serdes.avro.model import nodes_of
from headrace.serdes.avro.parsing import DEPTH_MAX, TEXT_MAX, parse
from headrace.serdes.schemas import Dependency, InvalidSchema, ParsedSchema, SchemaType

ADDRESS = (
    '{"type":"record","name":"Address","namespace":"a","fields":[{"name":"c","type":"string"}]}'
)


def record(*fields: dict[str, Any], **more: Any) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": list(fields), **more})


def test_a_schema_is_one_that_a_registry_stores() -> None:
    schema: ParsedSchema = parse('"string"')
    assert schema.type is SchemaType.AVRO


def test_an_int_with_a_text_for_a_default_is_refused_by_the_name_of_its_field() -> None:
    """SCH-3"""
    text = record({"name": "taxcode", "type": "int", "default": "39"})
    with pytest.raises(InvalidSchema, match=r'field taxcode: "39" not a "int" \(at /fields/0/def'):
        parse(text)


def test_lenient_reading_takes_wrong_defaults() -> None:
    """SCH-3"""
    text = record({"name": "taxcode", "type": "int", "default": "39"})
    assert '"default":"39"' in parse(text, lenient=True).canonical()


def test_lenient_reading_takes_names_of_all_scripts() -> None:
    text = '{"type":"record","name":"Bestellung","fields":[{"name":"größe","type":"int"}]}'
    assert "größe" in parse(text, lenient=True).canonical()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not JSON"),
        ("5", "a type is a name, an object or a list"),
        ('{"type":"float","x":NaN}', "NaN is not a JSON number"),
        ('"Order"', "Undefined schema: Order"),
        ('{"items":"int"}', "No type"),
        ('{"type":["null","int"]}', "No type"),
        ('{"type":"array"}', "Array has no items"),
        ('{"type":"map"}', "Map has no values"),
        ('{"type":"record","name":"R"}', "Record has no fields"),
        ('{"type":"record","fields":[]}', "No name in schema"),
        ('{"type":"record","name":"1R","fields":[]}', r'Illegal name: "1R".*at /name'),
        ('{"type":"record","name":"R","namespace":"a.1","fields":[]}', "at /namespace"),
        ('{"type":"record","name":"R","namespace":1,"fields":[]}', "a namespace is a text"),
        ('{"type":"fixed","name":"int","size":1}', "may not be named after primitives"),
        ('{"type":"fixed","name":"F"}', "Invalid or no size"),
        ('{"type":"fixed","name":"F","size":-1}', "Invalid or no size"),
        ('{"type":"fixed","name":"F","size":true}', "Invalid or no size"),
        ('{"type":"fixed","name":"F","size":1,"aliases":"G"}', "aliases not an array"),
        ('{"type":"fixed","name":"F","size":1,"aliases":[1]}', "alias not a string"),
        ('{"type":"enum","name":"E"}', "Enum has no symbols"),
        ('{"type":"enum","name":"E","symbols":["A","A"]}', r"Duplicate enum symbol: A.*symbols/1"),
        ('{"type":"enum","name":"E","symbols":["A-B"]}', "Illegal name"),
        ('{"type":"enum","name":"E","symbols":["A"],"default":"B"}', "not in the enum symbol set"),
        ('["int","int"]', r"Duplicate in union: int \(at /1\)"),
        ('["int",["null"]]', "Nested union"),
        (record({"name": "a", "type": "int"}, {"name": "a", "type": "int"}), "Duplicate field a"),
        (record({"type": "int"}), "No field name"),
        (record({"name": "a"}), "No field type"),
        (record({"name": "a", "type": "int", "order": "up"}), "has no order"),
        (record({"name": "a", "type": "int", "default": 1 << 31}), "Invalid default for field a"),
        (record({"name": "a", "type": "int", "default": True}), "Invalid default for field a"),
        (record({"name": "a", "type": "boolean", "default": 0}), "Invalid default for field a"),
        (
            record({"name": "a", "type": "bytes", "default": "\u0100"}),
            "Invalid default for field a",
        ),
        (record({"name": "a", "type": ["null", "int"], "default": "x"}), "Invalid default"),
        (record({"name": "a", "type": {"type": "array", "items": "int"}, "default": ["x"]}), "Inv"),
        (record({"name": "a", "type": {"type": "map", "values": "int"}, "default": []}), "Invalid"),
        (
            record(
                {"name": "a", "type": {"type": "enum", "name": "E", "symbols": ["A"]}},
                {"name": "b", "type": "E", "default": "B"},
            ),
            "Invalid default for field b",
        ),
        (
            record(
                {"name": "a", "type": {"type": "fixed", "name": "F", "size": 1}},
                {"name": "b", "type": {"type": "fixed", "name": "F", "size": 2}},
            ),
            r"Can't redefine: F \(at /fields/1/type\)",
        ),
    ],
)
def test_an_invalid_schema_is_refused_with_its_place(text: str, reason: str) -> None:
    with pytest.raises(InvalidSchema, match=reason):
        parse(text)


@pytest.mark.parametrize(
    "default", [0.5, 1, "0.5", "NaN", "-Infinity"], ids=["double", "int", "text", "nan", "inf"]
)
def test_a_double_takes_each_default_that_java_takes(default: Any) -> None:
    schema = parse(record({"name": "a", "type": "double", "default": default}))
    assert '"default":' in schema.canonical()


def test_a_union_takes_the_default_of_any_branch() -> None:
    text = record({"name": "a", "type": ["null", "int"], "default": 5})
    assert parse(text).canonical() == text.replace(" ", "")


def test_the_same_definition_may_come_twice() -> None:
    fixed = {"type": "fixed", "name": "F", "size": 2}
    schema = parse(record({"name": "a", "type": fixed}, {"name": "b", "type": fixed}))
    assert '{"name":"b","type":"F"}' in schema.canonical()


def test_a_record_may_be_recursive() -> None:
    text = '{"type":"record","name":"L","fields":[{"name":"n","type":["null","L"]}]}'
    assert parse(text).canonical() == text


def test_a_type_may_be_used_before_it_is_defined() -> None:
    fixed = {"type": "fixed", "name": "F", "size": 1}
    schema = parse(record({"name": "a", "type": "F"}, {"name": "b", "type": fixed}))
    assert schema.canonical() == (
        '{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"fixed","name":"F",'
        '"size":1}},{"name":"b","type":"F"}]}'
    )


def test_types_may_use_one_another_before_they_are_defined() -> None:
    second = {"type": "record", "name": "S", "fields": [{"name": "r", "type": ["null", "R"]}]}
    text = record({"name": "a", "type": ["null", "S"]}, {"name": "b", "type": second})
    assert parse(parse(text).canonical()).canonical() == parse(text).canonical()


def test_many_names_that_are_defined_later_are_found_at_once() -> None:
    """A search of the text for each name would take hours."""
    names = [f"F{number}" for number in range(2000)]
    fixed = [{"type": "fixed", "name": name, "size": 1} for name in names]
    uses = [{"name": f"a{name}", "type": name} for name in names]
    made = [{"name": f"b{kind['name']}", "type": kind} for kind in fixed]
    assert len(nodes_of(parse(record(*uses, *made)).root)) == 2001


def doubling(levels: int) -> str:
    """Records that contain the next one twice, each with a default."""
    inner: Any = {"type": "record", "name": f"R{levels}", "fields": []}
    for level in reversed(range(levels)):
        first = {"name": "a", "type": inner, "default": {}}
        second = {"name": "b", "type": f"R{level + 1}", "default": {}}
        inner = {"type": "record", "name": f"R{level}", "fields": [first, second]}
    return json.dumps(inner)


def test_defaults_of_records_within_records_are_checked_once() -> None:
    """Sixty levels of two would take for ever."""
    assert parse(doubling(60)).name == "R0"


def test_comments_are_passed_over() -> None:
    assert parse('/* one */ {"type": "int", "url": "http://a"} // two').canonical() == (
        '{"type":"int","url":"http://a"}'
    )


def test_a_dependency_has_its_full_name() -> None:
    """SCH-13"""
    text = record({"name": "home", "type": "a.Address"})
    schema = parse(text, [Dependency("a.Address", ADDRESS)])
    assert schema.canonical() == text.replace(" ", "")


def test_a_dependency_that_is_invalid_is_named() -> None:
    with pytest.raises(InvalidSchema, match=r"the referenced schema other\.avsc: .*not JSON"):
        parse('"string"', [Dependency("other.avsc", "{")])


def test_a_schema_that_is_too_large_is_refused() -> None:
    with pytest.raises(InvalidSchema, match="more than"):
        parse('"' + "a" * TEXT_MAX + '"')


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"array","items":' * (DEPTH_MAX + 1) + '"int"' + "}" * (DEPTH_MAX + 1),
        "[" * 100_000,
        '{"a":' * 900 + "1" + "}" * 900,
    ],
    ids=["types", "open brackets", "objects"],
)
def test_a_schema_that_nests_too_deep_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchema, match="deep"):
        parse(text)
