"""The decisions of a transaction coordinator: `(transaction, request) -> the next transaction`.

Decisions change no state. A decision returns the step to be written, or None for a repeated
request whose answer is known, or raises the client's error. The shell writes the step, applies
it when it is committed, and continues: `prepared` transactions get their markers and are
`complete`d.

Producer id and epoch identify the caller. An id that is not current is
INVALID_PRODUCER_ID_MAPPING, an epoch that is not current is PRODUCER_FENCED. With
transaction.version 2 (KIP-890) each end of a transaction bumps the epoch, so that a late request
cannot join the next transaction; the epoch then distinguishes a retry from a new request.
"""

from collections.abc import Iterable, Set
from typing import NamedTuple

from msgspec.structs import replace

from headrace.errors import (
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    InvalidTxnState,
    KafkaError,
    ProducerFenced,
    TransactionAbortable,
)
from headrace.protocol.batches import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from headrace.storage.producer_state import EPOCH_BUMP_FROM, EPOCH_MAX
from headrace.storage.topic_partition import TopicPartition
from headrace.transactions.states import State
from headrace.transactions.transaction import NO_TIMESTAMP, Transaction, is_epoch_exhausted


class ProducerIdAndEpoch(NamedTuple):
    """The id and the epoch of a producer."""

    id: int
    epoch: int


class NeedsProducerId(Exception):
    """The step needs a new producer id: fetch one and decide again."""


# Claiming an id: InitProducerId.


def claim(
    current: Transaction | None,
    transactional_id: str,
    timeout_ms: int,
    expected: ProducerIdAndEpoch | None,
    now_ms: int,
    new_producer_id: int | None = None,
) -> Transaction:
    """Let a producer take over an id, or continue with it after an error (KIP-360).

    An open transaction must be fenced first; the caller does so and decides again.
    """
    if current is None:
        current = Transaction(
            transactional_id,
            _given(new_producer_id),
            timeout_ms=timeout_ms,
            last_update_ms=now_ms,
        )
    _check_claim(current, expected)
    if is_epoch_exhausted(current.producer_epoch) and (
        expected is None or expected.epoch == current.producer_epoch
    ):
        producer_id, epoch = _given(new_producer_id), 0
        last_epoch = current.producer_epoch if expected else NO_PRODUCER_EPOCH
    else:
        producer_id = current.producer_id
        epoch, last_epoch = _next_epoch(current, expected)
    return replace(
        current,
        producer_id=producer_id,
        previous_producer_id=current.producer_id,
        producer_epoch=epoch,
        last_producer_epoch=last_epoch,
        timeout_ms=timeout_ms,
        state=State.EMPTY,
        partitions=frozenset(),
        start_ms=NO_TIMESTAMP,
        last_update_ms=now_ms,
    )


def must_fence(current: Transaction | None, expected: ProducerIdAndEpoch | None) -> bool:
    """Return whether a claim must first abort the open transaction of the last owner."""
    if current is None or current.state is not State.ONGOING:
        return False
    _check_owner(current, expected)
    return True


def _check_claim(current: Transaction, expected: ProducerIdAndEpoch | None) -> None:
    _check_owner(current, expected)
    if not current.state.is_at_rest:
        raise _concurrent(current)


def _check_owner(current: Transaction, expected: ProducerIdAndEpoch | None) -> None:
    """Reject a producer that is neither the current nor the previous owner.

    The previous owner is accepted only with its last epoch: its request for a new id succeeded,
    but the answer got lost. A new transactional id has no owner to protect.
    """
    if expected is None or current.producer_epoch == NO_PRODUCER_EPOCH:
        return
    if expected.id != current.producer_id and not (
        expected.id == current.previous_producer_id and is_epoch_exhausted(expected.epoch)
    ):
        raise _fenced(current, expected)


def _next_epoch(current: Transaction, expected: ProducerIdAndEpoch | None) -> tuple[int, int]:
    epoch = current.producer_epoch
    if expected is None:
        return epoch + 1, NO_PRODUCER_EPOCH
    if epoch == NO_PRODUCER_EPOCH or expected.epoch == epoch:
        return epoch + 1, epoch
    if expected.epoch == current.last_producer_epoch:
        return epoch, current.last_producer_epoch  # A retry whose first answer got lost.
    raise _fenced(current, expected)


# Growing: AddPartitionsToTxn, AddOffsetsToTxn, and the first Produce of a v2 transaction.


def add_partitions(
    current: Transaction | None,
    producer: ProducerIdAndEpoch,
    partitions: Set[TopicPartition],
    now_ms: int,
    client_version: int = 0,
) -> Transaction | None:
    """Add partitions to the transaction, before it writes to them."""
    current = _owned(current, producer)
    if current.state.is_prepared:
        raise _concurrent(current)
    if current.state is State.ONGOING and partitions <= current.partitions:
        return None
    return replace(
        current,
        state=State.ONGOING,
        previous_producer_id=current.producer_id,
        partitions=current.partitions | partitions,
        start_ms=now_ms if current.state.is_at_rest else current.start_ms,
        last_update_ms=now_ms,
        client_version=client_version,
    )


def verify(
    current: Transaction | None, producer: ProducerIdAndEpoch, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, KafkaError]:
    """The partitions that are not part of the open transaction; checked before an append."""
    current = _owned(current, producer)
    if current.state.is_prepared:
        raise _concurrent(current)
    return {
        partition: TransactionAbortable(
            f"{partition[0]}-{partition[1]} is not part of the transaction of "
            f"{current.transactional_id}; abort it and begin again"
        )
        for partition in partitions
        if partition not in current.partitions
    }


# Ending: EndTxn, and the coordinator's own aborts.


def end(
    current: Transaction | None,
    producer: ProducerIdAndEpoch,
    now_ms: int,
    *,
    is_commit: bool,
    client_version: int,
    new_producer_id: int | None = None,
) -> Transaction | None:
    """Decide the end of a transaction; None if the same end was decided before."""
    if current is None:
        raise _unmapped(producer)
    if client_version < EPOCH_BUMP_FROM:
        return _end_v1(_owned(current, producer), now_ms, is_commit=is_commit)
    return _end_v2(current, producer, now_ms, client_version, new_producer_id, is_commit=is_commit)


def fence(
    current: Transaction, now_ms: int, server_version: int, new_producer_id: int | None = None
) -> Transaction:
    """Abort an open transaction for the coordinator, and fence its producer."""
    assert current.state is State.ONGOING
    if server_version >= EPOCH_BUMP_FROM:
        return _prepare(current, State.PREPARE_ABORT, now_ms, server_version, new_producer_id)
    bumped = min(current.producer_epoch + 1, EPOCH_MAX)
    fenced = replace(current, producer_epoch=bumped, last_producer_epoch=NO_PRODUCER_EPOCH)
    return _prepare(fenced, State.PREPARE_ABORT, now_ms, 0)


def complete(current: Transaction, now_ms: int) -> Transaction:
    """Complete a transaction after every marker is written."""
    assert current.state.is_prepared
    is_commit = current.state is State.PREPARE_COMMIT
    producer_id, epoch = current.producer_id, current.producer_epoch
    if current.bumps_epochs and current.next_producer_id != NO_PRODUCER_ID:
        producer_id, epoch = current.next_producer_id, 0  # The old id has used up its epochs.
    return replace(
        current,
        state=State.COMPLETE_COMMIT if is_commit else State.COMPLETE_ABORT,
        producer_id=producer_id,
        previous_producer_id=current.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        producer_epoch=epoch,
        partitions=frozenset(),
        last_update_ms=now_ms,
    )


def _end_v1(current: Transaction, now_ms: int, *, is_commit: bool) -> Transaction | None:
    target = State.PREPARE_COMMIT if is_commit else State.PREPARE_ABORT
    done = State.COMPLETE_COMMIT if is_commit else State.COMPLETE_ABORT
    if current.state is State.ONGOING:
        return _prepare(current, target, now_ms, 0)
    if current.state is done:
        return None
    if current.state is target:
        raise _concurrent(current)
    raise _wrong_state(current, is_commit=is_commit)


def _end_v2(
    current: Transaction,
    producer: ProducerIdAndEpoch,
    now_ms: int,
    client_version: int,
    new_producer_id: int | None,
    *,
    is_commit: bool,
) -> Transaction | None:
    """End with epochs that distinguish requests: the epoch before the current is a retry."""
    is_retry = _is_retry(current, producer)
    _check_v2(current, producer, is_retry=is_retry)
    done = State.COMPLETE_COMMIT if is_commit else State.COMPLETE_ABORT
    target = State.PREPARE_COMMIT if is_commit else State.PREPARE_ABORT
    if current.state is State.ONGOING:
        return _prepare(current, target, now_ms, client_version, new_producer_id)
    if current.state is target:
        raise _concurrent(current)
    if is_retry and current.state is done:
        return None
    if current.state.is_at_rest and not is_retry and not is_commit:
        # No transaction has begun here. The abort still bumps the epoch, so that a Produce in
        # flight cannot begin one later.
        begun = replace(current, start_ms=now_ms)
        return _prepare(begun, State.PREPARE_ABORT, now_ms, client_version, new_producer_id)
    raise _wrong_state(current, is_commit=is_commit)


def _is_retry(current: Transaction, producer: ProducerIdAndEpoch) -> bool:
    return _was_bumped(current, producer) or _has_rotated(current, producer)


def _was_bumped(current: Transaction, producer: ProducerIdAndEpoch) -> bool:
    """Return whether the last end was this producer's, which has the epoch before the current.

    Only an end with transaction.version 2 bumps the epoch. Kafka 4.3 does not check this: there a
    producer that an older client has replaced mistakes the new owner's end for its own.
    """
    return current.bumps_epochs and current.producer_epoch == producer.epoch + 1


def _has_rotated(current: Transaction, producer: ProducerIdAndEpoch) -> bool:
    """Return whether the producer is the last owner under the id that the last end replaced."""
    return (
        producer.id == current.previous_producer_id
        and producer.epoch == EPOCH_MAX - 1
        and current.producer_epoch == 0
    )


def _check_v2(current: Transaction, producer: ProducerIdAndEpoch, *, is_retry: bool) -> None:
    if producer.id != current.producer_id and not _has_rotated(current, producer):
        raise _unmapped(producer)
    is_current = producer.epoch == current.producer_epoch
    match current.state:
        case State.ONGOING | State.EMPTY:
            is_valid = is_current
        case State.PREPARE_COMMIT | State.PREPARE_ABORT:
            is_valid = _was_bumped(current, producer)
        case _:
            is_valid = is_current or is_retry
    if not is_valid:
        raise _fenced(current, producer)


def _prepare(
    current: Transaction,
    target: State,
    now_ms: int,
    client_version: int,
    new_producer_id: int | None = None,
) -> Transaction:
    epoch, last_epoch = current.producer_epoch, current.last_producer_epoch
    next_producer_id = NO_PRODUCER_ID
    if client_version >= EPOCH_BUMP_FROM:
        if current.is_epoch_exhausted:
            next_producer_id = _given(new_producer_id)
        epoch, last_epoch = min(epoch + 1, EPOCH_MAX), epoch
    return replace(
        current,
        state=target,
        previous_producer_id=current.producer_id,
        next_producer_id=next_producer_id,
        producer_epoch=epoch,
        last_producer_epoch=last_epoch,
        last_update_ms=now_ms,
        client_version=client_version,
    )


# Identity of the caller.


def _owned(current: Transaction | None, producer: ProducerIdAndEpoch) -> Transaction:
    if current is None or current.producer_id != producer.id:
        raise _unmapped(producer)
    if current.producer_epoch != producer.epoch:
        raise _fenced(current, producer)
    return current


def _given(new_producer_id: int | None) -> int:
    if new_producer_id is None:
        raise NeedsProducerId
    return new_producer_id


def _unmapped(producer: ProducerIdAndEpoch) -> KafkaError:
    return InvalidProducerIdMapping(
        f"producer {producer.id} does not own this transactional id (any more)"
    )


def _fenced(current: Transaction, producer: ProducerIdAndEpoch) -> KafkaError:
    return ProducerFenced(
        f"{current.transactional_id} is at epoch {current.producer_epoch} of producer "
        f"{current.producer_id}; epoch {producer.epoch} of {producer.id} was replaced"
    )


def _concurrent(current: Transaction) -> KafkaError:
    return ConcurrentTransactions(
        f"the last transaction of {current.transactional_id} is still being ended; try again"
    )


def _wrong_state(current: Transaction, *, is_commit: bool) -> KafkaError:
    wanted = "commit" if is_commit else "abort"
    return InvalidTxnState(
        f"{current.transactional_id} is in state {current.state.label}: nothing to {wanted}"
    )
