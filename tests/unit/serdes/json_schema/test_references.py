"""References are joined with the address of their schema."""

import pytest

from headrace.serdes.json_schema.references import Documents, join


@pytest.mark.parametrize(
    ("base", "reference", "address"),
    [
        ("json-schema:///", "a.json", "json-schema:///a.json"),
        ("json-schema:///", "#/a", "json-schema:///#/a"),
        ("json-schema:///x/y.json", "../a.json#/b", "json-schema:///a.json#/b"),
        ("http://acme.example/x/root", "./a#b", "http://acme.example/x/a#b"),
        ("mem://none/a", "b", "mem://none/b"),
        ("http://acme.example/", "urn:a:b", "urn:a:b"),
        ("urn:a:b#c", "#d", "urn:a:b#d"),
        ("urn:a:b", "c.json", "c.json"),
    ],
)
def test_a_reference_starts_from_its_base(base: str, reference: str, address: str) -> None:
    assert join(base, reference) == address


def test_an_inner_id_is_the_base_of_its_references() -> None:
    inner = {"$id": "http://acme.example/inner/", "items": {"$ref": "a.json"}}
    target = {"$id": "http://acme.example/inner/a.json", "type": "string"}
    documents = Documents.of({"properties": {"x": inner, "y": target}}, {})
    place = documents.resolve("a.json", "http://acme.example/inner/")
    assert place.schema is target


def test_older_drafts_ignore_an_address_beside_a_reference() -> None:
    documents = Documents.of({"$id": "http://acme.example/", "$ref": "#/definitions/a"}, {})
    assert documents.root.base == "json-schema:///"


def test_a_step_through_a_list_is_a_number() -> None:
    documents = Documents.of({"anyOf": [True, {"title": "second"}]}, {})
    assert documents.resolve("#/anyOf/1", documents.root.base).schema == {"title": "second"}


def test_a_pointer_may_be_escaped() -> None:
    documents = Documents.of({"definitions": {"a/b c~": {"title": "here"}}}, {})
    place = documents.resolve("#/definitions/a~1b%20c~0", documents.root.base)
    assert place.schema == {"title": "here"}
