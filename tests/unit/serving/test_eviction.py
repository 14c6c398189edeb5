"""The tables that leave memory for another one."""

import pytest

from headrace.serving.unit_refresh import to_evict
from headrace.serving.units import Unit


class SizedUnit(Unit):
    """A unit of a given size without tables."""

    def __init__(self, name: str, size_bytes: int, used_at: float) -> None:
        super().__init__(name, (), used_at=used_at)
        self.bytes = size_bytes

    @property
    def size_bytes(self) -> int:
        return self.bytes


OLD, MIDDLE, NEW = SizedUnit("old", 30, 1.0), SizedUnit("middle", 40, 2.0), SizedUnit("new", 20, 3)


@pytest.mark.parametrize(
    ("needed", "leaving"),
    [
        (10, []),
        (11, ["old"]),
        (40, ["old"]),
        (41, ["old", "middle"]),
        (100, ["old", "middle", "new"]),
        (101, []),
    ],
)
def test_the_least_recently_used_leave_first(needed: int, leaving: list[str]) -> None:
    assert to_evict(needed, [NEW, OLD, MIDDLE], 100) == leaving
