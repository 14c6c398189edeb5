"""Logical types are ignored on types that cannot carry them."""

from typing import Any

import pytest

from headrace.serdes.avro.logical import logical_of
from headrace.serdes.avro.model import Logical

DECIMAL = {"logicalType": "decimal", "precision": 4, "scale": 2}


@pytest.mark.parametrize(
    ("kind", "properties", "size", "found"),
    [
        ("int", {"logicalType": "date"}, 0, Logical("date")),
        ("long", {"logicalType": "date"}, 0, None),
        ("int", {"logicalType": "mine"}, 0, None),
        ("int", {"logicalType": 5}, 0, None),
        ("bytes", DECIMAL, 0, Logical("decimal", 4, 2)),
        ("fixed", DECIMAL, 2, Logical("decimal", 4, 2)),
        ("fixed", DECIMAL, 1, None),
        ("bytes", DECIMAL | {"precision": "4"}, 0, None),
        ("bytes", DECIMAL | {"scale": 5}, 0, None),
        ("bytes", {"logicalType": "decimal"}, 0, None),
        ("fixed", {"logicalType": "duration"}, 12, Logical("duration")),
        ("fixed", {"logicalType": "duration"}, 11, None),
        ("string", {"logicalType": "uuid"}, 0, Logical("uuid")),
    ],
)
def test_a_logical_type_that_does_not_fit_is_ignored(
    kind: str, properties: dict[str, Any], size: int, found: Logical | None
) -> None:
    assert logical_of(kind, properties, size) == found
