"""Differences that break a reader, and their descriptions."""

import pytest

from headrace.registry.compatibility.incompatibilities import Direction, described
from headrace.registry.compatibility.protobuf.differences import DESCRIPTIONS, Difference, Kind


@pytest.mark.parametrize("kind", DESCRIPTIONS)
def test_a_description_names_the_path_the_reader_and_the_writer(kind: str) -> None:
    text = described(kind, DESCRIPTIONS, "#/A/1", Direction.FORWARD).text
    counts = text.count("'#/A/1'"), text.count(" old schema"), text.count(" new schema")
    assert counts == (1, 1, 1)
    assert text.index(" old schema") < text.index(" new schema")


def test_the_compatible_differences_are_confluents() -> None:
    assert {str(kind) for kind in Kind if Difference(kind, "#/").is_compatible} == {
        *("MESSAGE_ADDED", "MESSAGE_MOVED", "ENUM_ADDED", "ENUM_REMOVED", "ENUM_CONST_ADDED"),
        *("ENUM_CONST_CHANGED", "ENUM_CONST_REMOVED", "FIELD_ADDED", "FIELD_REMOVED"),
        *("FIELD_NAME_CHANGED", "FIELD_STRING_OR_BYTES_LABEL_CHANGED", "ONEOF_ADDED"),
        *("ONEOF_REMOVED", "ONEOF_FIELD_ADDED", "ONEOF_FIELD_MOVED_TO_TOP_LEVEL"),
    }
