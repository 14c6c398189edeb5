"""Samples of a topic."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, cast

import pytest
from confluent_kafka import Message
from hypothesis import given
from hypothesis import strategies as st

from headrace.client import profiling
from headrace.client.profiling import (
    COMPRESSED_BYTES_MAX,
    kept,
    last_records,
    sample_sizes,
    zstd_ratio,
)


class Log:
    """A partition in which only some offsets have a record; it may fall silent."""

    is_at_end = False

    def __init__(
        self, end: int, has_record: Callable[[int], bool], reads_max: int | None = None
    ) -> None:
        self.end = end
        self.begins: list[int] = []
        self._has_record = has_record
        self._reads_max = reads_max
        self._offsets: Iterator[int] = iter(())

    def assign_at(self, offsets: dict[int, int]) -> None:
        self.begins.append(offsets[0])
        self._offsets = iter(range(offsets[0], self.end))
        self._reads = 0

    def read(self) -> list[Message]:
        self._reads += 1
        if self._reads_max is not None and len(self.begins) > 1 and self._reads > self._reads_max:
            return []
        some = islice(self._offsets, 10)
        return [Message("t", 0, offset) for offset in some if self._has_record(offset)]


def offsets_of(log: Log, records: int) -> list[int | None]:
    found = last_records(cast(Any, log), {0: 0}, {0: log.end}, records)
    return [message.offset() for message in found]


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
def test_a_sample_has_the_requested_number_of_existing_records(
    held: dict[int, int], records: int
) -> None:
    sizes = sample_sizes(held, records)
    assert sum(sizes.values()) == min(records, sum(held.values()))
    assert all(0 < size <= held[partition] for partition, size in sizes.items())


def test_a_sample_keeps_the_last_records_of_each_partition() -> None:
    assert kept([0, 0, 1, 0, 0, 1, 2], 4) == [3, 4, 5, 6]
    assert kept([0, 1, 0], 3) == [0, 1, 2]
    assert kept([], 3) == []


def test_a_sample_keeps_the_newest_records_of_a_range(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Far back every offset has a record, and of the last ones hardly any has."""
    monkeypatch.setattr(profiling, "RECORDS_MAX", 100)
    log = Log(2_000, lambda offset: offset < 1_500 or offset % 50 == 49)
    found = offsets_of(log, 40)
    assert log.begins == [1_960, 1_680, 0]
    assert found == [*range(1_470, 1_500), *range(1_549, 2_000, 50)]


def test_an_incomplete_sample_from_further_back_is_discarded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(profiling, "IDLE_S_MAX", 0.05)
    log = Log(1_000, lambda offset: offset < 900 or offset % 50 == 49, reads_max=3)
    assert offsets_of(log, 100) == [949, 999]
    assert log.begins == [900, 200]


def test_values_from_all_over_the_sample_are_compressed() -> None:
    """The first records are of one partition, and may differ from the others."""
    same, other = b"a" * 1000, bytes(range(256)) * 4
    values = [same] * (2 * COMPRESSED_BYTES_MAX // 1000) + [other] * 10_000
    ratio = zstd_ratio(values)
    alone = zstd_ratio([same] * 1000)
    assert ratio is not None
    assert alone is not None
    assert ratio < alone


def test_an_empty_sample_has_no_compression_ratio() -> None:
    assert zstd_ratio([]) is None
    assert zstd_ratio([b"", b""]) is None
