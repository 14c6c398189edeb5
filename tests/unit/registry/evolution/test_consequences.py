"""Levels that a change satisfies, and advice about the others."""

from headrace.registry.compatibility.levels import Level
from headrace.registry.evolution.consequences import Break, consequences_of, kept_levels
from headrace.serdes.protobuf.parsing import parse as parse_protobuf
from tests.builders.avro_versions import ID, NOTE, V1, WITH_EMAIL, WITH_NOTE, order


def names(breaks: tuple[Break, ...]) -> list[str]:
    return [found.name for found in breaks]


def test_a_new_field_without_a_default_breaks_new_readers_only() -> None:
    """SCH-7"""
    found = consequences_of(V1, WITH_EMAIL)
    assert names(found.backward) == ["READER_FIELD_MISSING_DEFAULT_VALUE"]
    assert found.forward == ()


def test_each_break_has_advice() -> None:
    """SCH-8"""
    (found,) = consequences_of(V1, WITH_EMAIL).backward
    assert found.text.startswith("The field 'email' at path '/fields/1' in the new schema has no")
    assert found.advice.startswith("give the new field a default")


def test_the_advice_depends_on_the_direction() -> None:
    """SCH-8"""
    (found,) = consequences_of(WITH_EMAIL, V1).forward
    assert found.advice.startswith("keep the field, or release it in two steps")


def test_levels_that_a_change_keeps_are_listed() -> None:
    """SCH-8, SCH-12"""
    assert kept_levels(WITH_EMAIL, [V1]) == [
        Level.NONE,
        Level.FORWARD,
        Level.FORWARD_TRANSITIVE,
    ]


def test_older_versions_count_for_transitive_levels_only() -> None:
    """SCH-12"""
    renamed = order(ID, {**NOTE, "name": "email", "default": None})
    kept = kept_levels(order(ID, {"name": "note", "type": "string"}), [V1, WITH_NOTE, renamed])
    assert Level.FORWARD in kept
    assert Level.FORWARD_TRANSITIVE in kept
    assert Level.BACKWARD not in kept


def test_another_type_of_schema_breaks_all_readers() -> None:
    found = consequences_of(V1, parse_protobuf('syntax = "proto3"; message A {}'))
    assert names(found.backward) == names(found.forward) == ["TYPE_CHANGED"]


def test_protobuf_has_consequences_too() -> None:
    old = parse_protobuf('syntax = "proto3"; message A { string a = 1; }')
    new = parse_protobuf('syntax = "proto3"; message A { int64 a = 1; }')
    assert names(consequences_of(old, new).backward) == ["FIELD_SCALAR_KIND_CHANGED"]
