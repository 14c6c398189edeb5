"""The words of a pipeline that decide something themselves."""

import pytest

from headrace.pipelines.model import Gate


@pytest.mark.parametrize(
    ("rows", "quarantined", "is_shut"),
    [(100, 5, False), (100, 6, True), (1_000_000, 50_001, True), (99, 99, False), (0, 0, False)],
)
def test_a_gate_is_shut_above_its_share_of_large_batches(
    rows: int, quarantined: int, is_shut: bool
) -> None:
    """ARC-4."""
    assert Gate(quarantined_max=0.05).is_shut(rows, quarantined) == is_shut
