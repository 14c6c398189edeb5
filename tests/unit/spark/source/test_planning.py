"""Tasks: everything is read once, large ranges by several, small ones together."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.protocol.topic_partition import TopicPartition
from headrace.spark.source.offsets import Positions
from headrace.spark.source.planning import (
    TASK_ROWS_LARGE,
    TASK_ROWS_SMALL,
    TASKS_OF_RANGE_MAX,
    Range,
    ranges_between,
    task_ranges,
)


def positions(*offsets: int) -> Positions:
    return {TopicPartition("t", index): offset for index, offset in enumerate(offsets)}


def bounds(ranges: list[Range]) -> list[tuple[int, int, int]]:
    return [(one.place.partition, one.first, one.end) for one in ranges]


def test_ranges_are_built_between_two_positions() -> None:
    assert bounds(ranges_between(positions(5, 7), positions(9, 7), {})) == [(0, 5, 9)]


def test_a_partition_that_was_added_is_read_from_its_first_record() -> None:
    assert bounds(ranges_between(positions(5), positions(5, 3), {})) == [(1, 0, 3)]


def test_small_partitions_share_a_task() -> None:
    ranges = ranges_between(positions(0, 0, 0), positions(10, 20, TASK_ROWS_SMALL), {})
    shares = task_ranges(ranges)
    assert sorted(bounds(list(share)) for share in shares) == [
        [(0, 0, 10), (1, 0, 20)],
        [(2, 0, TASK_ROWS_SMALL)],
    ]


def test_a_shared_task_stays_small() -> None:
    half = TASK_ROWS_SMALL // 2 + 1
    shares = task_ranges(ranges_between({}, positions(half, half, half), {}))
    assert [len(share) for share in shares] == [1, 1, 1]


def test_a_large_range_is_read_by_several_tasks_in_the_order_of_its_records() -> None:
    shares = task_ranges(ranges_between(positions(7), positions(4_000_008), {}))
    assert TASK_ROWS_LARGE == 2_000_000
    assert [bounds(list(share)) for share in shares] == [
        [(0, 7, 1_333_340)],
        [(0, 1_333_340, 2_666_674)],
        [(0, 2_666_674, 4_000_008)],
    ]


def test_ranges_are_split_into_a_bounded_number_of_tasks() -> None:
    assert len(task_ranges(ranges_between({}, positions(TASK_ROWS_LARGE), {}))) == 1
    huge = positions(100 * TASKS_OF_RANGE_MAX * TASK_ROWS_LARGE)
    assert len(task_ranges(ranges_between({}, huge, {}))) == TASKS_OF_RANGE_MAX


def test_one_task_for_each_partition_is_possible_at_any_size() -> None:
    ranges = ranges_between({}, positions(5 * TASK_ROWS_LARGE, 3), {})
    assert task_ranges(ranges, tasks_min=1) == [(one,) for one in ranges]


def test_more_tasks_than_partitions_are_possible() -> None:
    shares = task_ranges(ranges_between({}, positions(900, 100), {}), tasks_min=10)
    assert len(shares) == 10
    assert sum(one.rows for share in shares for one in share) == 1000


@given(
    ends=st.lists(st.integers(0, 50_000) | st.integers(0, 10**9), max_size=6),
    tasks_min=st.none() | st.integers(1, 40),
    parts_max=st.none() | st.integers(1, 40),
)
def test_every_offset_is_read_by_exactly_one_task(
    ends: list[int], tasks_min: int | None, parts_max: int | None
) -> None:
    rows_max = None if parts_max is None else max(1, max(ends, default=0) // parts_max)
    ranges = ranges_between({}, positions(*ends), {})
    shares = task_ranges(ranges, tasks_min, rows_max)
    pieces = sorted(bounds([one for share in shares for one in share]))
    for partition, end in enumerate(ends):
        at = 0
        for _, first, until in (piece for piece in pieces if piece[0] == partition):
            assert first == at < until
            at = until
        assert at == end
    if rows_max is not None:
        assert all(one.rows <= rows_max for share in shares for one in share)
    assert task_ranges(ranges, tasks_min, rows_max) == shares
