"""A log's batches as share groups see them."""

import os
from pathlib import Path
from typing import Any, cast

import pytest

from headrace.broker.shares.reading import read_batches
from headrace.errors import CorruptMessage
from headrace.protocol.batches import Record, build_batch, headers
from headrace.protocol.control_records import ControlType, control_key
from headrace.shares.selection import Span
from headrace.storage.appending import append_as_leader
from headrace.storage.log import Log
from headrace.storage.producer_state import Origin
from headrace.storage.segment import LOG
from tests.builders.logs import NOW, append, damage_length, new_log

MARKER_VALUE = bytes(6)


def transact(log: Log, producer_id: int, sequence: int, *, commits: bool) -> None:
    """One record in a transaction, and its end."""
    append(
        log,
        b"in doubt",
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        transactional=True,
    )
    kind = ControlType.COMMIT if commits else ControlType.ABORT
    marker = build_batch(
        [Record(0, NOW, control_key(kind), MARKER_VALUE)],
        producer_id=producer_id,
        producer_epoch=0,
        transactional=True,
        control=True,
    )
    append_as_leader(log, memoryview(marker), 0, NOW, Origin.COORDINATOR, 0)
    log.advance_high_watermark(log.log_end_offset)


def spans(log: Log, offset: int = 0, *, is_read_committed: bool = False) -> list[Span]:
    batches = read_batches(
        log, offset, 1 << 20, at_least_one=True, is_read_committed=is_read_committed
    )
    return [] if batches is None else list(batches)


def test_batches_of_all_sizes_are_found(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    for size in (10, 5_000, 1, 9_000, 4_000):
        append(log, b"x" * size, b"y")
    assert spans(log) == [Span(first, first + 1) for first in range(0, 10, 2)]
    assert spans(log, 5)[0] == Span(4, 5)
    assert spans(log, 10) == []


def test_markers_are_skipped_and_aborted_records_where_committed_ones_are_wanted(
    tmp_path: Path,
) -> None:
    log = new_log(tmp_path)
    transact(log, 7, 0, commits=False)
    transact(log, 8, 0, commits=True)
    transact(log, 7, 1, commits=True)
    skipped = [span.first for span in spans(log) if span.is_skipped]
    assert skipped == [1, 3, 5]
    skipped = [span.first for span in spans(log, is_read_committed=True) if span.is_skipped]
    assert skipped == [0, 1, 3, 5]


@pytest.mark.parametrize("length", [-12, -1_000, 0, 40, 60, 1 << 30])
def test_a_damaged_length_is_corruption_and_no_endless_walk(tmp_path: Path, length: int) -> None:
    log = new_log(tmp_path)
    append(log, b"x" * 100)
    append(log, b"y" * 100)
    damage_length(log, 0, length)
    with pytest.raises(CorruptMessage, match="is damaged"):
        spans(log)


def test_a_file_that_ends_early_is_corruption(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    for _ in range(2):
        append(log, b"x" * 5_000)
    batches = read_batches(log, 0, 1 << 20, at_least_one=True, is_read_committed=False)
    assert batches is not None
    os.truncate(log.segments[-1].path(LOG), 5_100)
    with pytest.raises(CorruptMessage, match="ends"):
        list(batches)


def test_only_transactions_within_the_slice_are_looked_up(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    for sequence in range(20):
        transact(log, 7, sequence, commits=False)
    asked: list[tuple[int, int]] = []
    find = log.aborted_transactions

    class Watching:
        def __getattr__(self, name: str) -> Any:
            return getattr(log, name)

        def aborted_transactions(self, offset: int, end_offset: int) -> Any:
            asked.append((offset, end_offset))
            return find(offset, end_offset)

    batches = read_batches(cast(Log, Watching()), 10, 1, at_least_one=True, is_read_committed=True)
    assert batches is not None
    assert [span.is_skipped for span in batches] == [True]
    assert asked == [(10, 11)]


def test_a_part_holds_the_batches_of_some_offsets(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    for _ in range(4):
        append(log, b"a", b"b", b"c")
    batches = read_batches(log, 0, 1 << 20, at_least_one=True, is_read_committed=False)
    assert batches is not None
    assert len(list(batches)) == 4
    found = [header.base_offset for _, header in headers(batches.part(4, 8).read())]
    assert found == [3, 6]
