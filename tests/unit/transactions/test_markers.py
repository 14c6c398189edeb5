"""The control batches that end transactions."""

import pytest

from headrace.protocol.batches import Record, build_batch, check_crc, read_header, records_of
from headrace.storage.producer_replay import marker_of
from headrace.storage.producer_state import EndMarker
from headrace.transactions.markers import marker_batch


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_marker_has_the_producer_and_the_outcome(is_commit: bool) -> None:
    """DEL-5: the coordinator writes a commit or abort marker into each partition."""
    batch = marker_batch(7, 3, 5, 1000, is_commit=is_commit)
    header = read_header(batch)
    check_crc(batch, 0, len(batch))
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, -1)
    assert (header.is_transactional, header.is_control, header.count) == (True, True, 1)
    assert marker_of(batch) == EndMarker(is_commit, 5, 1000)
    (record,) = records_of(batch)
    assert (record.key, record.value) == (
        b"\0\0\0" + bytes([is_commit]),
        b"\0\0\0\0\0\5",
    )


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_marker_equals_the_batch_of_the_general_writer(is_commit: bool) -> None:
    key, value = b"\0\0\0" + bytes([is_commit]), b"\0\0\0\0\0\5"
    general = build_batch(
        [Record(0, 1000, key, value)],
        producer_id=7,
        producer_epoch=3,
        transactional=True,
        control=True,
    )
    assert marker_batch(7, 3, 5, 1000, is_commit=is_commit) == general


def test_markers_of_another_shape_are_read_too() -> None:
    """With a header, or stamped by the broker: never seen, yet allowed."""
    key, value = b"\0\0\0\1", b"\0\0\0\0\0\5"
    with_header = build_batch(
        [Record(0, 1000, key, value, (("h", None),))], producer_id=7, producer_epoch=3, control=True
    )
    assert marker_of(with_header) == EndMarker(True, 5, 1000)
    stamped = build_batch(
        [Record(0, 1000, key, value)],
        producer_id=7,
        producer_epoch=3,
        transactional=True,
        control=True,
        log_append_time_ms=2000,
    )
    assert marker_of(stamped) == EndMarker(True, 5, 2000)
