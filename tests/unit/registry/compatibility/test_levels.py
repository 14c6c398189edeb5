"""Each level holds a new schema against its versions, in its direction, in Confluent's words."""

from dataclasses import dataclass

import pytest

from headrace.registry.compatibility.incompatibilities import Direction, Incompatibility
from headrace.registry.compatibility.levels import Conflict, Level, Version, conflict
from headrace.registry.compatibility.messages import SHOWN_MAX, messages_of
from headrace.serdes.schemas import SchemaType


@dataclass(frozen=True)
class Reads:
    """A schema that reads what the schemas that it names have written, and its own."""

    name: str
    reads: str = ""
    type: SchemaType = SchemaType.AVRO

    def canonical(self) -> str:
        return self.name

    def normalized(self) -> str:
        return self.name

    def meaning(self, *, normalized: bool = False) -> str:
        return self.canonical()

    def field_names(self) -> frozenset[str]:
        return frozenset()

    def formatted(self, format: str) -> str:
        return self.name


def differences(reader: Reads, writer: Reads, direction: Direction) -> list[Incompatibility]:
    if writer.name in reader.reads + reader.name:
        return []
    text = f"the {direction.reader}, not the {direction.writer}"
    return [Incompatibility("", text, direction)]


def checked(level: Level, new: Reads, previous: list[Version[Reads]]) -> Conflict | None:
    return conflict(level, new, previous, differences)


FIRST, SECOND = Version(Reads("1", "3"), 1), Version(Reads("2"), 2)
READS_ALL, READS_LAST, READS_NONE = Reads("3", "12"), Reads("3", "2"), Reads("3")


@pytest.mark.parametrize(
    ("level", "new", "passes"),
    [
        (Level.NONE, READS_NONE, True),
        (Level.BACKWARD, READS_LAST, True),
        (Level.BACKWARD, READS_NONE, False),
        (Level.BACKWARD_TRANSITIVE, READS_LAST, False),
        (Level.BACKWARD_TRANSITIVE, READS_ALL, True),
        (Level.FORWARD, READS_ALL, False),
        (Level.FORWARD_TRANSITIVE, READS_ALL, False),
        (Level.FULL, READS_ALL, False),
        (Level.FULL_TRANSITIVE, READS_ALL, False),
    ],
)
def test_a_level_checks_its_versions_and_directions(level: Level, new: Reads, passes: bool) -> None:
    """SCH-12"""
    assert (checked(level, new, [FIRST, SECOND]) is None) is passes


@pytest.mark.parametrize("level", [Level.FORWARD, Level.FORWARD_TRANSITIVE])
def test_forward_checks_that_the_old_schema_reads_the_new_one(level: Level) -> None:
    """SCH-12"""
    assert checked(level, Reads("3"), [FIRST]) is None


@pytest.mark.parametrize("level", [Level.FULL, Level.FULL_TRANSITIVE])
def test_full_checks_both_directions(level: Level) -> None:
    """SCH-12"""
    assert checked(level, READS_ALL, [FIRST]) is None


@pytest.mark.parametrize(
    ("level", "messages"),
    [
        (Level.BACKWARD, ["the new, not the old"]),
        (Level.FORWARD, ["the old, not the new"]),
        (Level.FULL, ["the old, not the new", "the new, not the old"]),
    ],
)
def test_messages_name_the_new_side_and_end_with_the_old_schema(
    level: Level, messages: list[str]
) -> None:
    assert messages_of(checked(level, READS_NONE, [FIRST, SECOND])) == [
        *messages,
        "{oldSchemaVersion: 2}",
        "{oldSchema: '2'}",
        f"{{validateFields: 'false', compatibility: '{level}'}}",
    ]


def test_the_newest_incompatible_version_is_reported() -> None:
    found = messages_of(checked(Level.BACKWARD_TRANSITIVE, READS_LAST, [FIRST, SECOND]))
    assert "{oldSchemaVersion: 1}" in found


def test_another_type_of_schema_is_never_compatible() -> None:
    new = Reads("3", "12", SchemaType.JSON)
    assert messages_of(checked(Level.BACKWARD, new, [SECOND])) == [
        "Incompatible because of different schema type",
        "{validateFields: 'false', compatibility: 'BACKWARD'}",
    ]


def test_a_first_version_is_always_compatible() -> None:
    assert checked(Level.FULL_TRANSITIVE, READS_NONE, []) is None


def test_a_long_schema_is_cut() -> None:
    old = Version(Reads("x" * (SHOWN_MAX + 1)))
    found = messages_of(checked(Level.BACKWARD, READS_NONE, [old]))
    assert found[1] == f"{{oldSchema: <truncated> '{'x' * SHOWN_MAX}...'}}"
