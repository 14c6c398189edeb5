"""The state of one transactional id, and its records in `__transaction_state`."""

from collections.abc import Iterable
from functools import lru_cache

import msgspec

from headrace.protocol.batches import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from headrace.protocol.codec import DecodeError
from headrace.protocol.coordinator_records import (
    CoordinatorRecord,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
    record_types,
)
from headrace.protocol.schemas.records import transactions as schemas
from headrace.protocol.schemas.records.transactions import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)
from headrace.storage.producer_state import EPOCH_BUMP_FROM, EPOCH_MAX
from headrace.storage.topic_partition import TopicPartition
from headrace.transactions.states import MAY_FOLLOW, State

NO_TIMESTAMP = -1
TWO_PHASE_TIMEOUT_MS = (1 << 31) - 1
"""The timeout of a transaction that an external commit protocol ends, never the time."""

_RECORD_TYPES = record_types(schemas)


class Transaction(msgspec.Struct, frozen=True):
    """A transactional id: its producer, and its current or last transaction.

    Frozen: a step makes the next value, which is valid once its record is committed. The record has
    all fields except `last_producer_epoch`, which lets a producer repeat a lost InitProducerId
    (KIP-360) as long as the coordinator lives, as in Kafka.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    timeout_ms: int = 0
    state: State = State.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIMESTAMP
    last_update_ms: int = NO_TIMESTAMP
    client_version: int = 0

    @property
    def is_epoch_exhausted(self) -> bool:
        """The last epoch is kept free, so that a coordinator can always fence."""
        return is_epoch_exhausted(self.producer_epoch)

    @property
    def bumps_epochs(self) -> bool:
        return self.client_version >= EPOCH_BUMP_FROM

    def is_timed_out(self, now_ms: int) -> bool:
        return (
            self.state is State.ONGOING
            and self.timeout_ms != TWO_PHASE_TIMEOUT_MS
            and self.start_ms + self.timeout_ms < now_ms
        )

    def is_expired(self, now_ms: int, expiration_ms: int) -> bool:
        return self.state.is_at_rest and self.last_update_ms <= now_ms - expiration_ms


def is_epoch_exhausted(epoch: int) -> bool:
    return epoch >= EPOCH_MAX - 1


class Transactions:
    """Every transactional id of one partition of `__transaction_state`.

    `apply` and `forget` are the only code that changes it, live and when the log is loaded.
    """

    __slots__ = ("by_id",)

    def __init__(self) -> None:
        self.by_id: dict[str, Transaction] = {}

    def apply(self, transaction: Transaction) -> None:
        """Apply a step whose record is committed."""
        before = self.by_id.get(transaction.transactional_id)
        was = before.state if before is not None else State.EMPTY
        assert was in MAY_FOLLOW[transaction.state], f"{was.label} -> {transaction.state.label}"
        self.by_id[transaction.transactional_id] = transaction

    def forget(self, transactional_id: str) -> None:
        self.by_id.pop(transactional_id, None)

    def replay(self, key: bytes, value: bytes | None) -> None:
        """Apply a record of the log. Compaction may have removed earlier records."""
        read = decode_key(_RECORD_TYPES, key)
        if not isinstance(read, TransactionLogKey):
            return
        if value is None:
            self.forget(read.transactional_id)
        else:
            self.by_id[read.transactional_id] = _decode(read, value)

    @property
    def prepared(self) -> list[Transaction]:
        """The transactions that a crash interrupted between the decision and the last marker."""
        return [found for found in self.by_id.values() if found.state.is_prepared]


def encode(transaction: Transaction, transaction_version: int) -> CoordinatorRecord:
    """The record of a step; tagged fields came with `transaction.version` 1."""
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=_grouped(transaction),
        transaction_last_update_timestamp_ms=transaction.last_update_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
        client_transaction_version=transaction.client_version,
    )
    version = min(transaction_version, 1)
    return CoordinatorRecord(key_of(transaction.transactional_id), encode_value(value, version))


@lru_cache(maxsize=4096)
def key_of(transactional_id: str) -> bytes:
    """Return the key of an id's records; each transaction writes three of them."""
    return encode_key(TransactionLogKey(transactional_id=transactional_id))


def tombstone(transactional_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(key_of(transactional_id), None)


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Partition numbers by topic, both in order."""
    found: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        found.setdefault(topic, []).append(index)
    return found


def _grouped(transaction: Transaction) -> list[PartitionsSchema] | None:
    if transaction.state is State.EMPTY:
        return None
    return [
        PartitionsSchema(topic=topic, partition_ids=indexes)
        for topic, indexes in by_topic(transaction.partitions).items()
    ]


def _decode(key: TransactionLogKey, data: bytes) -> Transaction:
    value = decode_value(_RECORD_TYPES, key, data)
    assert isinstance(value, TransactionLogValue)
    if value.transaction_status not in State._value2member_map_:
        raise DecodeError(f"{value.transaction_status} is not a state of a transaction")
    return Transaction(
        transactional_id=key.transactional_id,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        timeout_ms=value.transaction_timeout_ms,
        state=State(value.transaction_status),
        partitions=frozenset(
            TopicPartition(topic.topic, index)
            for topic in value.transaction_partitions or ()
            for index in topic.partition_ids
        ),
        start_ms=value.transaction_start_timestamp_ms,
        last_update_ms=value.transaction_last_update_timestamp_ms,
        client_version=value.client_transaction_version,
    )
