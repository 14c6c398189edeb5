"""Each level holds a new schema against its versions, in its direction, in Confluent's words."""

from dataclasses import dataclass

import pytest

from headrace.registry.compatibility.levels import SHOWN_MAX, Level, Version, complaints
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


def differences(reader: Reads, writer: Reads) -> list[str]:
    return [] if writer.name in reader.reads + reader.name else ["the %s, not the %s"]


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
def test_a_level_asks_for_its_versions_and_directions(
    level: Level, new: Reads, passes: bool
) -> None:
    """SCH-12"""
    assert (complaints(level, new, [FIRST, SECOND], differences) == []) is passes


@pytest.mark.parametrize("level", [Level.FORWARD, Level.FORWARD_TRANSITIVE])
def test_forward_asks_whether_the_old_reads_the_new(level: Level) -> None:
    """SCH-12"""
    assert complaints(level, Reads("3"), [FIRST], differences) == []


@pytest.mark.parametrize("level", [Level.FULL, Level.FULL_TRANSITIVE])
def test_full_asks_for_both(level: Level) -> None:
    """SCH-12"""
    assert complaints(level, READS_ALL, [FIRST], differences) == []


@pytest.mark.parametrize(
    ("level", "messages"),
    [
        (Level.BACKWARD, ["the new, not the old"]),
        (Level.FORWARD, ["the old, not the new"]),
        (Level.FULL, ["the old, not the new", "the new, not the old"]),
    ],
)
def test_messages_say_which_side_is_new_and_end_with_the_old_schema(
    level: Level, messages: list[str]
) -> None:
    assert complaints(level, READS_NONE, [FIRST, SECOND], differences) == [
        *messages,
        "{oldSchemaVersion: 2}",
        "{oldSchema: '2'}",
        f"{{validateFields: 'false', compatibility: '{level}'}}",
    ]


def test_the_newest_version_that_is_broken_is_told() -> None:
    found = complaints(Level.BACKWARD_TRANSITIVE, READS_LAST, [FIRST, SECOND], differences)
    assert "{oldSchemaVersion: 1}" in found


def test_another_type_of_schema_is_never_compatible() -> None:
    new = Reads("3", "12", SchemaType.JSON)
    assert complaints(Level.BACKWARD, new, [SECOND], differences) == [
        "Incompatible because of different schema type",
        "{validateFields: 'false', compatibility: 'BACKWARD'}",
    ]


def test_a_first_version_owes_nothing() -> None:
    assert complaints(Level.FULL_TRANSITIVE, READS_NONE, [], differences) == []


def test_a_long_schema_is_cut() -> None:
    old = Version(Reads("x" * (SHOWN_MAX + 1)))
    found = complaints(Level.BACKWARD, READS_NONE, [old], differences)
    assert found[1] == f"{{oldSchema: <truncated> '{'x' * SHOWN_MAX}...'}}"
