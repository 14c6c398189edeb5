"""State batches combined: checked against the rule, offset by offset."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from headrace.shares.batches import combine
from headrace.shares.state import StateBatch

AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


@st.composite
def batches(draw: st.DrawFn) -> StateBatch:
    first = draw(st.integers(0, 30))
    return StateBatch(
        first,
        first + draw(st.integers(0, 12)),
        draw(st.sampled_from((AVAILABLE, ACKNOWLEDGED, ARCHIVED))),
        draw(st.integers(1, 3)),
    )


def by_offset(found: tuple[StateBatch, ...] | list[StateBatch], start: int) -> dict[int, object]:
    """The latest word on each offset: the highest count, then the highest state."""
    said: dict[int, tuple[int, int]] = {}
    for first, last, state, count in found:
        for offset in range(max(first, start), last + 1):
            said[offset] = max(said.get(offset, (0, 0)), (count, state))
    return dict(said)


@given(st.lists(batches(), max_size=6), st.lists(batches(), max_size=4), st.integers(-1, 40))
def test_every_offset_keeps_its_latest_acknowledgement(
    known: list[StateBatch], added: list[StateBatch], start: int
) -> None:
    """PUL-4: what was acknowledged stays so, whatever order the writes come in."""
    combined = combine(known, added, start)
    assert by_offset(combined, start) == by_offset([*known, *added], start)


@given(st.lists(batches(), max_size=6), st.integers(-1, 40))
def test_batches_are_in_order_apart_and_as_few_as_can_be(
    found: list[StateBatch], start: int
) -> None:
    combined = combine((), found, start)
    for left, right in pairwise(combined):
        assert left.last_offset < right.first_offset
        is_neighbour = left.last_offset + 1 == right.first_offset
        assert not (is_neighbour and left[2:] == right[2:])


def test_a_later_delivery_replaces_the_middle_of_an_earlier_one() -> None:
    known = [StateBatch(100, 109, AVAILABLE, 1)]
    assert combine(known, [StateBatch(103, 105, ACKNOWLEDGED, 2)], 100) == (
        StateBatch(100, 102, AVAILABLE, 1),
        StateBatch(103, 105, ACKNOWLEDGED, 2),
        StateBatch(106, 109, AVAILABLE, 1),
    )


def test_batches_below_the_start_are_dropped() -> None:
    known = [StateBatch(0, 9, ACKNOWLEDGED, 1), StateBatch(10, 19, AVAILABLE, 1)]
    assert combine(known, (), 15) == (StateBatch(15, 19, AVAILABLE, 1),)
