"""Which versions a new schema is held against."""

import pytest

from headrace.registry.compatibility.levels import Level
from headrace.registry.compatibility.messages import messages_of
from headrace.registry.deciding.candidates import Candidate, parsed_of
from headrace.registry.deciding.checking import conflict
from headrace.registry.model.records import ConfigValue
from headrace.serdes.contracts import CONFLUENT_RESERVED, Metadata
from headrace.serdes.schemas import SchemaType
from tests.processes.registries import STRING, USER, USER_WITH_EMAIL, Shelf

NONE = ConfigValue(compatibility_level=Level.NONE)


@pytest.fixture
def shelf() -> Shelf:
    """A user, then something else entirely."""
    shelf = Shelf()
    shelf.state.default_config = NONE
    shelf.register("a", USER, metadata=Metadata(properties={"major": "1"}))
    shelf.register("a", STRING, metadata=Metadata(properties={"major": "2"}))
    return shelf


def broken_by(shelf: Shelf, config: ConfigValue, text: str, major: str = "1") -> list[str]:
    metadata = Metadata(properties={"major": major})
    candidate = Candidate(subject="a", text=text, metadata=metadata)
    parsed = parsed_of(shelf.state, candidate, is_new=True)
    previous = shelf.state.versions("a")
    return messages_of(conflict(shelf.state, config, candidate, parsed, previous))


def test_without_a_level_nothing_is_compared(shelf: Shelf) -> None:
    assert broken_by(shelf, NONE, '"int"') == []


def test_the_last_version_counts(shelf: Shelf) -> None:
    """SCH-12."""
    level = ConfigValue(compatibility_level=Level.BACKWARD)
    assert broken_by(shelf, level, STRING) == []
    assert "{oldSchemaVersion: 2}" in broken_by(shelf, level, USER)


def test_transitive_levels_count_all_versions(shelf: Shelf) -> None:
    """SCH-12."""
    level = ConfigValue(compatibility_level=Level.BACKWARD_TRANSITIVE)
    assert "{oldSchemaVersion: 1}" in broken_by(shelf, level, STRING)


def test_a_group_is_compared_with_itself(shelf: Shelf) -> None:
    config = ConfigValue(compatibility_level=Level.BACKWARD, compatibility_group="major")
    assert broken_by(shelf, config, USER, "1") == []
    assert broken_by(shelf, config, USER_WITH_EMAIL, "3") == []
    assert "{oldSchemaVersion: 1}" in broken_by(shelf, config, USER_WITH_EMAIL, "1")


def test_the_settings_of_a_check_are_the_last_message(shelf: Shelf) -> None:
    level = ConfigValue(compatibility_level=Level.FULL, validate_fields=True)
    last = broken_by(shelf, level, USER)[-1]
    assert last == "{validateFields: 'true', compatibility: 'FULL'}"


RESERVING = ConfigValue(compatibility_level=Level.NONE, validate_fields=True)


def broken_reservations(
    config: ConfigValue, text: str, type: SchemaType, before: str, now: str
) -> list[str]:
    """Return the messages of a check against a version that reserves names."""
    shelf = Shelf()
    shelf.register("a", text, type=type, metadata=reserving(before))
    candidate = Candidate(subject="a", text=text, type=type, metadata=reserving(now))
    parsed = parsed_of(shelf.state, candidate, is_new=True)
    previous = shelf.state.versions("a")
    return messages_of(conflict(shelf.state, config, candidate, parsed, previous))


def reserving(names: str) -> Metadata:
    return Metadata(properties={CONFLUENT_RESERVED: names})


@pytest.mark.parametrize(
    ("type", "text"),
    [
        (SchemaType.AVRO, USER),
        (SchemaType.JSON, '{"type": "object", "properties": {"id": {"type": "integer"}}}'),
        (SchemaType.PROTOBUF, 'syntax = "proto3"; message User { optional int64 id = 1; }'),
    ],
)
def test_no_field_takes_a_reserved_name(type: SchemaType, text: str) -> None:
    assert broken_reservations(RESERVING, text, type, "id", " id, other") == [
        "The new schema has field that conflicts with the reserved field id.",
        "{validateFields: 'true', compatibility: 'NONE'}",
    ]
    assert broken_reservations(RESERVING, text, type, "other", "other,") == []


def test_a_reserved_name_stays_reserved() -> None:
    messages = broken_reservations(RESERVING, USER, SchemaType.AVRO, "a, b", "b")
    assert messages[0].startswith("The new schema has reserved field a removed from its metadata")


def test_names_are_not_reserved_unless_fields_are_to_be_validated() -> None:
    level = ConfigValue(compatibility_level=Level.BACKWARD)
    assert broken_reservations(level, USER, SchemaType.AVRO, "a", "id") == []


@pytest.mark.parametrize(("policy", "passes"), [("STRICT", False), ("lenient", True), ("?", False)])
def test_a_lenient_policy_lets_open_objects_grow(policy: str, passes: bool) -> None:
    shelf = Shelf()
    shelf.register("a", '{"type": "object"}', type=SchemaType.JSON)
    candidate = Candidate(
        subject="a",
        text='{"type": "object", "properties": {"id": {"type": "integer"}}}',
        type=SchemaType.JSON,
    )
    parsed = parsed_of(shelf.state, candidate, is_new=True)
    config = ConfigValue(compatibility_level=Level.BACKWARD, compatibility_policy=policy)
    found = conflict(shelf.state, config, candidate, parsed, shelf.state.versions("a"))
    assert (found is None) is passes
