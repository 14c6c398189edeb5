"""Limits of a micro-batch: rows and bytes together, shared by what waits."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.spark.source.limits import admitted
from headrace.spark.source.offsets import Positions, TopicPartition


def positions(*offsets: int) -> Positions:
    return {TopicPartition("t", index): offset for index, offset in enumerate(offsets)}


def test_without_limits_a_batch_goes_to_the_end() -> None:
    assert admitted(positions(1, 2), positions(5, 9), None) == positions(5, 9)


def test_rows_are_shared_by_what_waits() -> None:
    assert admitted(positions(0, 0), positions(900, 100), 100) == positions(90, 10)


def test_the_stricter_of_both_limits_counts() -> None:
    sizes = dict.fromkeys(positions(0), 100.0)
    start, latest = positions(0), positions(1000)
    assert admitted(start, latest, 500, 10_000, sizes) == positions(100)
    assert admitted(start, latest, 50, 10_000, sizes) == positions(50)


def test_a_limit_below_one_record_takes_one_record() -> None:
    sizes = dict.fromkeys(positions(0), 1e6)
    assert admitted(positions(4), positions(9), None, 10, sizes) == positions(5)


def test_a_partition_that_was_added_takes_part() -> None:
    assert admitted(positions(10), positions(10, 7), 100) == positions(10, 7)


@given(
    waiting=st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=1),
    rows_max=st.integers(1, 500),
)
def test_never_more_than_the_limit_and_always_some(
    waiting: list[tuple[int, int]], rows_max: int
) -> None:
    start = positions(*(first for first, _ in waiting))
    latest = positions(*(first + more for first, more in waiting))
    end = admitted(start, latest, rows_max)
    total = sum(more for _, more in waiting)
    taken = sum(end[place] - start[place] for place in start)
    assert taken == min(total, rows_max)
    assert all(start[place] <= end[place] <= latest[place] for place in start)
