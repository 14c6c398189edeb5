"""Incompatible changes of JSON Schemas: known cases, references, recursion, bounds."""

import json
from typing import Any

import pytest

from headrace.registry.compatibility.json_schema import comparison
from headrace.registry.compatibility.json_schema.changes import STRICT
from headrace.registry.compatibility.json_schema.comparison import differences, incompatibilities
from headrace.registry.compatibility.levels import Level, Policy, Version, conflict
from headrace.registry.compatibility.messages import messages_of
from headrace.serdes.json_schema.parsing import JsonSchema, parse
from headrace.serdes.schemas import Dependency
from tests.unit.registry.compatibility.json_schema.known_cases import CASES, STRING, Case, closed, o


def schema(value: Any, **dependencies: Any) -> JsonSchema:
    named = [Dependency(name, json.dumps(each)) for name, each in dependencies.items()]
    return parse(json.dumps(value), named)


def broken(new: Any, old: Any) -> list[str]:
    every = differences(schema(new), schema(old))
    return [f"{each.change.name} {each.pointer}" for each in every if each.change not in STRICT]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_known_changes_break_the_expected_readers(case: Case) -> None:
    """SCH-12, SCH-13: which change breaks a reader, and where."""
    assert broken(case.new, case.old) == list(case.breaks)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_schema_reads_its_own_data(case: Case) -> None:
    assert incompatibilities(schema(case.new), schema(case.new)) == []


def test_an_incompatibility_names_the_change_the_place_and_both_schemas() -> None:
    (found,) = incompatibilities(schema(o({"b": STRING})), schema(o({})))
    assert (found.name, found.path) == (
        "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        "#/properties/b",
    )
    assert found.text == (
        "The new schema has an open content model and has a property or item at path"
        " '#/properties/b' which is missing in the old schema"
    )


@pytest.mark.parametrize(
    ("level", "words"),
    [
        (Level.BACKWARD, "between the new schema and the old schema"),
        (Level.FORWARD, "between the old schema and the new schema"),
    ],
)
def test_the_words_for_the_schemas_follow_the_direction_of_a_check(
    level: Level, words: str
) -> None:
    previous = [Version(schema({"type": "null"}))]
    messages = messages_of(conflict(level, schema(STRING), previous, incompatibilities))
    assert words in messages[0]


def test_the_lenient_policy_takes_an_open_model_for_a_closed_one() -> None:
    reader, writer = schema(closed({"b": STRING})), schema(o({}))
    assert incompatibilities(reader, writer, policy=Policy.LENIENT) == []


def test_moving_a_schema_to_a_definition_changes_nothing() -> None:
    moved = o({"a": {"$ref": "#/definitions/a"}}, definitions={"a": STRING})
    assert broken(moved, o({"a": STRING})) == []


def test_a_change_in_a_definition_is_reported_at_its_uses() -> None:
    def using(definition: Any) -> Any:
        return o({"a": {"$ref": "#/definitions/a"}}, definitions={"a": definition})

    assert broken(using({"type": "null"}), using(STRING)) == ["TYPE_CHANGED #/properties/a"]


def test_a_reference_to_a_reference_is_followed() -> None:
    def using(definition: Any) -> Any:
        chain = {"a": {"$ref": "#/definitions/b"}, "b": definition}
        return {"$ref": "#/definitions/a", "definitions": chain}

    assert broken(using({"type": "null"}), using(STRING)) == ["TYPE_CHANGED #/"]


def test_a_change_in_a_dependency_breaks_its_referrers() -> None:
    reader = schema(o({"a": {"$ref": "other"}}), other={"type": "null"})
    writer = schema(o({"a": {"$ref": "other"}}), other=STRING)
    assert [each.pointer for each in differences(reader, writer)] == ["#/properties/a"]


def tree(leaf: Any) -> Any:
    return o({"left": {"$ref": "#"}, "right": {"$ref": "#"}, "value": leaf})


def test_a_change_in_a_recursive_schema_is_found() -> None:
    assert "TYPE_CHANGED #/properties/value" in broken(tree({"type": "null"}), tree(STRING))


def test_a_recursive_schema_reads_its_own_data() -> None:
    assert broken(tree(STRING), tree(STRING)) == []


def test_a_wrong_assumption_about_a_recursive_schema_is_revised() -> None:
    """The pair of `a` is assumed to be fine while `c` is compared; later it proves broken."""

    def through(first: str, second: str) -> Any:
        def linked(kind: str, target: str) -> Any:
            link = {"oneOf": [{"$ref": f"#/definitions/{target}"}]}
            return o({"id": {"type": kind}, "link": link})

        definitions = {
            "a": linked(first, "c"),
            "b": linked(second, "c"),
            "c": linked("integer", "a"),
        }
        root = {"oneOf": [{"$ref": "#/definitions/a"}, {"$ref": "#/definitions/b"}]}
        return o({"root": root}, definitions=definitions)

    assert broken(through("boolean", "number"), through("integer", "boolean")) != []


def test_many_unions_of_many_recursive_types_are_compared() -> None:
    names = [f"type{number}" for number in range(12)]
    union = {"oneOf": [{"$ref": f"#/definitions/{name}"} for name in names]}
    definitions = {name: o({"id": STRING, "next": union, "last": union}) for name in names}
    assert broken(*[o({"product": union}, definitions=definitions)] * 2) == []


def test_a_reference_in_a_circle_is_given_up() -> None:
    circle = {"$ref": "#/definitions/a", "definitions": {"a": {"$ref": "#/definitions/a"}}}
    (found,) = incompatibilities(schema(circle), schema(circle))
    assert found.name == "TOO_COMPLEX"


def test_long_unions_are_given_up_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "PAIRS_MAX", 1000)
    union = {"oneOf": [{"const": number} for number in range(40)]}
    (found,) = incompatibilities(schema(union), schema(union))
    assert "Make oneOf, anyOf and allOf shorter" in found.text


def chain(length: int, leaf: Any) -> Any:
    """Each definition uses the next one twice."""
    definitions = {
        str(number): o({key: {"$ref": f"#/definitions/{number + 1}"} for key in ["a", "b"]})
        for number in range(length)
    }
    return {"$ref": "#/definitions/0", "definitions": definitions | {str(length): leaf}}


def test_a_change_at_the_end_of_a_long_chain_of_definitions_is_found() -> None:
    assert "TYPE_CHANGED" in broken(chain(300, {"type": "null"}), chain(300, STRING))[0]


def test_a_pattern_of_another_dialect_breaks_no_comparison() -> None:
    old = closed({"a": STRING}, patternProperties={"\\p{L}+": STRING})
    assert broken(closed({}, patternProperties={"\\p{L}+": STRING}), old) == []


def test_a_pattern_that_explodes_does_not_hold_up_a_comparison() -> None:
    pattern, name = "^(a+)+$", "a" * 60 + "!"
    old = closed({name: STRING}, patternProperties={pattern: STRING})
    new = closed({}, patternProperties={pattern: STRING})
    assert broken(new, old) == [f"PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/{name}"]
