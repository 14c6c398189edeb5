"""How a sample of a topic is taken."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.client.profiling import COMPRESSED_BYTES_MAX, kept, sample_sizes, zstd_ratio


def test_a_sample_has_of_each_partition_its_share_of_the_topic() -> None:
    """ARC-6: Skew is not seen by taking as many of each."""
    assert sample_sizes({0: 90_000, 1: 9_000, 2: 1_000, 3: 0}, 1_000) == {0: 900, 1: 90, 2: 10}


def test_a_small_topic_is_taken_whole() -> None:
    assert sample_sizes({0: 3, 1: 0, 2: 4}, 10_000) == {0: 3, 2: 4}


def test_an_empty_topic_has_no_sample() -> None:
    assert sample_sizes({0: 0, 1: 0}, 10) == {}


@given(
    held=st.dictionaries(st.integers(0, 200), st.integers(0, 10**12), max_size=50),
    records=st.integers(1, 10**6),
)
def test_a_sample_has_as_many_records_as_asked_for_and_none_that_is_not_there(
    held: dict[int, int], records: int
) -> None:
    sizes = sample_sizes(held, records)
    assert sum(sizes.values()) == min(records, sum(held.values()))
    assert all(0 < size <= held[partition] for partition, size in sizes.items())


def test_of_more_records_than_asked_for_the_last_of_each_partition_are_kept() -> None:
    assert kept([0, 0, 1, 0, 0, 1, 2], 4) == [3, 4, 5, 6]
    assert kept([0, 1, 0], 3) == [0, 1, 2]
    assert kept([], 3) == []


def test_values_from_all_over_the_sample_are_compressed() -> None:
    """Those that came first are of one partition, and need not be like the others."""
    same, other = b"a" * 1000, bytes(range(256)) * 4
    values = [same] * (2 * COMPRESSED_BYTES_MAX // 1000) + [other] * 10_000
    ratio = zstd_ratio(values)
    alone = zstd_ratio([same] * 1000)
    assert ratio is not None
    assert alone is not None
    assert ratio < alone


def test_nothing_has_no_ratio() -> None:
    assert zstd_ratio([]) is None
    assert zstd_ratio([b"", b""]) is None
