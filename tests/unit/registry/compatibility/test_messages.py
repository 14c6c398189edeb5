"""Incompatibilities in Confluent's text form: written for answers, read from other registries."""

import pytest

from headrace.registry.compatibility.incompatibilities import Direction, Incompatibility
from headrace.registry.compatibility.levels import Conflict, Level
from headrace.registry.compatibility.messages import messages_of, plain_message, plain_text
from headrace.serdes.schemas import SchemaType

RENAMED = Incompatibility(
    "NAME_MISMATCH", "The name", Direction.BACKWARD, path="/name", detail="expected: A"
)
RETYPED = Incompatibility("FIELD_KIND_CHANGED", "The type", Direction.BACKWARD, path="#/A/1")
IN_JAVA = "{errorType:'NAME_MISMATCH', description:'The name', additionalInfo:'expected: A'}"
QUOTED_TWICE = '{errorType:"FIELD_KIND_CHANGED", description:"The type"}'


@pytest.mark.parametrize(
    ("type", "found", "message"),
    [
        (SchemaType.AVRO, RENAMED, IN_JAVA),
        (SchemaType.JSON, RETYPED, QUOTED_TWICE),
        (SchemaType.PROTOBUF, RETYPED, QUOTED_TWICE),
        (SchemaType.AVRO, Incompatibility("", "Only text", Direction.FORWARD), "Only text"),
    ],
)
def test_each_type_of_schema_has_its_form(
    type: SchemaType, found: Incompatibility, message: str
) -> None:
    conflict = Conflict(Level.BACKWARD, type, (found,))
    assert messages_of(conflict)[0] == message


def test_a_message_that_is_read_is_the_line_of_its_incompatibility() -> None:
    assert plain_message(IN_JAVA) == plain_text(RENAMED) == "NAME_MISMATCH: The name (expected: A)"
    assert plain_message(QUOTED_TWICE) == plain_text(RETYPED) == "FIELD_KIND_CHANGED: The type"


def test_other_messages_stay_as_they_are() -> None:
    assert plain_message("{oldSchemaVersion: 1}") == "{oldSchemaVersion: 1}"
