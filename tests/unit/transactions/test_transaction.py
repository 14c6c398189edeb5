"""The records of `__transaction_state`, and what replaying them makes of a shard."""

import pytest

from headrace.protocol.codec import DecodeError
from headrace.protocol.coordinator_records import CoordinatorRecord
from headrace.transactions.states import BY_LABEL, MAY_FOLLOW, State
from headrace.transactions.transaction import Transaction, Transactions, encode, tombstone
from tests.unit.transactions.test_coordinator import NOW, transaction_in


def replayed(*records: CoordinatorRecord) -> dict[str, Transaction]:
    transactions = Transactions()
    for record in records:
        transactions.replay(*record)
    return transactions.by_id


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("state", list(State))
def test_a_transaction_is_read_as_it_was_written(state: State, version: int) -> None:
    fields = {"client_version": 2, "next_producer_id": 9, "previous_producer_id": 7}
    transaction = transaction_in(state, **(fields if version else {}))
    assert replayed(encode(transaction, version)) == {"t": transaction}


def test_the_record_has_kafkas_bytes() -> None:
    """DEL-5: what kafka-transaction-coordinator 4.3.1 writes for the same transaction."""
    record = encode(transaction_in(State.ONGOING, last_producer_epoch=3, client_version=2), 2)
    assert record.key.hex() == "0000" + "0001" + "74"
    assert record.value is not None
    assert record.value.hex() == (
        "0001"
        "0000000000000007"
        "0004"
        "0000ea60"
        "01"
        "02" + "07" + b"orders".hex() + "02" + "00000000" + "00"
        f"{NOW:016x}{NOW:016x}"
        "01" + "02" + "02" + "0002"
    )


def test_a_tombstone_removes_an_id() -> None:
    record = encode(transaction_in(State.EMPTY), 2)
    assert replayed(record, tombstone("t")) == {}
    assert replayed(tombstone("t")) == {}


def test_records_of_unknown_types_are_passed_over() -> None:
    """A newer Kafka may have written them."""
    assert replayed(CoordinatorRecord(b"\0\x09\0\0", b"\0\0")) == {}


def test_an_invalid_state_is_rejected() -> None:
    record = encode(transaction_in(State.EMPTY), 0)
    assert record.value is not None
    damaged = bytearray(record.value)
    damaged[16] = 99
    with pytest.raises(DecodeError):
        replayed(CoordinatorRecord(record.key, bytes(damaged)))


def test_prepared_transactions_are_found_after_a_crash() -> None:
    transactions = Transactions()
    for number, state in enumerate(State):
        transactions.by_id[str(number)] = transaction_in(state)
    assert {found.state for found in transactions.prepared} == {
        State.PREPARE_COMMIT,
        State.PREPARE_ABORT,
    }


def test_invalid_transitions_are_rejected() -> None:
    for before in State:
        for after in State:
            transactions = Transactions()
            transactions.by_id["t"] = transaction_in(before)
            if before in MAY_FOLLOW[after]:
                transactions.apply(transaction_in(after))
                assert transactions.by_id["t"].state is after
            else:
                with pytest.raises(AssertionError):
                    transactions.apply(transaction_in(after))


def test_states_have_the_names_of_kafkas_tools() -> None:
    assert list(BY_LABEL) == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]
