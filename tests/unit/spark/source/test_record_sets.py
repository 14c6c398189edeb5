"""Record sets: the selected batches, and the errors of damaged ones."""

import pytest

from headrace.protocol.batches import Record, build_batch
from headrace.protocol.compression import Codec
from headrace.protocol.control_records import ControlType, control_key
from headrace.spark.source import plain
from headrace.spark.source.errors import DamagedRecords
from headrace.spark.source.record_columns import Wanted
from headrace.spark.source.record_sets import Aborted, chunks, walk

ALL = 1 << 60


def batch(first: int, count: int = 2, **given: object) -> bytearray:
    records = [Record(first + index, 1000 + index, None, b"v") for index in range(count)]
    return build_batch(records, **given)  # type: ignore[arg-type]


def marker(offset: int, kind: ControlType, producer_id: int) -> bytearray:
    record = Record(offset, 1000, control_key(kind), b"\0" * 6)
    return build_batch([record], producer_id=producer_id, transactional=True, control=True)


def transactional(first: int, producer_id: int) -> bytearray:
    return batch(first, producer_id=producer_id, transactional=True)


def offsets(
    data: bytearray,
    first: int = 0,
    end: int = ALL,
    aborted: Aborted | None = None,
    timestamp_ms_min: int | None = None,
) -> list[int]:
    view = memoryview(data)
    walked = walk("t-0", view, first, end, aborted, timestamp_ms_min)
    found: list[int] = []
    for chunk in chunks("t-0", view, walked.batches, checks_crcs=True):
        found += plain.decode(chunk, first, end, Wanted()).offsets.to_pylist()
    return found


def test_a_batch_that_is_cut_off_is_left_for_the_next_fetch() -> None:
    data = batch(0) + batch(2)
    walked = walk("t-0", memoryview(data)[:-1], 0, ALL)
    assert walked.next_offset == 2
    assert walk("t-0", memoryview(data)[:30], 0, ALL).next_offset is None


def test_records_outside_of_the_range_are_dropped() -> None:
    assert offsets(batch(0, 4) + batch(4, 4) + batch(8), 3, 6) == [3, 4, 5]


def test_records_of_aborted_transactions_are_dropped_and_those_after_the_marker_are_not() -> None:
    data = (
        transactional(0, 7)
        + transactional(2, 8)
        + marker(4, ControlType.ABORT, 7)
        + transactional(5, 7)
        + marker(7, ControlType.COMMIT, 8)
        + marker(8, ControlType.COMMIT, 7)
        + batch(9)
    )
    assert offsets(data, aborted=[(7, 0)]) == [2, 3, 5, 6, 9, 10]
    assert offsets(data, aborted=None) == [0, 1, 2, 3, 5, 6, 9, 10]


def test_a_transaction_that_was_aborted_twice_in_a_set_is_dropped_twice() -> None:
    data = (
        transactional(0, 7)
        + marker(2, ControlType.ABORT, 7)
        + transactional(3, 7)
        + marker(5, ControlType.ABORT, 7)
        + transactional(6, 7)
    )
    assert offsets(data, aborted=[(7, 3), (7, 0)]) == [6, 7]


def test_batches_that_are_too_old_are_passed_over() -> None:
    young = build_batch([Record(2, 5000, None, b"v")])
    assert offsets(batch(0) + young, timestamp_ms_min=2000) == [2]


def test_the_log_s_own_time_is_the_time_of_every_record() -> None:
    data = batch(0, log_append_time_ms=77) + batch(2)
    view = memoryview(data)
    found = list(chunks("t-0", view, walk("t-0", view, 0, ALL).batches, checks_crcs=True))
    assert [chunk.is_append_time for chunk in found] == [True, False]
    times = plain.decode(found[0], 0, ALL, Wanted()).timestamps.cast("int64").to_pylist()
    assert times == [77_000, 77_000]


def test_compressed_batches_become_one_chunk() -> None:
    data = batch(0, codec=Codec.ZSTD) + batch(2, codec=Codec.LZ4) + batch(4, codec=Codec.GZIP)
    view = memoryview(data)
    found = list(chunks("t-0", view, walk("t-0", view, 0, ALL).batches, checks_crcs=True))
    assert [len(chunk.blocks) for chunk in found] == [3]


def test_a_wrong_checksum_names_partition_and_offset() -> None:
    data = batch(40)
    data[-1] ^= 1
    with pytest.raises(DamagedRecords, match="t-0: the batch at offset 40 is damaged"):
        offsets(data)


def test_batches_in_no_order_are_damage() -> None:
    with pytest.raises(DamagedRecords, match="comes after"):
        offsets(batch(8) + batch(2))


def test_a_batch_that_compaction_emptied_is_passed() -> None:
    emptied = batch(0)[:61]
    emptied[8:12] = (61 - 12).to_bytes(4, "big")
    emptied[57:61] = bytes(4)
    assert offsets(emptied + batch(2)) == [2, 3]
