"""Which differences break a reader, and in which words."""

import pytest

from headrace.registry.compatibility.protobuf.differences import Difference, Kind


@pytest.mark.parametrize(
    "kind", [kind for kind in Kind if not Difference(kind, "#/").is_compatible]
)
def test_what_breaks_names_the_path_the_reader_and_the_writer(kind: Kind) -> None:
    text = str(Difference(kind, "#/A/1"))
    assert (text.count("'#/A/1'"), text.count("%s")) == (1, 2)


def test_what_does_not_break_is_what_confluent_says() -> None:
    assert {str(kind) for kind in Kind if Difference(kind, "#/").is_compatible} == {
        *("MESSAGE_ADDED", "MESSAGE_MOVED", "ENUM_ADDED", "ENUM_REMOVED", "ENUM_CONST_ADDED"),
        *("ENUM_CONST_CHANGED", "ENUM_CONST_REMOVED", "FIELD_ADDED", "FIELD_REMOVED"),
        *("FIELD_NAME_CHANGED", "FIELD_STRING_OR_BYTES_LABEL_CHANGED", "ONEOF_ADDED"),
        *("ONEOF_REMOVED", "ONEOF_FIELD_ADDED", "ONEOF_FIELD_MOVED_TO_TOP_LEVEL"),
    }
