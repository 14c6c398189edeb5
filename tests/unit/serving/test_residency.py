"""Which tables have to leave memory."""

import pytest

from headrace.serving.residency import Resident, room_for

OLD, MIDDLE, NEW = Resident("old", 30, 1.0), Resident("middle", 40, 2.0), Resident("new", 20, 3.0)


@pytest.mark.parametrize(
    ("needed", "leaving"),
    [
        (10, []),
        (11, ["old"]),
        (40, ["old"]),
        (41, ["old", "middle"]),
        (100, ["old", "middle", "new"]),
        (101, None),
    ],
)
def test_those_not_used_for_longest_leave_first(needed: int, leaving: list[str] | None) -> None:
    assert room_for(needed, [NEW, OLD, MIDDLE], 100) == leaving
