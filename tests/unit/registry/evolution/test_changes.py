"""Changes between schemas of all types, in words."""

from headrace.registry.evolution.changes import Change, ChangeKind
from headrace.registry.evolution.comparing import changes_between
from headrace.serdes.json_schema.parsing import parse as parse_json
from headrace.serdes.protobuf.parsing import parse as parse_protobuf
from tests.builders.avro_versions import V1


def test_json_changes_have_confluents_names_as_words() -> None:
    old = parse_json('{"type":"object","properties":{"a":{"type":"string","maxLength":3}}}')
    new = parse_json('{"type":"object","properties":{"a":{"type":"string","maxLength":5}}}')
    assert changes_between(old, new) == [
        Change(ChangeKind.CHANGED, "#/properties/a/maxLength", "max length increased")
    ]


def test_a_schema_of_another_type_is_one_change() -> None:
    old, new = V1, parse_protobuf('syntax = "proto3"; message A {}')
    assert changes_between(old, new) == [
        Change(ChangeKind.CHANGED, "type of schema", "AVRO -> PROTOBUF")
    ]


def test_a_schema_and_itself_do_not_differ() -> None:
    assert changes_between(V1, V1) == []
