"""Confluent's rules for JSON Schema beside containment: what a reader is said to read, it takes.

The oracle is `covers` of jsonschema-rs, which proves that one schema takes every value of another.
It may also answer that it does not know; that counts as no. Of a property that only one of two
schemas unknown names, so both are asked for with all names spelled out.

Where Confluent's rules go another way on purpose, and which is left out of the schemas here:

- looser: a default makes a required property harmless, though data without it is not valid;
  `format`, `contains`, `propertyNames`, `patternProperties` and `if` are not compared;
  a required name without a property is not looked at, nor one that is added to an open model with
  a schema that takes anything; keywords without a `type` are taken for
  those of the type they speak about; parts of `allOf` may be dropped one by one; the last of
  several options of `oneOf` may overlap with a new one.
- stricter: a property or item that is added to an open model is refused even if it excludes no
  value; an `enum` is no string, a constant no `enum`; a sum is never spread over several parts.
"""

import json
from typing import Any

import jsonschema_rs
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.registry.compatibility.json_schema.comparison import incompatibilities
from headrace.serdes.json_schema.codec import validate
from headrace.serdes.json_schema.parsing import parse

COUNTS = st.integers(0, 3)
NAMES = "ab"


def keywords(**options: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=options)


def typed(name: str, options: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[Any]:
    return options.map(lambda more: {"type": name, **more})


SCALARS: st.SearchStrategy[Any] = st.one_of(
    typed("string", keywords(minLength=COUNTS, maxLength=COUNTS)),
    typed("integer", keywords(minimum=COUNTS, maximum=COUNTS, multipleOf=st.integers(1, 4))),
    typed("number", keywords(minimum=COUNTS, exclusiveMaximum=COUNTS)),
    st.sampled_from([{"type": "boolean"}, {"type": "null"}, {}, True, False]),
    st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True).map(
        lambda values: {"enum": values}
    ),
)


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    properties = st.dictionaries(st.sampled_from(NAMES), inner, max_size=2)
    rest = st.one_of(st.just(False), st.just(True), inner)
    required = st.lists(st.sampled_from(NAMES), unique=True, max_size=2)

    def build(parts: tuple[dict[str, Any], Any, list[str]]) -> dict[str, Any]:
        named, additional, needed = parts
        return {
            "type": "object",
            "properties": named,
            "additionalProperties": additional,
            "required": judged(needed, named),
        }

    return st.tuples(properties, rest, required).map(build)


def judged(required: list[str], properties: dict[str, Any]) -> list[str]:
    """The names that Confluent's rules look at wherever they are required."""
    return [name for name in required if properties.get(name, True) not in ({}, True)]


def arrays(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return typed(
        "array", keywords(items=inner, minItems=COUNTS, maxItems=COUNTS, uniqueItems=st.booleans())
    )


def unions(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"anyOf": parts})


SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: objects(inner) | arrays(inner) | unions(inner), max_leaves=5
)


@st.composite
def evolutions(draw: st.DrawFn) -> tuple[Any, Any]:
    """A schema and another one; most often the other is the schema with one part replaced."""
    old = draw(SCHEMAS)
    if isinstance(old, bool) or draw(st.booleans()):
        return old, draw(SCHEMAS)
    other = draw(SCHEMAS.filter(lambda schema: isinstance(schema, dict)))
    shared = sorted((old.keys() & other.keys()) - {"type"})
    if not shared:
        return old, old
    key = draw(st.sampled_from(shared))
    new = {**old, key: other[key]}
    if "required" in new:
        new["required"] = judged(new["required"], new["properties"])
    return old, new


def contained(new: Any, old: Any) -> bool:
    reader, writer = (
        jsonschema_rs.canonicalize(spelled_out(one), draft=jsonschema_rs.Draft7, offline=True)
        for one in (new, old)
    )
    return reader.covers(writer) == jsonschema_rs.canonical.Containment.YES


def spelled_out(schema: Any) -> Any:
    """The same schema, whose objects say of each name what it must be, not only of the rest."""
    match schema:
        case {"anyOf": parts}:
            return {**schema, "anyOf": [spelled_out(part) for part in parts]}
        case {"items": items}:
            return {**schema, "items": spelled_out(items)}
        case {"properties": properties, "additionalProperties": additional}:
            named = {name: spelled_out(properties.get(name, additional)) for name in NAMES}
            rest = spelled_out(additional)
            return {**schema, "properties": named, "additionalProperties": rest}
    return schema


NULL = {"type": "null"}
NULLS = {"type": "object", "properties": {}, "additionalProperties": NULL, "required": []}


@given(evolutions())
@example((NULLS, {**NULLS, "properties": {"a": {"anyOf": [NULL]}}}))
def test_a_reader_takes_all_data_of_a_schema_that_it_is_compatible_with(
    evolution: tuple[Any, Any],
) -> None:
    """SCH-12"""
    old, new = evolution
    reader, writer = parse(json.dumps(new)), parse(json.dumps(old))
    assert incompatibilities(reader, writer) or contained(new, old)


@given(SCHEMAS)
def test_a_schema_is_compatible_with_itself(schema: Any) -> None:
    parsed = parse(json.dumps(schema))
    assert incompatibilities(parsed, parsed) == []


@given(SCHEMAS)
def test_normalizing_keeps_the_meaning(schema: Any) -> None:
    parsed = parse(json.dumps(schema))
    assert parse(parsed.normalized()).document == parsed.document


@given(SCHEMAS, st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_a_value_has_faults_exactly_if_it_is_not_valid(schema: Any, value: Any) -> None:
    parsed = parse(json.dumps(schema))
    assert bool(validate(parsed, value)) != parsed.validator.is_valid(value)
