"""Every incompatibility has advice, by its name and direction."""

import pytest

from headrace.registry.compatibility.avro import DESCRIPTIONS as AVRO
from headrace.registry.compatibility.incompatibilities import Direction
from headrace.registry.compatibility.json_schema.changes import DESCRIPTIONS as JSON
from headrace.registry.compatibility.protobuf.differences import DESCRIPTIONS as PROTOBUF
from headrace.registry.evolution.consequences import advice_for

BACKWARD, FORWARD = Direction.BACKWARD, Direction.FORWARD
ANYTHING = advice_for("", BACKWARD)


@pytest.mark.parametrize("direction", [BACKWARD, FORWARD])
def test_everything_that_breaks_avro_has_advice_of_its_own(direction: Direction) -> None:
    """SCH-8"""
    assert [name for name in AVRO if advice_for(name, direction) == ANYTHING] == []


def test_everything_that_breaks_protobuf_has_advice_of_its_own() -> None:
    assert [kind for kind in PROTOBUF if advice_for(kind, BACKWARD) == ANYTHING] == []


def test_the_usual_changes_of_json_have_advice_of_their_own() -> None:
    known = [change for change in JSON if advice_for(change, BACKWARD) != ANYTHING]
    assert len(known) > len(JSON) // 2


def test_a_closed_object_gets_other_advice_than_an_open_one() -> None:
    closed = advice_for("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", BACKWARD)
    opened = advice_for("OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", BACKWARD)
    assert closed != opened
