"""The control batches that end transactions."""

import pytest

from headrace.protocol.batches import check_crc, read_header, records_of
from headrace.storage.producer_replay import marker_of
from headrace.storage.producer_state import EndMarker
from headrace.transactions.markers import marker_batch


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_marker_says_whose_transaction_ends_and_how(is_commit: bool) -> None:
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
