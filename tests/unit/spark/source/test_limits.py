"""Limits of a micro-batch: rows and bytes together, shared by what waits."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.protocol.topic_partition import TopicPartition
from headrace.spark.source.limits import admitted
from headrace.spark.source.offsets import Positions


def positions(*offsets: int) -> Positions:
    return {TopicPartition("t", index): offset for index, offset in enumerate(offsets)}


def test_without_limits_a_batch_goes_to_the_end() -> None:
    assert admitted(positions(1, 2), positions(5, 9), None) == positions(5, 9)


def test_rows_are_shared_in_proportion_to_the_backlog() -> None:
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


def test_a_record_beside_an_endless_backlog_is_read_in_time() -> None:
    """As with the stock connector: a share below one record is one record."""
    assert admitted(positions(0, 0), positions(1_000_000, 1), 1000) == positions(999, 1)
    sizes = dict(zip(positions(0, 0), (100.0, 5_000.0), strict=True))
    by_bytes = admitted(positions(0, 0), positions(1_000_000, 1), None, 100_000, sizes)
    assert by_bytes == positions(950, 1)


def test_the_stricter_limit_counts_for_each_partition() -> None:
    sizes = dict(zip(positions(0, 0), (10.0, 1_000.0), strict=True))
    end = admitted(positions(0, 0), positions(1000, 1000), 1_000, 101_000, sizes)
    assert end == positions(100, 100)
    assert admitted(positions(0, 0), positions(1000, 1000), 20, 101_000, sizes) == positions(10, 10)


def test_a_limit_below_the_number_of_partitions_takes_one_record_of_each() -> None:
    assert admitted(positions(0, 0, 5), positions(9, 9, 5), 1) == positions(1, 1, 5)


@given(
    waiting=st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=1),
    rows_max=st.integers(1, 500),
)
def test_never_more_than_the_limit_and_some_of_each(
    waiting: list[tuple[int, int]], rows_max: int
) -> None:
    start = positions(*(first for first, _ in waiting))
    latest = positions(*(first + more for first, more in waiting))
    end = admitted(start, latest, rows_max)
    counts = [more for _, more in waiting if more]
    taken = sum(end[place] - start[place] for place in start)
    assert taken == min(sum(counts), max(rows_max, len(counts)))
    assert all(
        start[place] < end[place] <= latest[place]
        for place in start
        if latest[place] > start[place]
    )


@given(
    waiting=st.lists(st.tuples(st.integers(1, 1000), st.floats(1, 1e6)), min_size=1),
    bytes_max=st.integers(1, 1 << 24),
    rows_max=st.integers(1, 2000),
)
def test_both_limits_hold_but_for_one_record_of_each_partition(
    waiting: list[tuple[int, float]], bytes_max: int, rows_max: int
) -> None:
    latest = positions(*(count for count, _ in waiting))
    sizes = {place: size for place, (_, size) in zip(latest, waiting, strict=True)}
    end = admitted({}, latest, rows_max, bytes_max, sizes)
    more = [(count - 1, sizes[place]) for place, count in end.items()]
    assert sum(count for count, _ in more) <= rows_max
    assert sum(count * size for count, size in more) <= bytes_max
    assert all(1 <= count <= latest[place] for place, count in end.items())
