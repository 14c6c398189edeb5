"""Partitioners: Java's hash, round robin, and checks of what a function returns."""

from collections import Counter

import pytest

from headrace.client.partitioners import InvalidPartition, checked, chosen, murmur2, round_robin


def test_round_robin_spreads_each_topic_evenly() -> None:
    """PRD-4: 40 records over 5 partitions, twice."""
    partition_of = round_robin()
    spread = Counter(
        (topic, partition_of(topic, b"same key", b"v", 5))
        for _ in range(40)
        for topic in ("a", "b")
    )
    assert set(spread.values()) == {8}


def test_round_robin_stays_in_range_when_a_topic_grows() -> None:
    """PRD-4: the seed's own partitioner ran past the end."""
    partition_of = round_robin()
    found = [partition_of("a", None, None, count) for count in (2, 2, 3, 3, 3, 2)]
    assert all(0 <= partition < 3 for partition in found)


@pytest.mark.parametrize(
    ("key", "hashed"), [(b"21", -973932308), (b"foobar", -790332482), (b"abc", 479470107)]
)
def test_murmur2_is_javas(key: bytes, hashed: int) -> None:
    """PRD-3"""
    assert murmur2(key, 1_000) == (hashed & 0x7FFFFFFF) % 1_000


def test_the_default_and_sticky_are_javas() -> None:
    """PRD-3, PRD-4"""
    assert chosen(None) == chosen("sticky") == ("murmur2_random", None)


def test_librdkafkas_own_names_are_left_to_it() -> None:
    assert chosen("consistent") == ("consistent", None)


def test_a_function_is_asked_first() -> None:
    """PRD-5"""

    def first(_topic: str, _key: object, _value: object, _partitions: int) -> int:
        return 0

    assert chosen(first) == ("murmur2_random", first)


@pytest.mark.parametrize("wrong", [-1, 3, None, "0", 1.0])
def test_a_partition_out_of_range_is_a_clear_error(wrong: object) -> None:
    """PRD-5"""
    with pytest.raises(InvalidPartition, match="'orders', which has partitions 0 to 2"):
        checked(wrong, "orders", 3, "the partitioner returned")
