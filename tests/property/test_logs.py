"""Logs agree with a list of records, whatever is done to them and however often they reopen."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.protocol.batches import Record, headers
from headrace.storage.log import Log
from headrace.storage.segment import Segment
from tests.builders.logs import (
    NOW,
    all_records,
    append,
    fresh_directories,
    new_log,
    records_in,
    reopened,
)

SIZES = st.lists(st.integers(0, 300), min_size=1, max_size=5)
APPENDS = st.tuples(st.just("append"), SIZES, st.integers(-50, 50))
CUTS = st.tuples(st.sampled_from(("delete records", "truncate")), st.just([0]), st.integers(0, 100))
STEPS = st.tuples(
    st.sampled_from(("roll", "flush", "stop", "crash", "evict", "consume")),
    st.just([0]),
    st.just(0),
)
SCRIPTS = st.lists(
    st.one_of(APPENDS, APPENDS, APPENDS, APPENDS, STEPS, CUTS), min_size=1, max_size=40
)


class Model:
    """The expected content of a log: records, with the base offset of their batch."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.batch_starts: list[int] = []
        self.start = 0
        self.end = 0
        self.clock = NOW

    def append(self, log: Log, sizes: list[int], drift: int) -> None:
        self.clock += drift
        base_offset = self.end
        values = [bytes([self.end % 251]) * size for size in sizes]
        timestamps = [self.clock + at for at in range(len(sizes))]
        info = append(log, *values, timestamps=timestamps)
        assert (info.base_offset, info.last_offset) == (base_offset, base_offset + len(sizes) - 1)
        for value, timestamp in zip(values, timestamps, strict=True):
            self.records.append(Record(self.end, timestamp, b"key", value))
            self.batch_starts.append(base_offset)
            self.end += 1

    def delete_before(self, percent: int) -> int:
        self.start += (self.end - self.start) * percent // 100
        return self.start

    def truncate(self, percent: int) -> int:
        """Truncation falls on a batch, as it does on a follower."""
        offset = self.start + (self.end - self.start) * percent // 100
        if offset < self.end:
            self.end = max(self.batch_starts[offset], self.start)
        del self.records[self.end :], self.batch_starts[self.end :]
        return self.end

    @property
    def kept(self) -> list[Record]:
        return self.records[self.start :]


@pytest.fixture(scope="module")
def directories() -> Iterator[Iterator[Path]]:
    with fresh_directories() as paths:
        yield paths


@given(
    script=SCRIPTS,
    segment_bytes=st.integers(2_000, 6_000),
    interval=st.integers(1, 1_024),
    size_max=st.integers(1, 5_000),
)
def test_a_log_is_a_list_of_records(
    script: list[tuple[str, list[int], int]],
    segment_bytes: int,
    interval: int,
    size_max: int,
    directories: Iterator[Path],
) -> None:
    """LOG-8, LOG-9, LOG-10, LOG-13, LOG-18: offsets, order and content stay as appended."""
    log = new_log(
        next(directories),
        segment_bytes=segment_bytes,
        index_interval_bytes=interval,
        segment_ms=200,
        file_delete_delay_ms=0,
    )
    model = Model()
    for step, sizes, number in script:
        log = performed(log, model, step, sizes, number)
        assert (log.log_start_offset, log.log_end_offset) == (model.start, model.end)
    assert all_records(log, size_max=size_max) == model.kept
    for segment in log.segments:
        check_indexes(segment)
    check_lookups(log, model, size_max)
    log.release()


def performed(log: Log, model: Model, step: str, sizes: list[int], number: int) -> Log:
    match step:
        case "append":
            model.append(log, sizes, number)
        case "roll":
            log.roll()
        case "flush":
            log.flush()
        case "stop":
            return reopened(log, clean=True)
        case "crash":
            return reopened(log, recovery_point=log.recovery_point)
        case "evict":
            for segment in log.segments:
                segment.release_file()
                segment.release_indexes()
        case "consume":
            assert all_records(log) == model.kept
        case "delete records":
            log.delete_records_before(model.delete_before(number))
        case "truncate":
            log.truncate_to(model.truncate(number))
    return log


def check_indexes(segment: Segment) -> None:
    """An index never points past its file, and always at a batch that ends at its entry."""
    data = Path(segment.path(".log")).read_bytes()
    assert len(data) == segment.size
    ends = {position: header.last_offset for position, header in headers(data)}
    index = segment.index
    for offset, position in zip(index.offsets, index.positions, strict=True):
        assert ends[position] == segment.base_offset + offset
    stamps = {header.last_offset: header.max_timestamp for _, header in headers(data)}
    times = segment.time_index
    for timestamp, offset in zip(times.timestamps, times.offsets, strict=True):
        assert stamps[segment.base_offset + offset] == timestamp
    assert segment.max_timestamp == max(stamps.values(), default=-1)


def check_lookups(log: Log, model: Model, size_max: int) -> None:
    """Every offset is found, a bound is never passed, and time finds the first record."""
    for record in model.kept:
        data = log.read(record.offset, size_max, log.log_end_offset).read()
        found = [header for _, header in headers(data)]
        assert found[0].base_offset <= record.offset <= found[0].last_offset
        assert sum(header.size for header in found) == len(data), "a batch is cut"
        assert len(data) <= size_max or len(found) == 1
    for bound in {start for start in model.batch_starts if start > model.start}:
        data = log.read(model.start, 1 << 30, bound).read()
        assert all(record.offset < bound for record in records_in(data))
        assert records_in(log.read(bound - 1, 1 << 30, bound).read())[-1].offset == bound - 1
    for record in model.kept[:5]:
        expected = next(one for one in model.kept if one.timestamp >= record.timestamp)
        found_first = log.offset_for_timestamp(record.timestamp)
        assert found_first is not None
        assert found_first.offset == expected.offset
    if model.kept:
        latest = max(model.kept, key=lambda record: record.timestamp)
        assert log.offset_for_timestamp(latest.timestamp + 1) is None
