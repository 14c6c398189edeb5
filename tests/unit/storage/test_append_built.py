"""Batches of coordinators skip the validation, and are stored like validated ones."""

from pathlib import Path

import pytest

from headrace.errors import KafkaStorageError
from headrace.storage.appending import append_built
from headrace.storage.log import Log
from tests.builders.failing_disk import failing_writes
from tests.builders.logs import NOW, all_records, batch_of, new_log, reopened


def built(*values: bytes) -> bytearray:
    return bytearray(batch_of(*values))


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return new_log(tmp_path, segment_bytes=300)


def test_batches_follow_each_other_over_rolls_and_epochs(log: Log) -> None:
    offsets = [append_built(log, built(b"a", b"b"), 2, epoch, NOW) for epoch in (0, 0, 0, 1, 1, 2)]
    assert offsets == [0, 2, 4, 6, 8, 10]
    assert len(log.segments) > 1
    assert [entry.epoch for entry in log.leader_epochs.entries] == [0, 1, 2]


def test_appended_batches_survive_a_crash(log: Log) -> None:
    for _ in range(5):
        append_built(log, built(b"v"), 1, 0, NOW)
    again = reopened(log)
    again.advance_high_watermark(again.log_end_offset)
    assert [record.offset for record in all_records(again)] == [0, 1, 2, 3, 4]


def test_a_full_disk_leaves_nothing_behind(log: Log) -> None:
    append_built(log, built(b"first"), 1, 0, NOW)
    with failing_writes(after_bytes=10), pytest.raises(KafkaStorageError):
        append_built(log, built(b"refused"), 1, 0, NOW)
    assert append_built(log, built(b"second"), 1, 0, NOW) == 1
