"""Values written as JSON and read again, validated by their schema."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from uuid import UUID

import pydantic
import pytest

from headrace.serdes.json_schema.codec import FAULTS_MAX, decode, encode, validate
from headrace.serdes.json_schema.parsing import parse
from headrace.serdes.payload_errors import CorruptPayload, UnfitValue

ORDER = parse('{"properties": {"id": {"type": "integer"}}, "required": ["id"]}')


@dataclass
class Order:
    id: int
    day: date


class Model(pydantic.BaseModel):
    id: int = pydantic.Field(serialization_alias="key")


def test_a_value_is_read_as_it_was_written() -> None:
    value = {"id": 1, "name": "ada", "tags": ["a", None, 1.5]}
    assert decode(ORDER, encode(ORDER, value)) == value


def test_a_dataclass_is_written_by_its_fields() -> None:
    assert encode(ORDER, Order(1, date(2026, 1, 2))) == b'{"id":1,"day":"2026-01-02"}'


def test_a_model_is_written_by_its_aliases() -> None:
    assert encode(parse("{}"), Model(id=1)) == b'{"key":1}'


def test_a_decimal_is_written_with_all_its_digits() -> None:
    assert encode(parse('{"type": "string"}'), Decimal("1.10")) == b'"1.10"'


def test_validation_checks_the_written_value() -> None:
    with pytest.raises(UnfitValue, match="is not of type"):
        encode(parse('{"type": "number"}'), Decimal("1.10"))


def test_a_uuid_is_a_string() -> None:
    assert encode(parse('{"type": "string", "format": "uuid"}'), UUID(int=1))


def test_an_invalid_value_is_not_written() -> None:
    with pytest.raises(UnfitValue, match=r'at #/id: "x" is not of type "integer"'):
        encode(ORDER, {"id": "x"})


def test_an_invalid_value_is_not_read() -> None:
    with pytest.raises(CorruptPayload, match='#: "id" is a required property'):
        decode(ORDER, b"{}")


def test_a_check_may_be_left_out() -> None:
    assert decode(ORDER, encode(ORDER, {}, validated=False), validated=False) == {}


def test_many_faults_are_counted() -> None:
    with pytest.raises(UnfitValue, match="and at 2 more places"):
        encode(parse('{"items": {"type": "string"}}'), [1, 2, 3, 4, 5])


def test_a_value_without_a_json_form_is_refused() -> None:
    with pytest.raises(UnfitValue, match="object cannot be written as JSON"):
        encode(ORDER, {"id": object()})


def test_bytes_that_are_not_json_are_refused() -> None:
    with pytest.raises(CorruptPayload, match="is not JSON"):
        decode(ORDER, b"\x00\x01")


def test_a_valid_value_has_no_faults() -> None:
    assert validate(parse('{"type": "integer"}'), 3) == []


def test_every_fault_has_its_place() -> None:
    schema = parse('{"properties": {"a/b": {"items": {"type": "string"}}}, "required": ["c"]}')
    faults = {str(fault) for fault in validate(schema, {"a/b": ["x", 1]})}
    assert faults == {'#: "c" is a required property', '#/a~1b/1: 1 is not of type "string"'}


def test_a_long_list_of_faults_is_cut() -> None:
    schema = parse('{"items": {"type": "string"}}')
    assert len(validate(schema, [1] * (FAULTS_MAX + 1))) == FAULTS_MAX
