"""Payloads contain the ids of their schemas."""

from typing import Any

import pytest

from headrace.serdes.wire_format import schema_header


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        (None, None),
        ([], None),
        ({"__value_schema_id": b"1"}, b"1"),
        ([("__key_schema_id", b"1")], None),
        ([("__value_schema_id", b"1"), ("other", b"x"), ("__value_schema_id", b"2")], b"2"),
    ],
)
def test_the_last_header_of_the_part_names_the_schema(headers: Any, found: bytes | None) -> None:
    """SCH-9"""
    assert schema_header(headers, "value") == found
