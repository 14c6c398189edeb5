"""Every request in every state: what the transaction coordinator decides."""

from typing import Any

import pytest

from headrace.errors import (
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    InvalidTxnState,
    KafkaError,
    ProducerFenced,
    TransactionAbortable,
)
from headrace.storage.producer_state import EPOCH_MAX
from headrace.storage.topic_partition import TopicPartition
from headrace.transactions.coordinator import (
    NeedsProducerId,
    ProducerIdAndEpoch,
    add_partitions,
    claim,
    complete,
    end,
    fence,
    must_fence,
    verify,
)
from headrace.transactions.states import State
from headrace.transactions.transaction import Transaction

NOW = 1_700_000_000_000
LATER = NOW + 5_000
ORDERS = TopicPartition("orders", 0)
BILLS = TopicPartition("bills", 3)
OWNER = ProducerIdAndEpoch(7, 4)
AT_REST = [State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT]
PREPARED = [State.PREPARE_COMMIT, State.PREPARE_ABORT]


def transaction_in(state: State, **fields: Any) -> Transaction:
    """Transactional id "t" of producer 7 in epoch 4."""
    is_open = state is State.ONGOING or state.is_prepared
    known: dict[str, Any] = {
        "producer_id": OWNER.id,
        "producer_epoch": OWNER.epoch,
        "timeout_ms": 60_000,
        "partitions": frozenset({ORDERS}) if is_open else frozenset(),
        "start_ms": -1 if state is State.EMPTY else NOW,
        "last_update_ms": NOW,
    }
    return Transaction("t", state=state, **(known | fields))


def prepared_v2(state: State) -> Transaction:
    """As an EndTxn v5 of the owner leaves it: in the next epoch."""
    return transaction_in(state, producer_epoch=5, last_producer_epoch=4, client_version=2)


def claimed(
    current: Transaction | None,
    expected: ProducerIdAndEpoch | None = None,
    new_producer_id: int | None = None,
) -> Transaction:
    return claim(current, "t", 30_000, expected, LATER, new_producer_id)


def ended(
    current: Transaction | None,
    *,
    is_commit: bool,
    version: int,
    producer: ProducerIdAndEpoch = OWNER,
    new_producer_id: int | None = None,
) -> Transaction | None:
    return end(
        current,
        producer,
        LATER,
        is_commit=is_commit,
        client_version=version,
        new_producer_id=new_producer_id,
    )


# Claiming


def test_a_new_id_gets_a_new_producer() -> None:
    with pytest.raises(NeedsProducerId):
        claimed(None)
    step = claimed(None, new_producer_id=9)
    assert (step.producer_id, step.producer_epoch, step.state) == (9, 0, State.EMPTY)
    assert (step.timeout_ms, step.last_update_ms) == (30_000, LATER)


@pytest.mark.parametrize("state", AT_REST)
def test_a_claim_bumps_the_epoch(state: State) -> None:
    """PRD-16, DEL-4: the last owner of a transactional id is locked out."""
    step = claimed(transaction_in(state))
    assert (step.producer_id, step.producer_epoch, step.last_producer_epoch) == (7, 5, -1)
    assert (step.state, step.start_ms, step.timeout_ms) == (State.EMPTY, -1, 30_000)


@pytest.mark.parametrize("state", PREPARED)
def test_a_claim_waits_for_the_markers(state: State) -> None:
    with pytest.raises(ConcurrentTransactions):
        claimed(transaction_in(state))
    assert not must_fence(transaction_in(state), None)


def test_a_claim_of_an_open_transaction_fences_first() -> None:
    assert must_fence(transaction_in(State.ONGOING), None)
    assert must_fence(transaction_in(State.ONGOING), OWNER)
    with pytest.raises(ProducerFenced):
        must_fence(transaction_in(State.ONGOING), ProducerIdAndEpoch(8, 4))
    with pytest.raises(ConcurrentTransactions):
        claimed(transaction_in(State.ONGOING))


@pytest.mark.parametrize("state", AT_REST)
def test_a_producer_that_sends_its_id_continues(state: State) -> None:
    """KIP-360: after an error a producer gets a new epoch, and may repeat the request."""
    step = claimed(transaction_in(state), OWNER)
    assert (step.producer_epoch, step.last_producer_epoch) == (5, 4)
    again = claimed(step, OWNER)
    assert (again.producer_epoch, again.last_producer_epoch) == (5, 4)


@pytest.mark.parametrize("expected", [(7, 3), (7, 5), (8, 4), (8, EPOCH_MAX - 1)])
def test_a_replaced_producer_is_fenced(expected: tuple[int, int]) -> None:
    with pytest.raises(ProducerFenced):
        claimed(transaction_in(State.EMPTY), ProducerIdAndEpoch(*expected))


def test_a_claim_by_a_new_producer_cannot_be_repeated_by_the_old_one() -> None:
    step = claimed(transaction_in(State.EMPTY))
    with pytest.raises(ProducerFenced):
        claimed(step, OWNER)


@pytest.mark.parametrize("is_named", [True, False])
def test_an_id_without_epochs_left_gets_a_new_producer(is_named: bool) -> None:
    current = transaction_in(State.COMPLETE_COMMIT, producer_epoch=EPOCH_MAX - 1)
    owner = ProducerIdAndEpoch(7, EPOCH_MAX - 1) if is_named else None
    with pytest.raises(NeedsProducerId):
        claimed(current, owner)
    step = claimed(current, owner, 8)
    assert (step.producer_id, step.producer_epoch, step.previous_producer_id) == (8, 0, 7)
    if owner is not None:
        again = claimed(step, owner)
        assert (again.producer_id, again.producer_epoch) == (8, 0)


def test_an_expired_id_gets_a_new_producer() -> None:
    step = claimed(None, ProducerIdAndEpoch(3, 9), 8)
    assert (step.producer_id, step.producer_epoch) == (8, 0)


# Growing


@pytest.mark.parametrize("state", AT_REST)
def test_the_first_partition_begins_a_transaction(state: State) -> None:
    step = add_partitions(transaction_in(state), OWNER, {ORDERS}, LATER, 2)
    assert step is not None
    assert (step.state, step.start_ms, step.client_version) == (State.ONGOING, LATER, 2)
    assert step.partitions == {ORDERS}


def test_more_partitions_leave_the_start_alone() -> None:
    current = transaction_in(State.ONGOING)
    step = add_partitions(current, OWNER, {BILLS}, LATER)
    assert step is not None
    assert (step.start_ms, step.last_update_ms) == (NOW, LATER)
    assert step.partitions == {ORDERS, BILLS}


def test_partitions_added_twice_are_written_once() -> None:
    assert add_partitions(transaction_in(State.ONGOING), OWNER, {ORDERS}, LATER) is None


@pytest.mark.parametrize("state", PREPARED)
def test_nothing_is_added_while_the_last_transaction_ends(state: State) -> None:
    with pytest.raises(ConcurrentTransactions):
        add_partitions(transaction_in(state), OWNER, {ORDERS}, LATER)
    with pytest.raises(ConcurrentTransactions):
        verify(transaction_in(state), OWNER, {ORDERS})


@pytest.mark.parametrize("state", [*AT_REST, *PREPARED, State.ONGOING])
@pytest.mark.parametrize(
    ("producer", "error"),
    [((8, 4), InvalidProducerIdMapping), ((7, 3), ProducerFenced), ((7, 5), ProducerFenced)],
)
def test_only_the_owner_adds_verifies_and_ends(
    state: State, producer: tuple[int, int], error: type[KafkaError]
) -> None:
    """PRD-16: a fenced producer never writes."""
    current, stranger = transaction_in(state), ProducerIdAndEpoch(*producer)
    with pytest.raises(error):
        add_partitions(current, stranger, {ORDERS}, LATER)
    with pytest.raises(error):
        verify(current, stranger, {ORDERS})
    with pytest.raises(error):
        ended(current, is_commit=True, version=0, producer=stranger)


def test_an_unknown_id_has_no_owner() -> None:
    with pytest.raises(InvalidProducerIdMapping):
        add_partitions(None, OWNER, {ORDERS}, LATER)
    with pytest.raises(InvalidProducerIdMapping):
        verify(None, OWNER, {ORDERS})
    for version in (0, 2):
        with pytest.raises(InvalidProducerIdMapping):
            ended(None, is_commit=False, version=version)


def test_verifying_names_missing_partitions() -> None:
    missing = verify(transaction_in(State.ONGOING), OWNER, [ORDERS, BILLS])
    assert [(place, type(error)) for place, error in missing.items()] == [
        (BILLS, TransactionAbortable)
    ]
    assert len(verify(transaction_in(State.EMPTY), OWNER, [ORDERS])) == 1


# Ending, as clients without epoch bumps do


@pytest.mark.parametrize(
    ("state", "is_commit", "outcome"),
    [
        (State.EMPTY, True, InvalidTxnState),
        (State.EMPTY, False, InvalidTxnState),
        (State.ONGOING, True, State.PREPARE_COMMIT),
        (State.ONGOING, False, State.PREPARE_ABORT),
        (State.PREPARE_COMMIT, True, ConcurrentTransactions),
        (State.PREPARE_COMMIT, False, InvalidTxnState),
        (State.PREPARE_ABORT, True, InvalidTxnState),
        (State.PREPARE_ABORT, False, ConcurrentTransactions),
        (State.COMPLETE_COMMIT, True, None),
        (State.COMPLETE_COMMIT, False, InvalidTxnState),
        (State.COMPLETE_ABORT, True, InvalidTxnState),
        (State.COMPLETE_ABORT, False, None),
    ],
)
def test_transactions_end_or_fail_in_every_state(
    state: State, is_commit: bool, outcome: State | type[KafkaError] | None
) -> None:
    current = transaction_in(state)
    if isinstance(outcome, type):
        with pytest.raises(outcome):
            ended(current, is_commit=is_commit, version=0)
        return
    step = ended(current, is_commit=is_commit, version=0)
    assert (step.state if step else None) == outcome
    if step is not None:
        assert (step.producer_epoch, step.partitions) == (4, frozenset({ORDERS}))


# Ending with transaction.version 2


@pytest.mark.parametrize(
    ("state", "is_commit", "outcome"),
    [
        (State.EMPTY, True, InvalidTxnState),
        (State.EMPTY, False, State.PREPARE_ABORT),
        (State.ONGOING, True, State.PREPARE_COMMIT),
        (State.ONGOING, False, State.PREPARE_ABORT),
        (State.COMPLETE_COMMIT, True, InvalidTxnState),
        (State.COMPLETE_COMMIT, False, State.PREPARE_ABORT),
        (State.COMPLETE_ABORT, True, InvalidTxnState),
        (State.COMPLETE_ABORT, False, State.PREPARE_ABORT),
        (State.PREPARE_COMMIT, True, ProducerFenced),
        (State.PREPARE_COMMIT, False, ProducerFenced),
        (State.PREPARE_ABORT, True, ProducerFenced),
        (State.PREPARE_ABORT, False, ProducerFenced),
    ],
)
def test_v2_transactions_end_or_fail_in_every_state(
    state: State, is_commit: bool, outcome: State | type[KafkaError]
) -> None:
    """KIP-890: an end of the current epoch is a new request, never a retry."""
    current = transaction_in(state)
    if isinstance(outcome, type):
        with pytest.raises(outcome):
            ended(current, is_commit=is_commit, version=2)
        return
    step = ended(current, is_commit=is_commit, version=2)
    assert step is not None
    assert (step.state, step.producer_epoch, step.last_producer_epoch) == (outcome, 5, 4)
    assert (step.client_version, step.start_ms >= 0) == (2, True)


@pytest.mark.parametrize(
    ("state", "is_commit", "error"),
    [
        (State.ONGOING, True, ProducerFenced),
        (State.EMPTY, False, ProducerFenced),
        (State.PREPARE_COMMIT, True, ConcurrentTransactions),
        (State.PREPARE_COMMIT, False, InvalidTxnState),
        (State.PREPARE_ABORT, True, InvalidTxnState),
        (State.PREPARE_ABORT, False, ConcurrentTransactions),
        (State.COMPLETE_COMMIT, True, None),
        (State.COMPLETE_COMMIT, False, InvalidTxnState),
        (State.COMPLETE_ABORT, True, InvalidTxnState),
        (State.COMPLETE_ABORT, False, None),
    ],
)
def test_v2_retries_in_every_state(
    state: State, is_commit: bool, error: type[KafkaError] | None
) -> None:
    """An end of the epoch before is the same request again: its answer got lost."""
    current = prepared_v2(state)
    if error is None:
        assert ended(current, is_commit=is_commit, version=2) is None
    else:
        with pytest.raises(error):
            ended(current, is_commit=is_commit, version=2)


@pytest.mark.parametrize("state", [*PREPARED, State.COMPLETE_COMMIT, State.COMPLETE_ABORT])
@pytest.mark.parametrize("is_commit", [True, False])
def test_v2_an_end_of_the_next_owner_is_not_taken_for_ones_own(
    state: State, is_commit: bool
) -> None:
    """PRD-16: the new owner's client is older and does not bump; the old one stays locked out."""
    replaced = ProducerIdAndEpoch(OWNER.id, OWNER.epoch - 1)
    with pytest.raises(ProducerFenced):
        ended(transaction_in(state), is_commit=is_commit, version=2, producer=replaced)


@pytest.mark.parametrize("is_commit", [True, False])
def test_v2_the_last_epoch_hands_over_to_a_new_producer(is_commit: bool) -> None:
    last = ProducerIdAndEpoch(7, EPOCH_MAX - 1)
    current = transaction_in(State.ONGOING, producer_epoch=last.epoch)
    with pytest.raises(NeedsProducerId):
        ended(current, is_commit=is_commit, version=2, producer=last)
    step = ended(current, is_commit=is_commit, version=2, producer=last, new_producer_id=8)
    assert step is not None
    assert (step.producer_id, step.producer_epoch) == (7, EPOCH_MAX)
    assert step.next_producer_id == 8
    done = complete(step, LATER)
    assert (done.producer_id, done.producer_epoch, done.previous_producer_id) == (8, 0, 7)
    assert done.next_producer_id == -1
    assert ended(done, is_commit=is_commit, version=2, producer=last) is None


# The coordinator's own ends


def test_a_fence_bumps_the_epoch_once() -> None:
    for version in (0, 1, 2):
        step = fence(transaction_in(State.ONGOING), LATER, version)
        assert (step.state, step.producer_epoch) == (State.PREPARE_ABORT, 5)
        with pytest.raises(ProducerFenced):
            add_partitions(step, OWNER, {BILLS}, LATER)


def test_a_fence_can_always_bump() -> None:
    current = transaction_in(State.ONGOING, producer_epoch=EPOCH_MAX - 1)
    assert fence(current, LATER, 0).producer_epoch == EPOCH_MAX
    with pytest.raises(NeedsProducerId):
        fence(current, LATER, 2)
    step = fence(current, LATER, 2, 8)
    assert complete(step, LATER).producer_id == 8


def test_a_producer_that_timed_out_may_come_back_with_its_old_epoch() -> None:
    """KIP-588 with v2: it requests a new epoch, and no other producer has taken the id."""
    done = complete(fence(transaction_in(State.ONGOING), LATER, 2), LATER)
    step = claimed(done, OWNER)
    assert (step.producer_id, step.producer_epoch) == (7, 5)


@pytest.mark.parametrize(
    ("state", "target"),
    [
        (State.PREPARE_COMMIT, State.COMPLETE_COMMIT),
        (State.PREPARE_ABORT, State.COMPLETE_ABORT),
    ],
)
@pytest.mark.parametrize("version", [0, 2])
def test_completing_keeps_the_owner(state: State, target: State, version: int) -> None:
    done = complete(transaction_in(state, client_version=version), LATER)
    assert (done.state, done.partitions) == (target, frozenset())
    assert (done.producer_id, done.producer_epoch, done.start_ms) == (7, 4, NOW)


def test_only_open_transactions_time_out() -> None:
    for state in State:
        found = transaction_in(state).is_timed_out(NOW + 60_001)
        assert found == (state is State.ONGOING)
    assert not transaction_in(State.ONGOING).is_timed_out(NOW + 60_000)
    forever = transaction_in(State.ONGOING, timeout_ms=(1 << 31) - 1)
    assert not forever.is_timed_out(NOW + (1 << 40))


def test_only_transactions_at_rest_expire() -> None:
    for state in State:
        found = transaction_in(state).is_expired(NOW + 1000, 1000)
        assert found == (state in AT_REST)
        assert not transaction_in(state).is_expired(NOW + 999, 1000)
