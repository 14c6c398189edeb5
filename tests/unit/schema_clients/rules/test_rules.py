"""The rules of data contracts, through serializers of all three types."""

import datetime
import decimal
import json
from typing import Any

import pytest
from confluent_kafka.serialization import MessageField, SerializationContext

from headrace.schema_clients.rules.execution import Failure, RuleFailed
from headrace.schema_clients.rules.fields import FieldFacts, tags_by_path
from headrace.serdes import (
    AvroDeserializer,
    AvroSerializer,
    JsonSchemaDeserializer,
    JsonSchemaSerializer,
    NewSchema,
    ProtobufDeserializer,
    ProtobufSerializer,
)
from tests.builders.registries import RegistryInMemory

CONTEXT = SerializationContext("people", MessageField.VALUE)

AVRO = json.dumps(
    {
        "type": "record",
        "name": "Person",
        "namespace": "shop",
        "fields": [
            {"name": "name", "type": "string"},
            {"name": "ssn", "type": ["null", "string"], "confluent:tags": ["PII"]},
            {"name": "age", "type": "int"},
            {"name": "phones", "type": {"type": "array", "items": "string"}, "default": []},
        ],
    }
)
JSON = json.dumps(
    {
        "title": "Person",
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "ssn": {"type": "string", "confluent:tags": ["PII"]},
            "age": {"type": "integer"},
        },
    }
)
PROTOBUF = """
syntax = "proto3"; package shop;
import "confluent/meta.proto";
message Person {
  string name = 1;
  string ssn = 2 [(confluent.field_meta).tags = "PII"];
  int32 age = 3;
}
"""
ADA = {"name": "Ada", "ssn": "123-45", "age": 36}


def rule(type_: str, expression: str, **more: Any) -> dict[str, Any]:
    kind = {"name": "a rule", "kind": "CONDITION", "mode": "WRITE"}
    return {**kind, "type": type_, "expr": expression, **more}


def with_rules(*rules: dict[str, Any], text: str = AVRO, type_: str = "AVRO") -> NewSchema:
    return NewSchema(text, type_, rule_set={"domainRules": list(rules)})


def written(schema: NewSchema, value: Any = ADA, **options: Any) -> Any:
    """Return a value that was written under rules, as a reader without rules reads it."""
    registry = RegistryInMemory()
    payload = AvroSerializer(registry, schema, **options)(value, CONTEXT)
    return AvroDeserializer(registry, AVRO)(payload, CONTEXT)


def read(schema: NewSchema, value: Any = ADA, **options: Any) -> Any:
    """Return a value that was written and read under rules."""
    registry = RegistryInMemory()
    payload = AvroSerializer(registry, schema, **options)(value, CONTEXT)
    return AvroDeserializer(registry, **options)(payload, CONTEXT)


def test_a_value_that_meets_a_condition_passes() -> None:
    schema = with_rules(rule("CEL", "message.age >= 18 && message.name.startsWith('A')"))
    assert written(schema)["name"] == "Ada"


def test_a_value_that_does_not_is_refused_by_the_rules_name() -> None:
    schema = with_rules(rule("CEL", "message.age >= 65"))
    with pytest.raises(RuleFailed, match=r"rule a rule: .* not meet message\.age >= 65"):
        written(schema)


def test_a_guard_selects_the_values_of_a_rule() -> None:
    schema = with_rules(rule("CEL", "message.name == 'Bob' ; message.age >= 65"))
    assert written(schema)["age"] == 36


def test_a_condition_on_fields_names_the_field() -> None:
    schema = with_rules(rule("CEL_FIELD", "typeName == 'STRING' ; size(value) < 5"))
    with pytest.raises(RuleFailed, match=r"the field shop\.Person\.ssn does not meet"):
        written(schema)


def test_fields_with_a_tag_are_changed() -> None:
    mask = rule("CEL_FIELD", "'***'", kind="TRANSFORM", tags=["PII"])
    assert written(with_rules(mask)) == {**ADA, "ssn": "***", "phones": []}


def test_metadata_may_give_fields_their_tags() -> None:
    mask = rule("CEL_FIELD", "'***'", kind="TRANSFORM", tags=["SECRET"])
    metadata = {"tags": {"**.name": ["SECRET"]}}
    schema = NewSchema(AVRO, metadata=metadata, rule_set={"domainRules": [mask]})
    assert written(schema)["name"] == "***"


def test_rules_for_writing_are_not_applied_when_reading() -> None:
    add = rule("CEL_FIELD", "name == 'name' ; value + '!'", kind="TRANSFORM")
    assert read(with_rules(add))["name"] == "Ada!"


def test_rules_for_both_ways_go_back_in_the_reverse_order() -> None:
    first = rule("PYTHON_FIELD", "first", kind="TRANSFORM", mode="WRITEREAD", name="1")
    second = rule("PYTHON_FIELD", "second", kind="TRANSFORM", mode="WRITEREAD", name="2")
    functions = {
        "first": lambda value, field: f"{value}1" if field.name == "name" else value,
        "second": lambda value, field: f"{value}2" if field.name == "name" else value,
    }
    assert read(with_rules(first, second), functions=functions)["name"] == "Ada1221"


def test_a_python_function_changes_the_whole_value() -> None:
    schema = with_rules(rule("PYTHON", "older", kind="TRANSFORM"))
    changed = written(schema, functions={"older": lambda value: value | {"age": 37}})
    assert changed["age"] == 37


def test_a_missing_function_is_an_error() -> None:
    with pytest.raises(RuleFailed, match=r"needs the function older.*given: younger"):
        written(with_rules(rule("PYTHON", "older")), functions={"younger": lambda value: True})


def test_text_from_a_registry_is_never_run_as_python() -> None:
    schema = with_rules(rule("PYTHON", "__import__('os').getpid() > 0"))
    with pytest.raises(RuleFailed, match="which is missing in functions"):
        written(schema)


@pytest.mark.parametrize("expression", ["message.age >", "message.nothing > 1"])
def test_an_expression_that_makes_no_sense_fails(expression: str) -> None:
    with pytest.raises(RuleFailed, match="failed: "):
        written(with_rules(rule("CEL", expression)))


def test_an_unknown_type_of_rules_fails() -> None:
    with pytest.raises(RuleFailed, match="unknown type ENCRYPT"):
        written(with_rules(rule("ENCRYPT", "")))


def test_a_disabled_rule_is_not_applied() -> None:
    assert written(with_rules(rule("CEL", "false", disabled=True)))["name"] == "Ada"


def test_a_failure_may_be_let_pass() -> None:
    assert written(with_rules(rule("CEL", "false", onFailure="NONE")))["name"] == "Ada"


def test_each_way_may_have_its_own_action() -> None:
    schema = with_rules(rule("CEL", "false", mode="WRITEREAD", onFailure="NONE,ERROR"))
    registry = RegistryInMemory()
    payload = AvroSerializer(registry, schema)(ADA, CONTEXT)
    with pytest.raises(RuleFailed):
        AvroDeserializer(registry)(payload, CONTEXT)


def test_an_action_receives_the_value_before_it_is_rejected() -> None:
    letters: list[Failure] = []
    schema = with_rules(rule("CEL", "false", onFailure="DLQ"))
    with pytest.raises(RuleFailed):
        written(schema, actions={"DLQ": letters.append})
    assert [(letter.rule.name, letter.value) for letter in letters] == [("a rule", ADA)]


def test_cel_supports_dates_and_decimals() -> None:
    decimal_type = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    fields = [
        {"name": "born", "type": {"type": "int", "logicalType": "date"}},
        {"name": "height", "type": decimal_type},
    ]
    text = json.dumps({"type": "record", "name": "Person", "fields": fields})
    older = "message.born < timestamp('1900-01-01T00:00:00Z') && message.height > 1.5"
    value = {"born": datetime.date(1815, 12, 10), "height": decimal.Decimal("1.65")}
    schema = with_rules(rule("CEL", older), text=text)
    assert AvroSerializer(RegistryInMemory(), schema)(value, CONTEXT) is not None


@pytest.mark.parametrize(
    ("serializer", "deserializer", "schema"),
    [
        (AvroSerializer, AvroDeserializer, (AVRO, "AVRO")),
        (JsonSchemaSerializer, JsonSchemaDeserializer, (JSON, "JSON")),
        (ProtobufSerializer, ProtobufDeserializer, (PROTOBUF, "PROTOBUF")),
    ],
)
def test_every_type_of_schemas_has_conditions_and_tagged_fields(
    serializer: Any, deserializer: Any, schema: tuple[str, str]
) -> None:
    adult = rule("CEL", "message.age >= 18", name="adult")
    mask = rule("CEL_FIELD", "'***'", kind="TRANSFORM", tags=["PII"], name="mask")
    text, type_ = schema
    registry = RegistryInMemory()
    write = serializer(registry, with_rules(adult, mask, text=text, type_=type_))
    found = deserializer(registry)(write(ADA, CONTEXT), CONTEXT)
    ssn = found["ssn"] if isinstance(found, dict) else found.ssn
    assert ssn == "***"
    with pytest.raises(RuleFailed, match="rule adult"):
        write({**ADA, "age": 7}, CONTEXT)


TIMED = """
syntax = "proto3";
import "google/protobuf/duration.proto";
import "google/protobuf/timestamp.proto";
message Parcel {
  int64 weight = 1;
  google.protobuf.Timestamp sent = 2;
  google.protobuf.Duration took = 3;
  bytes seal = 4;
}
"""
PARCEL = {"weight": 1 << 40, "sent": "2026-01-02T00:00:00Z", "took": "90s", "seal": "AP8="}


@pytest.mark.parametrize(
    "expression",
    [
        "message.weight > 1000",
        "message.sent > timestamp('2026-01-01T00:00:00Z')",
        "message.took < duration('2m')",
        "message.seal == b'\\x00\\xff'",
    ],
)
def test_numbers_bytes_and_times_of_messages_can_be_compared(expression: str) -> None:
    schema = with_rules(rule("CEL", expression), text=TIMED, type_="PROTOBUF")
    assert ProtobufSerializer(RegistryInMemory(), schema)(PARCEL, CONTEXT) is not None


def test_a_rule_may_make_numbers_and_times_of_a_message() -> None:
    later = (
        "{'weight': message.weight * 2, 'sent': message.sent + message.took, 'took': message.took}"
    )
    schema = with_rules(rule("CEL", later, kind="TRANSFORM"), text=TIMED, type_="PROTOBUF")
    registry = RegistryInMemory()
    payload = ProtobufSerializer(registry, schema)(PARCEL, CONTEXT)
    found = ProtobufDeserializer(registry)(payload, CONTEXT)
    assert (found.weight, found.took.seconds) == (1 << 41, 90)
    assert found.sent.ToJsonString() == "2026-01-02T00:01:30Z"


def test_functions_receive_the_facts_of_fields() -> None:
    seen: list[FieldFacts] = []

    def look(value: Any, field: FieldFacts) -> Any:
        seen.append(field)
        return value

    written(with_rules(rule("PYTHON_FIELD", "look", kind="TRANSFORM")), functions={"look": look})
    assert FieldFacts("shop.Person.ssn", "ssn", "STRING", frozenset({"PII"})) in seen
    assert FieldFacts("shop.Person.age", "age", "INT") in seen


@pytest.mark.parametrize(
    ("path", "fits"),
    [
        ("shop.Person.ssn", True),
        ("**.ssn", True),
        ("*.ssn", False),
        ("shop.*.ssn", True),
        ("shop.**", True),
        ("**", True),
        ("shop.Person", False),
    ],
)
def test_paths_of_tags_may_have_stars(path: str, fits: bool) -> None:
    assert (tags_by_path({path: ["T"]}, "shop.Person.ssn") == {"T"}) == fits
