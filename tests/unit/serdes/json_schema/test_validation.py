"""Faults of values, by place."""

from headrace.serdes.json_schema.parsing import parse
from headrace.serdes.json_schema.validation import FAULTS_MAX, validate


def test_a_valid_value_has_no_faults() -> None:
    assert validate(parse('{"type": "integer"}'), 3) == []


def test_every_fault_is_told_with_its_place() -> None:
    schema = parse('{"properties": {"a/b": {"items": {"type": "string"}}}, "required": ["c"]}')
    faults = {str(fault) for fault in validate(schema, {"a/b": ["x", 1]})}
    assert faults == {'#: "c" is a required property', '#/a~1b/1: 1 is not of type "string"'}


def test_a_long_list_of_faults_is_cut() -> None:
    schema = parse('{"items": {"type": "string"}}')
    assert len(validate(schema, [1] * (FAULTS_MAX + 1))) == FAULTS_MAX
