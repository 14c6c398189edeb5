"""JSON Schemas parsed: drafts, places of errors, references, and stored texts."""

import pytest

from headrace.serdes.json_schema.drafts import Draft
from headrace.serdes.json_schema.parsing import JsonSchema, parse
from headrace.serdes.schemas import Dependency, InvalidSchema, ParsedSchema, SchemaType


def accepts(schema: JsonSchema, value: object) -> bool:
    return schema.validator.is_valid(value)


@pytest.mark.parametrize(
    ("url", "draft"),
    [
        ("http://json-schema.org/draft-04/schema#", Draft.DRAFT_4),
        ("http://json-schema.org/draft-06/schema#", Draft.DRAFT_6),
        ("https://json-schema.org/draft-07/schema", Draft.DRAFT_7),
        ("https://json-schema.org/draft/2019-09/schema", Draft.DRAFT_2019_09),
        ("http://json-schema.org/draft/2020-12/schema#", Draft.DRAFT_2020_12),
        ("http://nobody.example/schema", Draft.DRAFT_7),
    ],
)
def test_a_schema_is_read_by_the_draft_that_it_names(url: str, draft: Draft) -> None:
    """SCH-13"""
    assert parse(f'{{"$schema":"{url}"}}').draft is draft


def test_a_schema_that_names_no_draft_is_of_draft_7() -> None:
    assert parse("{}").draft is Draft.DRAFT_7


def test_a_schema_has_its_type() -> None:
    schema: ParsedSchema = parse("true")
    assert schema.type is SchemaType.JSON


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{", "is not JSON"),
        ("[]", "an object or a boolean, not list"),
        ('{"type": "strin"}', 'at #/type: "strin" is not a type; the types are array, boolean'),
        ('{"properties": {"a/b": {"minLength": "x"}}}', "at #/properties/a~1b/minLength: "),
        ('{"required": true}', 'at #/required: true is not of type "array"'),
        ('{"pattern": "["}', 'at #/pattern: "[" is not a "regex"'),
        (
            '{"$ref": "#/definitions/a"}',
            "at #/$ref is invalid: '#/definitions/a' does not exist: no",
        ),
        ('{"$ref": "#/title", "title": "a"}', "does not lead to a schema"),
        ('{"items": {"$ref": "b.json"}}', "at #/items/$ref is invalid: 'b.json' is unknown"),
        ('{"$ref": "#a"}', "names the anchor 'a', which does not exist"),
        (
            '{"$schema": "http://json-schema.org/draft-04/schema#", "id": "http://["}',
            "is not an address",
        ),
    ],
)
def test_an_error_has_its_place(text: str, fault: str) -> None:
    with pytest.raises(InvalidSchema) as caught:
        parse(text)
    assert fault in str(caught.value)


def test_a_schema_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(InvalidSchema, match="levels deep"):
        parse('{"not":' * 101 + "{}" + "}" * 101)


def test_a_schema_with_hostile_nesting_is_refused() -> None:
    with pytest.raises(InvalidSchema, match="levels deep"):
        parse("[" * 100_000 + "]" * 100_000)


def test_a_schema_that_is_too_long_is_refused() -> None:
    with pytest.raises(InvalidSchema, match="characters"):
        parse('{"title": "' + "x" * (1 << 20) + '"}')


def test_nothing_is_fetched_from_a_network() -> None:
    with pytest.raises(InvalidSchema, match="Register that schema"):
        parse('{"$ref": "http://127.0.0.1:9/schema.json"}')


def test_an_unknown_reference_is_reported_with_the_existing_ones() -> None:
    with pytest.raises(InvalidSchema, match=r"The references of the schema are: a\.json"):
        parse('{"$ref": "b.json"}', [Dependency("a.json", "{}")])


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("street.json", "street.json"),
        ("./street.json", "street.json"),
        ("street.json", "./street.json"),
        ("com.acme.Street", "com.acme.Street"),
        ("http://acme.example/street.json", "http://acme.example/street.json"),
        ("urn:acme:street", "urn:acme:street"),
    ],
)
@pytest.mark.parametrize("address", ["", '"$id": "http://acme.example/root.json", '])
def test_a_dependency_is_found_by_its_name(reference: str, name: str, address: str) -> None:
    text = f'{{{address}"properties": {{"a": {{"$ref": "{reference}"}}}}}}'
    schema = parse(text, [Dependency(name, '{"type": "string"}')])
    assert not accepts(schema, {"a": 1})


def test_a_dependency_is_found_by_its_own_address() -> None:
    dependency = Dependency("any name", '{"$id": "urn:acme:street", "type": "string"}')
    schema = parse('{"allOf": [{"$ref": "urn:acme:street"}]}', [dependency])
    assert not accepts(schema, 1)


def test_a_dependency_may_depend_on_another() -> None:
    dependencies = [
        Dependency("zip.json", '{"definitions": {"zip": {"type": "string"}}}'),
        Dependency("street.json", '{"properties": {"zip": {"$ref": "zip.json#/definitions/zip"}}}'),
    ]
    schema = parse('{"$ref": "street.json"}', dependencies)
    assert not accepts(schema, {"zip": 1})


def test_an_error_of_a_dependency_has_its_name() -> None:
    with pytest.raises(InvalidSchema, match=r"The reference 'b\.json': .* at #/type"):
        parse("{}", [Dependency("b.json", '{"type": 1}')])


def test_definitions_are_found_under_their_modern_name() -> None:
    schema = parse('{"$ref": "#/$defs/a", "definitions": {"a": {"type": "string"}}}')
    assert not accepts(schema, 1)


def test_an_anchor_is_found() -> None:
    schema = parse(
        '{"$schema": "https://json-schema.org/draft/2020-12/schema", "$ref": "#here",'
        ' "$defs": {"a": {"$anchor": "here", "type": "string"}}}'
    )
    assert not accepts(schema, 1)


def test_a_recursive_schema_is_read() -> None:
    schema = parse('{"properties": {"next": {"$ref": "#"}}, "required": ["next"]}')
    assert not accepts(schema, {"next": {}})


def test_a_reference_among_data_is_no_reference() -> None:
    text = '{"default": {"$ref": "x"}, "enum": [{"$ref": "y"}], "properties": {"$ref": {}}}'
    assert accepts(parse(text), {"$ref": "y"})


def test_the_stored_text_keeps_order_and_digits() -> None:
    text = '{ "b": 1.50, "a": 1e5, "é": 123456789012345678901234567890, "type": "object" }'
    assert parse(text).canonical() == (
        '{"b":1.50,"a":1E+5,"é":123456789012345678901234567890,"type":"object"}'
    )


def test_the_normalized_text_has_sorted_keys_at_every_level() -> None:
    text = '{"type": ["string", "null"], "not": {"b": 1, "a": 2}}'
    assert parse(text).normalized() == '{"not":{"a":2,"b":1},"type":["string","null"]}'


def test_an_unknown_format_is_the_stored_text() -> None:
    assert parse('{"a": 1}').formatted("resolved") == '{"a":1}'
