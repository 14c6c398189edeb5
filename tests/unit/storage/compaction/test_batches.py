"""The records of a batch that compaction keeps."""

import struct
from typing import Any

import pytest

from headrace.errors import CorruptMessage
from headrace.protocol.batches import (
    HEADER_SIZE,
    BatchHeader,
    Record,
    build_batch,
    check_crc,
    read_header,
    records_of,
)
from headrace.storage.compaction.batches import Compaction, KeptBatch, LastRecord, map_batch
from headrace.storage.compaction.cleaned_transactions import CleanedTransactions
from headrace.storage.compaction.offset_map import OffsetMap
from headrace.storage.indexes import AbortedTransaction

NOW = 1_000_000
RETENTION = 500
ADA = 7


def record(offset: int, key: str | None, value: str | None = "v", timestamp: int = 900) -> Record:
    return Record(
        offset,
        timestamp,
        None if key is None else key.encode(),
        None if value is None else value.encode(),
    )


def compaction(
    last_offsets: dict[str, int], mapped_offset: int = 1_000, now_ms: int = NOW, **options: Any
) -> Compaction:
    offsets = OffsetMap()
    for key, offset in last_offsets.items():
        offsets.put(key.encode(), offset)
    return Compaction(
        offsets,
        mapped_offset,
        end_offset=options.get("end_offset", 1 << 40),
        now_ms=now_ms,
        delete_retention_ms=RETENTION,
        transactions=CleanedTransactions(options.get("aborted", ())),
        producers=options.get("producers", {}),
    )


def keep(batch: bytearray, rules: Compaction) -> KeptBatch | None:
    return rules.keep(memoryview(batch), read_header(batch))


def kept(batch: bytearray, rules: Compaction) -> bytes:
    result = keep(batch, rules)
    assert result is not None
    data = bytes(result.data)
    check_crc(data, 0, len(data))
    assert result.last_offset == read_header(data).last_offset
    assert result.max_timestamp == read_header(data).max_timestamp
    return data


def marker(offset: int, kind: int, **options: Any) -> bytearray:
    key, value = struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 3)
    return build_batch(
        [Record(offset, 900, key, value)],
        transactional=True,
        control=True,
        producer_id=ADA,
        producer_epoch=1,
        **options,
    )


def sequence_numbers(header: BatchHeader) -> tuple[int, int, int, int]:
    return header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence


def test_the_keys_of_a_batch_are_mapped_from_an_offset_on() -> None:
    offsets = OffsetMap()
    batch = build_batch([record(5, "a"), record(6, "b"), record(7, None), record(8, "a")], codec=1)
    map_batch(offsets, memoryview(batch), read_header(batch), 6)
    assert (offsets.get(b"a"), offsets.get(b"b"), len(offsets)) == (8, 6, 2)


def test_a_batch_without_removed_records_is_copied_unchanged() -> None:
    batch = build_batch([record(5, "a"), record(6, "b")], codec=4)
    result = keep(batch, compaction({"a": 5, "b": 6}))
    assert result is not None
    assert isinstance(result.data, memoryview)
    assert bytes(result.data) == batch


@pytest.mark.parametrize("codec", range(5))
def test_records_that_are_out_of_date_go_and_the_rest_keeps_its_place(codec: int) -> None:
    """RET-5: offsets, timestamps, sequence numbers and codec are unchanged."""
    records = [
        record(5, "a", timestamp=900),
        record(6, "b", timestamp=990),
        record(7, "c", timestamp=950),
    ]
    batch = build_batch(
        records, codec=codec, leader_epoch=4, producer_id=9, producer_epoch=1, base_sequence=20
    )
    after = kept(batch, compaction({"a": 100, "b": 6, "c": 7}))
    assert records_of(after) == records[1:]
    header = read_header(after)
    assert (header.base_offset, header.last_offset, header.count) == (5, 7, 2)
    assert (header.codec, header.leader_epoch, header.max_timestamp) == (codec, 4, 990)
    assert sequence_numbers(header) == sequence_numbers(read_header(batch))


def test_a_batch_keeps_its_last_offset_when_its_last_record_goes() -> None:
    after = kept(build_batch([record(5, "a"), record(6, "b")]), compaction({"a": 5, "b": 9}))
    assert [item.offset for item in records_of(after)] == [5]
    assert read_header(after).last_offset == 6


def test_a_batch_that_loses_everything_goes() -> None:
    assert keep(build_batch([record(5, "a")]), compaction({"a": 6})) is None


def test_records_beyond_the_mapped_offset_are_kept() -> None:
    """RET-6: the head of the log is left alone."""
    batch = build_batch([record(5, "a"), record(6, "a")])
    after = kept(batch, compaction({"a": 6}, mapped_offset=4))
    assert after == batch


def test_a_record_without_key_goes() -> None:
    after = kept(build_batch([record(5, None), record(6, "a")]), compaction({"a": 6}))
    assert [item.offset for item in records_of(after)] == [6]


def test_a_tombstone_gets_a_horizon_when_it_is_first_met() -> None:
    """RET-7: it stays visible for delete.retention.ms from then on."""
    batch = build_batch([record(5, "a", None), record(6, "b", timestamp=960)])
    after = kept(batch, compaction({"a": 5, "b": 6}))
    assert read_header(after).delete_horizon_ms == NOW + RETENTION
    assert records_of(after) == records_of(batch)
    assert read_header(after).max_timestamp == 960


def test_a_tombstone_stays_until_its_horizon_and_goes_then() -> None:
    """RET-7."""
    rules = {"a": 5, "b": 6}
    batch = build_batch([record(5, "a", None), record(6, "b")])
    with_horizon = bytearray(kept(batch, compaction(rules)))
    assert kept(with_horizon, compaction(rules, now_ms=NOW + RETENTION - 1)) == with_horizon
    after = kept(with_horizon, compaction(rules, now_ms=NOW + RETENTION))
    assert [item.key for item in records_of(after)] == [b"b"]
    assert read_header(after).delete_horizon_ms == NOW + RETENTION


def test_the_times_of_a_broker_clocked_batch_survive_a_horizon() -> None:
    batch = build_batch([record(5, "a", None), record(6, "b")], log_append_time_ms=700)
    after = kept(batch, compaction({"a": 5, "b": 6}))
    assert {item.timestamp for item in records_of(after)} == {700}


def test_the_last_batch_of_a_producer_stays_without_its_records() -> None:
    batch = build_batch(
        [record(5, "a"), record(6, "a")],
        codec=4,
        producer_id=ADA,
        producer_epoch=2,
        base_sequence=8,
        leader_epoch=3,
    )
    rules = compaction({"a": 50}, producers={ADA: LastRecord(6, 2)})
    after = kept(batch, rules)
    header = read_header(after)
    assert len(after) == HEADER_SIZE
    assert (header.count, header.codec, header.base_timestamp) == (0, 0, -1)
    assert (header.base_offset, header.last_offset, header.leader_epoch) == (5, 6, 3)
    assert header.max_timestamp == 900
    assert sequence_numbers(header) == sequence_numbers(read_header(batch))


def test_an_emptied_batch_goes_when_its_producer_has_written_on() -> None:
    batch = build_batch([record(5, "a")], producer_id=ADA, producer_epoch=2, base_sequence=8)
    emptied = bytearray(kept(batch, compaction({"a": 50}, producers={ADA: LastRecord(5, 2)})))
    assert keep(emptied, compaction({}, producers={ADA: LastRecord(60, 2)})) is None
    assert keep(emptied, compaction({}, producers={ADA: LastRecord(5, 2)})) is not None


def test_the_last_batch_of_the_round_stays_so_that_its_end_is_known() -> None:
    batch = build_batch([record(5, "a"), record(6, "a")])
    header = read_header(kept(batch, compaction({"a": 50}, end_offset=7)))
    assert (header.count, header.last_offset) == (0, 6)


def test_aborted_records_go() -> None:
    batch = build_batch([record(5, "a")], producer_id=ADA, producer_epoch=1, transactional=True)
    aborted = [AbortedTransaction(ADA, 5, 6, 7)]
    assert keep(batch, compaction({"a": 5}, aborted=aborted)) is None
    assert keep(batch, compaction({"a": 5})) is not None


def test_a_marker_is_kept_with_a_horizon_before_it_goes() -> None:
    with_horizon = bytearray(kept(marker(6, 1), compaction({})))
    assert read_header(with_horizon).delete_horizon_ms == NOW + RETENTION
    assert records_of(with_horizon) == records_of(marker(6, 1))
    assert kept(with_horizon, compaction({}, now_ms=NOW + RETENTION - 1)) == with_horizon
    assert keep(with_horizon, compaction({}, now_ms=NOW + RETENTION)) is None


def test_a_marker_whose_records_are_still_there_gets_no_horizon() -> None:
    rules = compaction({"a": 5})
    keep(
        build_batch([record(5, "a")], producer_id=ADA, producer_epoch=1, transactional=True), rules
    )
    assert kept(marker(6, 1), rules) == marker(6, 1)


def test_the_marker_that_carries_a_producers_epoch_stays_empty() -> None:
    with_horizon = bytearray(kept(marker(6, 0), compaction({})))
    late = compaction({}, now_ms=NOW + RETENTION, producers={ADA: LastRecord(None, 1)})
    header = read_header(kept(with_horizon, late))
    assert (header.count, header.is_control, header.producer_epoch) == (0, True, 1)
    assert header.delete_horizon_ms is None


def test_control_records_of_the_quorum_are_left_alone() -> None:
    assert kept(marker(6, 2), compaction({})) == marker(6, 2)


def test_damaged_batches_are_not_made_to_look_sound() -> None:
    batch = build_batch([record(5, "a"), record(6, "b")])
    batch[-2] ^= 1
    with pytest.raises(CorruptMessage):
        keep(batch, compaction({"a": 9, "b": 6}))


def test_statistics_count_records_and_bytes() -> None:
    rules = compaction({"a": 6, "b": 9})
    before = build_batch([record(5, "a"), record(6, "a"), record(7, "b")])
    after = kept(before, rules)
    assert (rules.stats.records_read, rules.stats.records_written) == (3, 1)
    assert (rules.stats.bytes_read, rules.stats.bytes_written) == (len(before), len(after))
