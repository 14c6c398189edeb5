"""Idempotent and transactional producers, as one partition sees them."""

import struct
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequenceNumber,
    TransactionCoordinatorFenced,
)
from headrace.protocol.batches import Record, build_batch
from headrace.storage import producer_snapshots
from headrace.storage.appending import append_as_leader
from headrace.storage.log import Log
from headrace.storage.producer_snapshots import CorruptSnapshot
from headrace.storage.producer_state import (
    NOT_VERIFIED,
    SEQUENCE_MAX,
    Origin,
    Producer,
    RememberedBatch,
)
from tests.builders.logs import NOW, append, new_log, records_in, reopened, sequenced, values_of

ABORT, COMMIT = 0, 1
LAST = SEQUENCE_MAX


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return new_log(tmp_path)


def in_transaction(log: Log, sequence: int, producer_id: int = 7) -> int:
    return sequenced(log, sequence, producer_id=producer_id, transactional=True).base_offset


def end(
    log: Log,
    kind: int,
    producer_id: int = 7,
    epoch: int = 0,
    coordinator_epoch: int = 0,
    transaction_version: int = 0,
) -> int:
    """Write the marker that ends a transaction, as its coordinator has it done."""
    key = struct.pack(">hh", 0, kind)
    value = struct.pack(">hi", 0, coordinator_epoch)
    marker = build_batch(
        [Record(0, NOW, key, value)],
        producer_id=producer_id,
        producer_epoch=epoch,
        transactional=True,
        control=True,
    )
    info = append_as_leader(
        log, memoryview(marker), 0, NOW, Origin.COORDINATOR, transaction_version
    )
    log.advance_high_watermark(log.log_end_offset)
    return info.base_offset


# Sequence numbers


def test_batches_that_follow_each_other_are_taken(log: Log) -> None:
    for sequence in (0, 3, 6):
        sequenced(log, sequence, count=3)
    assert log.log_end_offset == 9


def test_a_batch_sent_again_is_answered_with_its_first_offset_and_not_written(log: Log) -> None:
    """PRD: a retry after a lost answer must not make a second record."""
    first = sequenced(log, 0, count=2)
    sequenced(log, 2)
    again = sequenced(log, 0, count=2)
    assert again.duplicate
    assert (again.base_offset, again.last_offset) == (first.base_offset, first.last_offset)
    assert log.log_end_offset == 3


def test_five_batches_are_remembered(log: Log) -> None:
    for sequence in range(6):
        sequenced(log, sequence)
    assert sequenced(log, 1).base_offset == 1
    with pytest.raises(OutOfOrderSequenceNumber):
        sequenced(log, 0)


@pytest.mark.parametrize("sequence", [2, 5, 0])
def test_a_batch_after_a_missing_one_is_refused(log: Log, sequence: int) -> None:
    sequenced(log, 0, count=1)
    with pytest.raises(OutOfOrderSequenceNumber):
        sequenced(log, sequence, count=2)
    assert log.log_end_offset == 1


def test_an_unknown_producer_may_start_at_any_sequence(log: Log) -> None:
    assert sequenced(log, 41).base_offset == 0
    assert sequenced(log, 42).base_offset == 1


def test_sequence_numbers_go_round(log: Log) -> None:
    sequenced(log, LAST - 1, count=2)
    sequenced(log, 0)
    sequenced(log, 1)
    assert log.log_end_offset == 4


def test_a_batch_may_span_the_wrap_of_sequences(log: Log) -> None:
    sequenced(log, LAST, count=3)
    assert sequenced(log, 2).base_offset == 3
    assert sequenced(log, LAST, count=3).duplicate


def test_a_new_epoch_starts_at_zero(log: Log) -> None:
    sequenced(log, 0)
    with pytest.raises(OutOfOrderSequenceNumber):
        sequenced(log, 1, producer_epoch=1)
    assert sequenced(log, 0, producer_epoch=1).base_offset == 1


def test_an_old_epoch_is_fenced(log: Log) -> None:
    sequenced(log, 0, producer_epoch=1)
    with pytest.raises(InvalidProducerEpoch):
        sequenced(log, 1, producer_epoch=0)


def test_producers_do_not_disturb_each_other(log: Log) -> None:
    sequenced(log, 0, producer_id=1)
    sequenced(log, 0, producer_id=2)
    append(log, b"no producer id")
    sequenced(log, 1, producer_id=1)
    assert log.log_end_offset == 4


def test_a_refused_append_does_not_count(log: Log) -> None:
    sequenced(log, 0)
    with pytest.raises(OutOfOrderSequenceNumber):
        sequenced(log, 7)
    assert sequenced(log, 1).base_offset == 1


@pytest.mark.parametrize("clean", [True, False])
def test_a_retry_is_recognised_after_a_restart(log: Log, clean: bool) -> None:
    """Only the newest batch of each producer survives a clean stop, as in Kafka."""
    sequenced(log, 0)
    sequenced(log, 1)
    log = reopened(log, clean=clean)
    assert sequenced(log, 1).duplicate
    assert sequenced(log, 2).base_offset == 2


def test_producers_are_restored_from_a_snapshot_and_later_records(tmp_path: Path) -> None:
    log = new_log(tmp_path, segment_bytes=400)
    for sequence in range(12):
        sequenced(log, sequence)
    log.flush()
    log = reopened(log, recovery_point=log.recovery_point)
    assert sequenced(log, 12).base_offset == 12


def test_silent_producers_expire(tmp_path: Path) -> None:
    log = new_log(tmp_path, producer_id_expiration_ms=1000)
    sequenced(log, 0)
    in_transaction(log, 0, producer_id=8)
    log.expire_producers(NOW + 999)
    assert set(log.producers.entries) == {7, 8}
    log.expire_producers(NOW + 1000)
    assert set(log.producers.entries) == {8}, "an open transaction keeps its producer"


# Transactions


def test_the_stable_offset_waits_for_the_oldest_open_transaction(log: Log) -> None:
    append(log)
    assert log.last_stable_offset == 1
    in_transaction(log, 0)
    append(log)
    in_transaction(log, 0, producer_id=8)
    assert (log.last_stable_offset, log.high_watermark) == (1, 4)
    end(log, COMMIT)
    assert log.last_stable_offset == 3
    end(log, COMMIT, producer_id=8)
    assert log.last_stable_offset == log.high_watermark == 6


def test_an_ended_transaction_is_stable_once_its_marker_is_committed(log: Log) -> None:
    in_transaction(log, 0)
    log.high_watermark = 1
    marker = build_batch(
        [Record(0, NOW, struct.pack(">hh", 0, COMMIT), struct.pack(">hi", 0, 0))],
        producer_id=7,
        producer_epoch=0,
        transactional=True,
        control=True,
    )
    append_as_leader(log, memoryview(marker), 0, NOW, Origin.COORDINATOR)
    assert log.last_stable_offset == 0
    log.advance_high_watermark(2)
    assert log.last_stable_offset == 2


def test_aborted_transactions_are_listed_for_reads_across_them(log: Log) -> None:
    in_transaction(log, 0)
    append(log)
    marker = end(log, ABORT)
    append(log)
    found = log.aborted_transactions(0, 4)
    assert [(one.producer_id, one.first_offset, one.last_offset) for one in found] == [
        (7, 0, marker)
    ]
    assert log.aborted_transactions(3, 4) == []


def test_committed_and_empty_transactions_are_not_listed(log: Log) -> None:
    in_transaction(log, 0)
    end(log, COMMIT)
    end(log, ABORT)
    assert log.aborted_transactions(0, log.log_end_offset) == []
    assert log.last_stable_offset == 3


@pytest.mark.parametrize("clean", [True, False])
def test_transactions_are_as_they_were_after_a_restart(log: Log, clean: bool) -> None:
    in_transaction(log, 0)
    end(log, ABORT)
    in_transaction(log, 0, producer_id=8)
    log = reopened(log, clean=clean)
    assert log.last_stable_offset == 2
    assert [one.producer_id for one in log.aborted_transactions(0, 3)] == [7]


def test_a_transaction_can_end_in_a_later_segment(tmp_path: Path) -> None:
    log = new_log(tmp_path, segment_bytes=300)
    in_transaction(log, 0)
    for _ in range(6):
        append(log, b"x" * 50)
    end(log, ABORT)
    assert [one.first_offset for one in log.aborted_transactions(0, 1)] == [0]
    log.flush()
    log = reopened(log, recovery_point=log.recovery_point)
    assert [one.first_offset for one in log.aborted_transactions(0, 1)] == [0]


def test_an_abort_is_listed_once_however_often_the_log_is_read_again(tmp_path: Path) -> None:
    log = new_log(tmp_path, segment_bytes=300)
    in_transaction(log, 0)
    end(log, ABORT)
    for _ in range(6):
        append(log, b"x" * 50)
    log.flush()
    for path in Path(log.directory).glob("*.snapshot"):
        path.unlink()
    log = reopened(log, recovery_point=log.recovery_point)
    assert len(log.aborted_transactions(0, 8)) == 1


def test_a_producer_in_a_transaction_may_not_write_outside_of_it(log: Log) -> None:
    in_transaction(log, 0)
    with pytest.raises(InvalidTxnState):
        sequenced(log, 1)


def test_markers_of_an_old_epoch_or_coordinator_are_refused(log: Log) -> None:
    in_transaction(log, 0)
    end(log, COMMIT, epoch=2, coordinator_epoch=5)
    with pytest.raises(InvalidProducerEpoch):
        end(log, COMMIT, epoch=1, coordinator_epoch=5)
    with pytest.raises(TransactionCoordinatorFenced):
        end(log, COMMIT, epoch=2, coordinator_epoch=4)


def test_a_transaction_begins_only_where_its_coordinator_was_asked(log: Log) -> None:
    """DEL-5: a transaction without an entry at the coordinator would never end (KIP-890)."""
    with pytest.raises(InvalidTxnState):
        sequenced(log, 0, transactional=True, transaction_version=NOT_VERIFIED)
    in_transaction(log, 0)
    sequenced(log, 1, transactional=True, transaction_version=NOT_VERIFIED)
    end(log, COMMIT)
    with pytest.raises(InvalidTxnState):
        sequenced(log, 2, transactional=True, transaction_version=NOT_VERIFIED)
    assert log.last_stable_offset == log.log_end_offset


def test_a_batch_of_the_last_transaction_sent_again_is_recognised(log: Log) -> None:
    first = in_transaction(log, 0)
    end(log, COMMIT)
    again = sequenced(log, 0, transactional=True)
    assert (again.duplicate, again.base_offset) == (True, first)
    with pytest.raises(InvalidTxnState):
        sequenced(log, 0, transactional=True, transaction_version=NOT_VERIFIED)


def test_a_v2_transaction_begins_with_the_first_sequence_number(log: Log) -> None:
    with pytest.raises(OutOfOrderSequenceNumber):
        sequenced(log, 3, transactional=True, transaction_version=2)
    sequenced(log, 3, transactional=True, transaction_version=0)


def test_a_v2_marker_never_ends_the_transaction_after_its_own(log: Log) -> None:
    """DEL-5: a marker that comes late has the epoch that the next transaction writes with."""
    in_transaction(log, 0)
    end(log, COMMIT, epoch=1, transaction_version=2)
    end(log, COMMIT, epoch=1, transaction_version=2)  # The same marker again does no harm.
    sequenced(log, 0, transactional=True, producer_epoch=1, transaction_version=2)
    with pytest.raises(InvalidProducerEpoch):
        end(log, COMMIT, epoch=1, transaction_version=2)
    end(log, COMMIT, epoch=2, transaction_version=2)
    assert log.last_stable_offset == log.log_end_offset


def test_a_slice_has_its_end_offset(tmp_path: Path) -> None:
    log = new_log(tmp_path, segment_bytes=400)
    for _ in range(12):
        append(log, b"x" * 50)
    assert len(log.segments) > 2
    for offset in range(12):
        slice_ = log.read(offset, 250, log.high_watermark)
        assert log.end_of(slice_, offset) == records_in(slice_.read())[-1].offset + 1


def test_many_aborts_are_found_by_their_offsets(log: Log) -> None:
    for number in range(20):
        in_transaction(log, number)
        end(log, ABORT)
    assert [one.first_offset for one in log.aborted_transactions(10, 14)] == [10, 12]
    log = reopened(log, clean=True)
    assert [one.first_offset for one in log.aborted_transactions(10, 14)] == [10, 12]
    assert len(log.aborted_transactions(0, 40)) == 20


def test_coordinators_write_without_sequence_numbers(log: Log) -> None:
    fields: dict[str, Any] = {"producer_id": 7, "producer_epoch": 1, "transactional": True}
    append(log, origin=Origin.COORDINATOR, **fields)
    append(log, origin=Origin.COORDINATOR, **fields)
    with pytest.raises(InvalidProducerEpoch):
        append(log, origin=Origin.COORDINATOR, **(fields | {"producer_epoch": 0}))
    assert len(values_of(log)) == 2


# Snapshot files


def test_a_snapshot_has_kafkas_bytes() -> None:
    producer = Producer(7, 3)
    producer.last_timestamp = NOW
    producer.coordinator_epoch = 2
    producer.batches.append(RememberedBatch(9, 100, 4, NOW))
    content = producer_snapshots.encode([producer])
    assert struct.unpack(">hIi", content[:10])[::2] == (1, 1)
    assert struct.unpack(">qhiqiqiq", content[10:]) == (7, 3, 9, 100, 4, NOW, 2, -1)
    (found,) = producer_snapshots.decode(content)
    assert (found.epoch, found.batches) == (3, producer.batches)


def test_any_damage_to_a_snapshot_is_noticed() -> None:
    producer = Producer(7, 3)
    content = producer_snapshots.encode([producer])
    for at in range(len(content)):
        damaged = bytearray(content)
        damaged[at] ^= 0xFF
        with pytest.raises(CorruptSnapshot):
            producer_snapshots.decode(bytes(damaged))
        with pytest.raises(CorruptSnapshot):
            producer_snapshots.decode(content[:at])
