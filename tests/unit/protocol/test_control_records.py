"""The keys of control records: written, read back, and refused when they are none."""

import pytest

from headrace.errors import CorruptMessage
from headrace.protocol.control_records import ControlType, control_key, control_type


@pytest.mark.parametrize("kind", ControlType)
def test_a_key_has_its_type(kind: ControlType) -> None:
    assert control_type(control_key(kind)) == kind


def test_a_type_of_later_versions_is_returned_as_its_number() -> None:
    assert control_type(b"\x00\x01\x00\x63") == 99


@pytest.mark.parametrize("key", [None, b"", b"\x00\x00\x00"])
def test_a_key_that_is_too_short_is_corrupt(key: bytes | None) -> None:
    with pytest.raises(CorruptMessage):
        control_type(key)
