"""Schemas named by arguments of `headrace schema`."""

from pathlib import Path

import click
import pytest

from headrace.cli.schema_sources import (
    NoSchema,
    Place,
    Schemas,
    parse_reference,
    place_of,
    schemas_of,
    type_of,
)
from headrace.schema_clients.registry_client import Reference, RegistryClient
from headrace.serdes.schemas import SchemaType


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("orders-value", Place(subject="orders-value")),
        ("orders-value:3", Place(subject="orders-value", version="3")),
        ("orders-value:latest", Place(subject="orders-value", version="latest")),
        (":.shop:orders-value:3", Place(subject=":.shop:orders-value", version="3")),
        (":.shop:orders-value", Place(subject=":.shop:orders-value")),
        ("com.shop.Order", Place(subject="com.shop.Order")),
        ("id:7", Place(id=7)),
        ("orders.avsc", Place(path=Path("orders.avsc"))),
        ("models/orders.proto", Place(path=Path("models/orders.proto"))),
    ],
)
def test_a_schema_is_a_file_a_subject_a_version_or_an_id(text: str, place: Place) -> None:
    assert place_of(text) == place


def test_an_existing_file_is_used_as_a_file(tmp_path: Path) -> None:
    path = tmp_path / "orders"
    path.write_text('"string"')
    assert place_of(str(path)) == Place(path=path)


def test_a_reference_has_a_name_a_subject_and_a_version() -> None:
    assert parse_reference("a.proto=:.c:a:2") == Reference("a.proto", ":.c:a", 2)
    with pytest.raises(click.BadParameter, match="NAME=SUBJECT:VERSION"):
        parse_reference("a.proto=a")


def test_the_file_extension_gives_the_type_unless_an_option_does() -> None:
    assert type_of(Path("a.proto"), None) is SchemaType.PROTOBUF
    assert type_of(Path("a.json"), "avro") is SchemaType.AVRO
    with pytest.raises(NoSchema, match="--type"):
        type_of(Path("a.txt"), None)


def test_rules_and_metadata_come_from_files(tmp_path: Path) -> None:
    """SCH-11"""
    text = tmp_path / "a.avsc"
    text.write_text('"string"')
    rules = tmp_path / "rules.json"
    rules.write_text('{"ruleSet": {"domainRules": [{"name": "r", "type": "CEL"}]}}')
    metadata = tmp_path / "metadata.json"
    metadata.write_text('{"properties": {"owner": "shop"}}')
    found = Schemas(no_registry).new(text, metadata, rules)
    assert found.metadata == {"properties": {"owner": "shop"}}
    assert found.rule_set == {"domainRules": [{"name": "r", "type": "CEL"}]}


@pytest.mark.parametrize("text", ["no json", "[]", '{"domainRules": 3}'])
def test_an_invalid_rule_set_is_rejected_with_its_file(tmp_path: Path, text: str) -> None:
    rules = tmp_path / "rules.json"
    rules.write_text(text)
    schema = tmp_path / "a.avsc"
    schema.write_text('"string"')
    with pytest.raises(NoSchema, match=r"rules\.json is not valid ruleSet"):
        Schemas(no_registry).new(schema, rules=rules)


def no_registry() -> RegistryClient:
    raise AssertionError("no registry is needed")


def test_a_registry_is_connected_only_if_needed(tmp_path: Path) -> None:
    path = tmp_path / "a.avsc"
    path.write_text('"string"')
    found = Schemas(no_registry).found(str(path))
    assert found.parsed().canonical() == '"string"'


def test_a_login_is_never_shown() -> None:
    with click.Context(click.Command("schema")):
        client = schemas_of("http://me:secret@127.0.0.1:1", "", "", None).client
    assert "secret" not in repr(client)
