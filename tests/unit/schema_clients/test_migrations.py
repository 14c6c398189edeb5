"""Values are migrated to another version by the rules in between."""

from collections.abc import Callable
from typing import Any

import pytest

from headrace.schema_clients.rules.execution import RuleFailed
from headrace.serdes import (
    AvroDeserializer,
    AvroSerializer,
    JsonSchemaDeserializer,
    JsonSchemaSerializer,
    NewSchema,
    ProtobufDeserializer,
    ProtobufSerializer,
)
from headrace.serdes.payload_errors import UnfitValue
from tests.builders.avro_versions import order_text
from tests.builders.registries import RegistryInMemory

TOPIC = "people"
SUBJECT = "people-value"


def text(name: str) -> dict[str, Any]:
    return {"name": name, "type": "string"}


def rule(mode: str, expr: str, **given: Any) -> dict[str, Any]:
    return {
        "name": f"to_{mode}",
        "kind": "TRANSFORM",
        "type": "CEL",
        "mode": mode,
        "expr": expr,
    } | given


def version(number: int, schema: str, *rules: dict[str, Any], type: str = "AVRO") -> NewSchema:
    metadata = {"properties": {"major": str(number)}}
    return NewSchema(schema, type, (), metadata, {"migrationRules": list(rules)})


V1 = version(1, order_text(text("full")))
V2 = version(
    2,
    order_text(text("name")),
    rule("UPGRADE", "{'name': message.full}"),
    rule("DOWNGRADE", "{'full': message.name}"),
)
V3 = version(
    3,
    order_text(text("name"), {**text("lang"), "default": "en"}),
    rule("UPGRADE", "{'name': message.name + '!'}"),
)


@pytest.fixture
def registry() -> RegistryInMemory:
    registry = RegistryInMemory()
    for schema in (V1, V2, V3):
        registry.register(SUBJECT, schema)
    return registry


def payload(registry: RegistryInMemory, schema: NewSchema, value: Any) -> bytes:
    written = AvroSerializer(registry, schema).of_values(TOPIC, value)
    assert written is not None
    return written


def test_an_old_value_goes_through_every_version_up_to_the_newest(
    registry: RegistryInMemory,
) -> None:
    """SCH-11: fields that the rules omit have their defaults."""
    old = payload(registry, V1, {"full": "Ada"})
    reader = AvroDeserializer(registry, reads_latest=True)
    assert reader.of_values(TOPIC, old) == {"name": "Ada!", "lang": "en"}


def test_a_value_between_goes_through_the_rest_only(registry: RegistryInMemory) -> None:
    value = payload(registry, V2, {"name": "Ada"})
    reader = AvroDeserializer(registry, reads_latest=True)
    assert reader.of_values(TOPIC, value) == {"name": "Ada!", "lang": "en"}


def test_a_value_of_the_newest_version_stays_as_it_is(registry: RegistryInMemory) -> None:
    value = payload(registry, V3, {"name": "Ada", "lang": "de"})
    reader = AvroDeserializer(registry, reads_latest=True)
    assert reader.of_values(TOPIC, value) == {"name": "Ada", "lang": "de"}


def test_a_new_value_is_downgraded_for_an_old_reader(registry: RegistryInMemory) -> None:
    def cut(message: Any) -> Any:
        return {"name": message["name"].removesuffix("!")}

    schema = version(4, V3.schema + " ", rule("DOWNGRADE", "cut", type="PYTHON"))
    registry.register("other-value", V1)
    registry.register("other-value", V2)
    registry.register("other-value", schema)
    new = AvroSerializer(registry, schema).of_values("other", {"name": "Ada!", "lang": "en"})
    reader = AvroDeserializer(registry, latest_with={"major": "1"}, functions={"cut": cut})
    assert reader.of_values("other", new) == {"full": "Ada"}


def test_a_migration_path_is_looked_up_once(registry: RegistryInMemory) -> None:
    old = payload(registry, V1, {"full": "Ada"})
    reader = AvroDeserializer(registry, reads_latest=True)
    reader.of_values(TOPIC, old)
    asked = registry.asked
    reader.of_values(TOPIC, old)
    assert registry.asked == asked + 1  # The newest version, which the real client keeps.


def test_without_rules_a_value_is_projected(registry: RegistryInMemory) -> None:
    """SCH-10"""
    plain = NewSchema(order_text(text("name")))
    wider = NewSchema(order_text(text("name"), {**text("lang"), "default": "en"}))
    registry.register("plain-value", plain)
    registry.register("plain-value", wider)
    value = AvroSerializer(registry, plain).of_values("plain", {"name": "Ada"})
    reader = AvroDeserializer(registry, reads_latest=True)
    assert reader.of_values("plain", value) == {"name": "Ada", "lang": "en"}


def test_results_of_rules_must_fit_the_readers_schema(registry: RegistryInMemory) -> None:
    registry.register(SUBJECT, version(4, order_text(text("a")), rule("UPGRADE", "{'b': 'c'}")))
    old = payload(registry, V1, {"full": "Ada"})
    with pytest.raises(UnfitValue, match="a"):
        AvroDeserializer(registry, reads_latest=True).of_values(TOPIC, old)


def test_a_rule_that_fails_is_named(registry: RegistryInMemory) -> None:
    registry.register(
        SUBJECT, version(4, order_text(text("a")), rule("UPGRADE", "message.nothing"))
    )
    old = payload(registry, V1, {"full": "Ada"})
    with pytest.raises(RuleFailed, match="to_UPGRADE"):
        AvroDeserializer(registry, reads_latest=True).of_values(TOPIC, old)


def test_migration_rules_see_no_single_fields(registry: RegistryInMemory) -> None:
    by_field = rule("UPGRADE", "value", type="CEL_FIELD")
    registry.register(SUBJECT, version(4, order_text(text("a")), by_field))
    old = payload(registry, V1, {"full": "Ada"})
    with pytest.raises(RuleFailed, match="whole values"):
        AvroDeserializer(registry, reads_latest=True).of_values(TOPIC, old)


def test_a_disabled_migration_rule_is_skipped(registry: RegistryInMemory) -> None:
    idle = rule("UPGRADE", "message.nothing", disabled=True)
    registry.register(SUBJECT, version(4, order_text({**text("a"), "default": "x"}), idle))
    newest = payload(registry, V3, {"name": "Ada", "lang": "en"})
    assert AvroDeserializer(registry, reads_latest=True).of_values(TOPIC, newest) == {"a": "x"}


def json_people(name: str) -> str:
    properties = f'{{"{name}": {{"type": "string"}}}}'
    return f'{{"type": "object", "properties": {properties}, "required": ["{name}"]}}'


def proto_people(name: str) -> str:
    return f'syntax = "proto3"; message Person {{ string {name} = 1; }}'


@pytest.mark.parametrize(
    ("type", "schema", "serializer", "deserializer"),
    [
        ("JSON", json_people, JsonSchemaSerializer, JsonSchemaDeserializer),
        ("PROTOBUF", proto_people, ProtobufSerializer, ProtobufDeserializer),
    ],
)
def test_every_type_of_schemas_has_migrations(
    type: str, schema: Callable[[str], str], serializer: Any, deserializer: Any
) -> None:
    """SCH-13"""
    registry = RegistryInMemory()
    old = version(1, schema("full"), type=type)
    registry.register(SUBJECT, old)
    registry.register(
        SUBJECT, version(2, schema("name"), rule("UPDOWN", "{'name': message.full}"), type=type)
    )
    written = serializer(registry, old).of_values(TOPIC, {"full": "Ada"})
    value = deserializer(registry, reads_latest=True).of_values(TOPIC, written)
    assert (value if isinstance(value, dict) else {"name": value.name}) == {"name": "Ada"}
