"""Which batches of transactions compaction may drop."""

from headrace.protocol.batches import CONTROL, TRANSACTIONAL, BatchHeader
from headrace.protocol.control_records import ControlType
from headrace.storage.compaction.cleaned_transactions import CleanedTransactions
from headrace.storage.indexes import AbortedTransaction

ADA, BOB = 1, 2
LEADER_CHANGE = 2


def batch(offset: int, producer_id: int, attributes: int = TRANSACTIONAL) -> BatchHeader:
    return BatchHeader(offset, 61, 0, 2, 0, attributes, 0, 0, 0, producer_id, 0, 0, 1)


def marker(offset: int, producer_id: int) -> BatchHeader:
    return batch(offset, producer_id, TRANSACTIONAL | CONTROL)


def aborted(producer_id: int, first_offset: int, last_offset: int) -> AbortedTransaction:
    return AbortedTransaction(producer_id, first_offset, last_offset, last_offset + 1)


def test_records_of_an_aborted_transaction_may_go() -> None:
    transactions = CleanedTransactions([aborted(ADA, 10, 12)])
    assert not transactions.is_aborted(batch(9, ADA))
    assert transactions.is_aborted(batch(10, ADA))
    assert not transactions.is_aborted(batch(11, BOB))


def test_records_outside_of_transactions_stay() -> None:
    transactions = CleanedTransactions([aborted(ADA, 10, 12)])
    assert not transactions.is_aborted(batch(11, ADA, attributes=0))


def test_an_abort_marker_stays_while_records_were_there() -> None:
    transactions = CleanedTransactions([aborted(ADA, 10, 12)])
    transactions.is_aborted(batch(10, ADA))
    assert not transactions.is_marker_useless(marker(12, ADA), ControlType.ABORT)
    assert transactions.take_retained() == [aborted(ADA, 10, 12)]
    assert transactions.take_retained() == []


def test_an_abort_marker_without_records_is_useless() -> None:
    transactions = CleanedTransactions([aborted(ADA, 10, 12)])
    assert transactions.is_marker_useless(marker(12, ADA), ControlType.ABORT)
    assert transactions.take_retained() == []


def test_after_the_marker_the_producer_is_trusted_again() -> None:
    transactions = CleanedTransactions([aborted(ADA, 10, 12), aborted(ADA, 20, 22)])
    transactions.is_aborted(batch(10, ADA))
    transactions.is_marker_useless(marker(12, ADA), ControlType.ABORT)
    assert not transactions.is_aborted(batch(13, ADA))
    assert transactions.is_aborted(batch(21, ADA))


def test_a_commit_marker_stays_while_records_were_there() -> None:
    transactions = CleanedTransactions([])
    transactions.is_aborted(batch(10, ADA))
    assert not transactions.is_marker_useless(marker(12, ADA), ControlType.COMMIT)
    assert transactions.is_marker_useless(marker(14, ADA), ControlType.COMMIT)


def test_a_marker_that_was_emptied_is_useless() -> None:
    assert CleanedTransactions([]).is_marker_useless(marker(3, ADA), None)


def test_control_records_of_the_quorum_stay() -> None:
    assert not CleanedTransactions([]).is_marker_useless(marker(3, -1), LEADER_CHANGE)
