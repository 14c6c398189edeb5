"""Known cases of JSON Schema compatibility, each with the readers that it breaks.

Where they come from: the rules are those of `SchemaDiff` in Confluent's json-schema-provider (its
sets of compatible changes, as of version 8.2), and the facts agree with the examples that its own
tests hold (`diff-schema-examples*.json`, `diff-combined-schema-examples*.json`). The schemas here
are ours. A case without breaks is compatible.
"""

from typing import Any, NamedTuple


class Case(NamedTuple):
    name: str
    old: Any
    new: Any
    breaks: tuple[str, ...] = ()


def s(**keywords: Any) -> dict[str, Any]:
    return {"type": "string", **keywords}


def n(**keywords: Any) -> dict[str, Any]:
    return {"type": "number", **keywords}


def o(properties: dict[str, Any], **keywords: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **keywords}


def closed(properties: dict[str, Any], **keywords: Any) -> dict[str, Any]:
    return o(properties, additionalProperties=False, **keywords)


def a(**keywords: Any) -> dict[str, Any]:
    return {"type": "array", **keywords}


STRING, NUMBER, INTEGER, NULL = s(), n(), {"type": "integer"}, {"type": "null"}

TYPES = [
    Case("anything can be read as anything", STRING, {}),
    Case("nothing can be read as something", False, STRING),
    Case("anything cannot be read as a string", {}, STRING, ("TYPE_CHANGED #/",)),
    Case("a string is no number", STRING, NUMBER, ("TYPE_CHANGED #/",)),
    Case("an integer is a number", INTEGER, NUMBER),
    Case("a number may be no integer", NUMBER, INTEGER, ("TYPE_NARROWED #/",)),
    Case("a boolean is no null", {"type": "boolean"}, NULL, ("TYPE_CHANGED #/",)),
    Case("texts about a schema change nothing", s(title="A", description="b", default="c"), STRING),
    Case(
        "Connect's bytes were strings and are numbers",
        s(**{"connect.type": "bytes"}),
        n(**{"connect.type": "bytes"}),
    ),
]

STRINGS = [
    Case("a longer maximum", s(maxLength=3), s(maxLength=4)),
    Case(
        "a shorter maximum", s(maxLength=4), s(maxLength=3), ("MAX_LENGTH_DECREASED #/maxLength",)
    ),
    Case("a new maximum", STRING, s(maxLength=3), ("MAX_LENGTH_ADDED #/maxLength",)),
    Case("no maximum any more", s(maxLength=3), STRING),
    Case("a lower minimum", s(minLength=3), s(minLength=2)),
    Case("a higher minimum", s(minLength=2), s(minLength=3), ("MIN_LENGTH_INCREASED #/minLength",)),
    Case("a new minimum", STRING, s(minLength=3), ("MIN_LENGTH_ADDED #/minLength",)),
    Case("no minimum any more", s(minLength=3), STRING),
    Case("a new pattern", STRING, s(pattern="x"), ("PATTERN_ADDED #/pattern",)),
    Case("another pattern", s(pattern="x"), s(pattern="y"), ("PATTERN_CHANGED #/pattern",)),
    Case("no pattern any more", s(pattern="x"), STRING),
    Case("a format is not looked at", STRING, s(format="email")),
]

NUMBERS = [
    Case("a higher maximum", n(maximum=3), n(maximum=4)),
    Case("a lower maximum", n(maximum=4), n(maximum=3.5), ("MAXIMUM_DECREASED #/maximum",)),
    Case("a new maximum", NUMBER, n(maximum=3), ("MAXIMUM_ADDED #/maximum",)),
    Case("no bounds any more", n(maximum=3, minimum=1, exclusiveMaximum=2), NUMBER),
    Case("a lower minimum", n(minimum=3), n(minimum=2)),
    Case("a higher minimum", n(minimum=2), n(minimum=3), ("MINIMUM_INCREASED #/minimum",)),
    Case("a new minimum", NUMBER, n(minimum=3), ("MINIMUM_ADDED #/minimum",)),
    Case("a higher open maximum", n(exclusiveMaximum=3), n(exclusiveMaximum=4)),
    Case(
        "a lower open maximum",
        n(exclusiveMaximum=4),
        n(exclusiveMaximum=3),
        ("EXCLUSIVE_MAXIMUM_DECREASED #/exclusiveMaximum",),
    ),
    Case(
        "a new open minimum",
        NUMBER,
        n(exclusiveMinimum=0),
        ("EXCLUSIVE_MINIMUM_ADDED #/exclusiveMinimum",),
    ),
    Case(
        "a higher open minimum",
        n(exclusiveMinimum=0),
        n(exclusiveMinimum=1),
        ("EXCLUSIVE_MINIMUM_INCREASED #/exclusiveMinimum",),
    ),
    Case("multiples of a divisor", n(multipleOf=10), n(multipleOf=5)),
    Case("the same multiple with more digits", n(multipleOf=0.5), n(multipleOf=0.50)),
    Case(
        "multiples of a multiple",
        n(multipleOf=0.5),
        n(multipleOf=10),
        ("MULTIPLE_OF_EXPANDED #/multipleOf",),
    ),
    Case(
        "multiples of something else",
        n(multipleOf=3),
        n(multipleOf=2),
        ("MULTIPLE_OF_CHANGED #/multipleOf",),
    ),
    Case("new multiples", NUMBER, n(multipleOf=2), ("MULTIPLE_OF_ADDED #/multipleOf",)),
    Case("no multiples any more", n(multipleOf=2), NUMBER),
    Case(
        "draft 4 opens a bound with a switch",
        {"$schema": "http://json-schema.org/draft-04/schema#", "type": "number", "minimum": 1},
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "type": "number",
            "minimum": 1,
            "exclusiveMinimum": True,
        },
        ("EXCLUSIVE_MINIMUM_ADDED #/exclusiveMinimum",),
    ),
]

VALUES = [
    Case("more values", s(enum=["a"]), s(enum=["a", "b"])),
    Case("fewer values", {"enum": ["a", "b"]}, {"enum": ["a"]}, ("ENUM_ARRAY_NARROWED #/enum",)),
    Case("other values", {"enum": ["a"]}, {"enum": ["b"]}, ("ENUM_ARRAY_CHANGED #/enum",)),
    Case(
        "fewer values of a type",
        s(enum=["a", "b"]),
        s(enum=["a"]),
        ("COMBINED_TYPE_SUBSCHEMAS_CHANGED #/",),
    ),
    Case("any value of the type", s(enum=["a"]), STRING),
    Case("another constant", {"const": 1}, {"const": 2}, ("ENUM_ARRAY_CHANGED #/const",)),
    Case("less is refused", {"not": NUMBER}, {"not": INTEGER}),
    Case("more is refused", {"not": INTEGER}, {"not": NUMBER}, ("NOT_TYPE_EXTENDED #/not",)),
]

OBJECTS = [
    Case("a property leaves an open model", o({"a": STRING, "b": STRING}), o({"a": STRING})),
    Case(
        "a property comes to an open model",
        o({"a": STRING}),
        o({"a": STRING, "b": STRING}),
        ("OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/b",),
    ),
    Case(
        "a required property comes to an open model",
        o({}),
        o({"b": STRING}, required=["b"]),
        ("REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/b",),
    ),
    Case(
        "a required property with a default comes to an open model",
        o({}),
        o({"b": s(default="x")}, required=["b"]),
        ("REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL #/properties/b",),
    ),
    Case("a property that may be anything comes to an open model", o({}), o({"b": {}})),
    Case("one that may be anything and is required does", o({}), o({"b": {}}, required=["b"])),
    Case("a property comes to a closed model", closed({}), closed({"b": STRING})),
    Case(
        "a required property comes to a closed model",
        closed({}),
        closed({"b": STRING}, required=["b"]),
        ("REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/b",),
    ),
    Case(
        "a required property with a default comes to a closed model",
        closed({}),
        closed({"b": s(default="x")}, required=["b"]),
    ),
    Case(
        "a property leaves a closed model",
        closed({"a": STRING}),
        closed({}),
        ("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/a",),
    ),
    Case("a forbidden property leaves a closed model", closed({"a": False}), closed({})),
    Case(
        "a property comes where others have its type",
        o({}, additionalProperties=STRING),
        o({"b": STRING}, additionalProperties=STRING),
    ),
    Case(
        "a property comes where others have another type",
        o({}, additionalProperties=STRING),
        o({"b": NUMBER}, additionalProperties=STRING),
        (
            "TYPE_CHANGED #/properties/b",
            "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/b",
        ),
    ),
    Case(
        "a property leaves to others of another type",
        o({"b": NUMBER}, additionalProperties=STRING),
        o({}, additionalProperties=STRING),
        (
            "TYPE_CHANGED #/properties/b",
            "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/b",
        ),
    ),
    Case(
        "a property leaves to a pattern that fits",
        closed({"i_1": INTEGER}, patternProperties={"^i_": NUMBER}),
        closed({}, patternProperties={"^i_": NUMBER}),
    ),
    Case(
        "a property changes", o({"a": STRING}), o({"a": NUMBER}), ("TYPE_CHANGED #/properties/a",)
    ),
    Case("a property becomes optional", o({"a": STRING}, required=["a"]), o({"a": STRING})),
    Case(
        "a property becomes required",
        o({"a": STRING}),
        o({"a": STRING}, required=["a"]),
        ("REQUIRED_ATTRIBUTE_ADDED #/required/a",),
    ),
    Case(
        "a property with a default becomes required",
        o({"a": STRING}),
        o({"a": s(default="x")}, required=["a"]),
    ),
    Case("the model opens", closed({}), o({})),
    Case(
        "the model closes",
        o({}),
        closed({}),
        ("ADDITIONAL_PROPERTIES_REMOVED #/additionalProperties",),
    ),
    Case(
        "the model gets a schema for the rest",
        o({}),
        o({}, additionalProperties=STRING),
        ("ADDITIONAL_PROPERTIES_NARROWED #/additionalProperties",),
    ),
    Case("the rest loses its schema", o({}, additionalProperties=STRING), o({})),
    Case(
        "the schema for the rest changes",
        o({}, additionalProperties=STRING),
        o({}, additionalProperties=NUMBER),
        ("TYPE_CHANGED #/additionalProperties",),
    ),
    Case("more properties", o({}, maxProperties=2), o({}, maxProperties=3)),
    Case(
        "fewer properties",
        o({}, maxProperties=3),
        o({}, maxProperties=2),
        ("MAX_PROPERTIES_DECREASED #/maxProperties",),
    ),
    Case(
        "at least some properties",
        o({}),
        o({}, minProperties=1),
        ("MIN_PROPERTIES_ADDED #/minProperties",),
    ),
    Case(
        "more names are needed with another",
        o({}, dependencies={"a": ["b"]}),
        o({}, dependencies={"a": ["b", "c"]}),
        ("DEPENDENCY_ARRAY_EXTENDED #/dependencies/a",),
    ),
    Case(
        "fewer names are needed with another",
        o({}, dependencies={"a": ["b", "c"]}),
        o({}, dependencies={"a": ["b"]}),
    ),
    Case(
        "other names are needed with another",
        o({}, dependencies={"a": ["b"]}),
        o({}, dependencies={"a": ["c"]}),
        ("DEPENDENCY_ARRAY_CHANGED #/dependencies/a",),
    ),
    Case("no name is needed any more", o({}, dependencies={"a": ["b"]}), o({})),
    Case(
        "a name is needed now",
        o({}),
        o({}, dependencies={"a": ["b"]}),
        ("DEPENDENCY_ARRAY_ADDED #/dependencies/a",),
    ),
    Case(
        "a schema holds with a name now",
        o({}),
        o({}, dependencies={"a": {"minProperties": 2}}),
        ("DEPENDENCY_SCHEMA_ADDED #/dependencies/a",),
    ),
    Case("no schema holds any more", o({}, dependencies={"a": {"minProperties": 2}}), o({})),
]

ARRAYS = [
    Case("items get a schema", a(), a(items=STRING), ("SCHEMA_ADDED #/items",)),
    Case("items lose their schema", a(items=STRING), a()),
    Case("items change", a(items=STRING), a(items=NUMBER), ("TYPE_CHANGED #/items",)),
    Case("items widen", a(items=INTEGER), a(items=NUMBER)),
    Case("more items", a(maxItems=1), a(maxItems=2)),
    Case("fewer items", a(maxItems=2), a(maxItems=1), ("MAX_ITEMS_DECREASED #/maxItems",)),
    Case("at least one item", a(), a(minItems=1), ("MIN_ITEMS_ADDED #/minItems",)),
    Case("items may repeat", a(uniqueItems=True), a()),
    Case("items may not repeat", a(), a(uniqueItems=True), ("UNIQUE_ITEMS_ADDED #/uniqueItems",)),
    Case("an item leaves an open list", a(items=[STRING, NUMBER]), a(items=[STRING])),
    Case(
        "an item comes to an open list",
        a(items=[STRING]),
        a(items=[STRING, NUMBER]),
        ("ITEM_ADDED_TO_OPEN_CONTENT_MODEL #/items/1",),
    ),
    Case(
        "an item comes to a closed list",
        a(items=[STRING], additionalItems=False),
        a(items=[STRING, NUMBER], additionalItems=False),
    ),
    Case(
        "an item leaves a closed list",
        a(items=[STRING, NUMBER], additionalItems=False),
        a(items=[STRING], additionalItems=False),
        ("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL #/items/1",),
    ),
    Case(
        "an item comes where others have its type",
        a(items=[STRING], additionalItems=NUMBER),
        a(items=[STRING, NUMBER], additionalItems=NUMBER),
    ),
    Case(
        "an item comes where others have another type",
        a(items=[NULL], additionalItems=STRING),
        a(items=[NULL, NUMBER], additionalItems=STRING),
        (
            "TYPE_CHANGED #/items/1",
            "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1",
        ),
    ),
    Case(
        "the list closes",
        a(items=[STRING]),
        a(items=[STRING], additionalItems=False),
        ("ADDITIONAL_ITEMS_REMOVED #/additionalItems",),
    ),
]

COMBINED = [
    Case("a type more", {"type": ["string"]}, {"type": ["string", "null"]}),
    Case("a type where there was one", STRING, {"type": ["string", "null"]}),
    Case(
        "a type less",
        {"type": ["string", "null"]},
        {"type": ["string", "boolean"]},
        ("COMBINED_TYPE_SUBSCHEMAS_CHANGED #/",),
    ),
    Case("an option more", {"oneOf": [STRING]}, {"oneOf": [STRING, NULL]}),
    Case(
        "an option less",
        {"oneOf": [STRING, NULL]},
        {"oneOf": [STRING]},
        ("SUM_TYPE_NARROWED #/",),
    ),
    Case("options in another order", {"oneOf": [STRING, NULL]}, {"oneOf": [NULL, STRING]}),
    Case("an option twice", {"anyOf": [STRING, STRING, NULL]}, {"anyOf": [STRING, NULL]}),
    Case("one of becomes any of", {"oneOf": [STRING, NULL]}, {"anyOf": [STRING, NULL]}),
    Case(
        "any of becomes one of",
        {"anyOf": [STRING, NULL]},
        {"oneOf": [STRING, NULL]},
        ("COMBINED_TYPE_CHANGED #/",),
    ),
    Case(
        "a condition less", {"allOf": [{"minimum": 1}, {"maximum": 3}]}, {"allOf": [{"minimum": 1}]}
    ),
    Case(
        "a condition more",
        {"allOf": [{"minimum": 1}]},
        {"allOf": [{"minimum": 1}, {"maximum": 3}]},
        ("PRODUCT_TYPE_EXTENDED #/",),
    ),
    Case("a single condition is no combination", {"allOf": [STRING]}, STRING),
    Case("one schema becomes an option", s(maxLength=3), {"oneOf": [NULL, STRING]}),
    Case("one schema is no option", STRING, {"oneOf": [NULL, NUMBER]}, ("TYPE_CHANGED #/",)),
    Case("a product narrows to a part", {"allOf": [STRING, {"minLength": 1}]}, STRING),
    Case(
        "two options cannot share one reader",
        {"oneOf": [s(maxLength=1), s(maxLength=2)]},
        {"oneOf": [s(maxLength=3), NUMBER]},
        ("COMBINED_TYPE_SUBSCHEMAS_CHANGED #/",),
    ),
]

MODERN = "https://json-schema.org/draft/2020-12/schema"

MODERN_ONLY = [
    Case(
        "what is not evaluated is refused",
        o({}),
        o({}, unevaluatedProperties=False),
        ("UNEVALUATED_PROPERTIES_REMOVED #/unevaluatedProperties",),
    ),
    Case("what is not evaluated is free again", o({}, unevaluatedProperties=False), o({})),
    Case(
        "what is not evaluated gets a schema",
        o({}),
        o({}, unevaluatedProperties=STRING),
        ("UNEVALUATED_PROPERTIES_NARROWED #/unevaluatedProperties",),
    ),
    Case(
        "a property comes where nothing else is evaluated",
        o({}, unevaluatedProperties=False),
        o({"a": STRING}, unevaluatedProperties=False),
    ),
    Case(
        "items that are not evaluated are refused",
        a(),
        a(unevaluatedItems=False),
        ("UNEVALUATED_ITEMS_REMOVED #/unevaluatedItems",),
    ),
    Case(
        "an item comes to an open list",
        a(prefixItems=[STRING]),
        a(prefixItems=[STRING, NUMBER]),
        ("ITEM_ADDED_TO_OPEN_CONTENT_MODEL #/items/1",),
    ),
    Case(
        "the list closes",
        a(prefixItems=[STRING]),
        a(prefixItems=[STRING], items=False),
        ("ADDITIONAL_ITEMS_REMOVED #/additionalItems",),
    ),
    Case(
        "more must be contained",
        a(contains=STRING, minContains=1),
        a(contains=STRING, minContains=2),
        ("MIN_CONTAINS_INCREASED #/minContains",),
    ),
    Case(
        "less may be contained",
        a(contains=STRING),
        a(contains=STRING, maxContains=2),
        ("MAX_CONTAINS_ADDED #/maxContains",),
    ),
    Case(
        "a name is needed with another",
        o({}),
        o({}, dependentRequired={"a": ["b"]}),
        ("DEPENDENCY_ARRAY_ADDED #/dependencies/a",),
    ),
    Case(
        "a reference keeps the keywords next to it",
        {"$defs": {"x": STRING}, "$ref": "#/$defs/x"},
        {"$defs": {"x": STRING}, "$ref": "#/$defs/x", "minimum": 3},
        ("TYPE_CHANGED #/",),
    ),
]

CASES = [*TYPES, *STRINGS, *NUMBERS, *VALUES, *OBJECTS, *ARRAYS, *COMBINED] + [
    Case(
        f"{case.name} (2020-12)", {"$schema": MODERN} | case.old, {"$schema": MODERN} | case.new
    )._replace(breaks=case.breaks)
    for case in MODERN_ONLY
]
