"""The producer states of a partition, which detect retries.

An idempotent producer numbers its records. The next batch must continue where the last one ended. A
repeated batch among the last five is answered with its original offset. Any other sequence is out
of order. Records above the first offset of an open transaction are not stable, and read_committed
consumers must wait for them (KIP-98, KIP-360, KIP-890).

A producer that is unknown here, because it is new or because its records have been deleted or
have expired, may start with any sequence number.
"""

from collections.abc import Iterable
from enum import IntEnum

import msgspec

from headrace.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequenceNumber,
    TransactionCoordinatorFenced,
)
from headrace.protocol.batches import NO_SEQUENCE, TRANSACTIONAL, BatchHeader
from headrace.storage.indexes import AbortedTransaction

NO_EPOCH = -1
NO_OFFSET = -1
SEQUENCE_MAX = (1 << 31) - 1
EPOCH_MAX = (1 << 15) - 1
BATCHES_REMEMBERED = 5

NOT_VERIFIED = -1
"""Replaces a `transaction.version` if the coordinator has not verified the append."""
EPOCH_BUMP_FROM = 2
"""From this `transaction.version` on each transaction has an epoch of its own (KIP-890)."""


class Origin(IntEnum):
    """The origin of an append, which determines the checks."""

    CLIENT = 0
    COORDINATOR = 1


class RememberedBatch(msgspec.Struct, frozen=True, gc=False):
    """The numbers of a written batch, by which a retry is recognised."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & SEQUENCE_MAX

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class EndMarker(msgspec.Struct, frozen=True):
    """The control record that ends a producer's transaction on this partition."""

    is_commit: bool
    coordinator_epoch: int
    timestamp: int


class Producer:
    """One producer id: its epoch, its newest batches, and the start of its open transaction."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "id",
        "last_timestamp",
        "transaction_first_offset",
    )

    def __init__(self, producer_id: int, epoch: int = NO_EPOCH) -> None:
        self.id = producer_id
        self.epoch = epoch
        self.coordinator_epoch = -1
        self.last_timestamp = -1
        self.transaction_first_offset = NO_OFFSET
        self.batches: list[RememberedBatch] = []

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def copy(self) -> "Producer":
        copy = Producer(self.id, self.epoch)
        copy.coordinator_epoch = self.coordinator_epoch
        copy.last_timestamp = self.last_timestamp
        copy.transaction_first_offset = self.transaction_first_offset
        copy.batches = self.batches.copy()
        return copy

    def check(self, header: BatchHeader, transaction_version: int) -> RememberedBatch | None:
        """May this batch of a client follow? The earlier batch if it is one sent again."""
        if header.producer_epoch == self.epoch:
            batches = self.batches
            last_sequence = batches[-1].last_sequence if batches else NO_SEQUENCE
            if header.attributes & TRANSACTIONAL and self.transaction_first_offset == NO_OFFSET:
                check_verified(header, transaction_version)
            if header.base_sequence == (last_sequence + 1) & SEQUENCE_MAX:
                if self.transaction_first_offset != NO_OFFSET:
                    self._check_transaction(header)
                return None
            return self._sent_again(header)
        self.check_epoch(header)
        if header.base_sequence != 0 and self.epoch != NO_EPOCH:
            raise OutOfOrderSequenceNumber(
                f"producer {self.id} begins its epoch {header.producer_epoch} with sequence number "
                f"{header.base_sequence} instead of 0 (its epoch here was {self.epoch})"
            )
        self._check_transaction(header)
        if header.attributes & TRANSACTIONAL:
            check_verified(header, transaction_version)
        return None

    def check_epoch(self, header: BatchHeader) -> None:
        if header.producer_epoch < self.epoch:
            raise InvalidProducerEpoch(
                f"producer {self.id} has epoch {self.epoch} here; a batch of its older epoch "
                f"{header.producer_epoch} comes from an instance that was replaced"
            )

    def check_marker_epoch(self, header: BatchHeader, transaction_version: int) -> None:
        """A marker of a v2 transaction brings a new epoch, unless it is the same one again."""
        self.check_epoch(header)
        if (
            transaction_version >= EPOCH_BUMP_FROM
            and header.producer_epoch == self.epoch != EPOCH_MAX
            and self.transaction_first_offset != NO_OFFSET
        ):
            raise InvalidProducerEpoch(
                f"the transaction of producer {self.id} at offset {self.transaction_first_offset} "
                f"has epoch {self.epoch}; a marker of that epoch ends an earlier one"
            )

    def _check_transaction(self, header: BatchHeader) -> None:
        if self.transaction_first_offset != NO_OFFSET and not header.attributes & TRANSACTIONAL:
            raise InvalidTxnState(
                f"producer {self.id} writes outside of its open transaction, which began at offset "
                f"{self.transaction_first_offset}; end the transaction first"
            )

    def _sent_again(self, header: BatchHeader) -> RememberedBatch:
        last_sequence = sequence_after(header.base_sequence, header.last_offset_delta)
        for batch in self.batches:
            if batch.last_sequence == last_sequence and (
                batch.first_sequence == header.base_sequence
            ):
                return batch
        raise OutOfOrderSequenceNumber(
            f"producer {self.id} sent sequence number {header.base_sequence}, "
            f"but its last one here is {self.last_sequence}: a batch in between is missing"
        )

    def add(self, header: BatchHeader, last_offset: int) -> None:
        """Remember a batch of records that was written."""
        if header.producer_epoch != self.epoch:
            self.epoch = header.producer_epoch
            self.batches.clear()
        elif len(self.batches) == BATCHES_REMEMBERED:
            del self.batches[0]
        delta = header.last_offset_delta
        last_sequence = header.base_sequence
        if last_sequence != NO_SEQUENCE:  # Batches that coordinators write have none.
            last_sequence = (last_sequence + delta) & SEQUENCE_MAX
        self.last_timestamp = timestamp = header.max_timestamp
        self.batches.append(RememberedBatch(last_sequence, last_offset, delta, timestamp))


def check_verified(header: BatchHeader, transaction_version: int) -> None:
    """Reject an unverified transaction: its coordinator would never end it."""
    if transaction_version == NOT_VERIFIED:
        raise InvalidTxnState(
            f"producer {header.producer_id} has no open transaction here, and the coordinator was "
            "not asked to add this partition to one"
        )


def sequence_after(sequence: int, count: int) -> int:
    """Return the next sequence number; 0 follows 2^31 - 1."""
    return (sequence + count) & SEQUENCE_MAX


class ProducerStates:
    """All producers of one partition, as of an offset (`end_offset`).

    Only `replay` changes it, so that appends, recovery and followers agree by construction.
    """

    __slots__ = ("_ended", "_open", "end_offset", "entries")

    def __init__(self, end_offset: int = 0) -> None:
        self.end_offset = end_offset
        self.entries: dict[int, Producer] = {}
        # First offset -> producer id, ascending: open transactions.
        self._open: dict[int, int] = {}
        # First offset -> offset of the marker: ended, but the marker is not committed yet.
        self._ended: dict[int, int] = {}

    def is_in_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Return whether the producer's transaction has begun here, hence was verified."""
        producer = self.entries.get(producer_id)
        return (
            producer is not None
            and producer.transaction_first_offset != NO_OFFSET
            and producer.epoch == producer_epoch
        )

    def check(
        self, header: BatchHeader, transaction_version: int = NOT_VERIFIED
    ) -> RememberedBatch | None:
        """May this batch of a client be appended? Its earlier self if it was already.

        This is on the path of every idempotent batch.
        """
        producer = self.entries.get(header.producer_id)
        if producer is not None:
            return producer.check(header, transaction_version)
        if header.attributes & TRANSACTIONAL:
            check_verified(header, transaction_version)
            if transaction_version >= EPOCH_BUMP_FROM and header.base_sequence != 0:
                raise OutOfOrderSequenceNumber(
                    f"producer {header.producer_id} begins its transaction with sequence number "
                    f"{header.base_sequence} instead of 0: a batch before it is missing"
                )
        return None

    def check_epoch(self, header: BatchHeader) -> None:
        """Check the epoch of a coordinator's batch for a producer, which has no sequence."""
        producer = self.entries.get(header.producer_id)
        if producer is not None:
            producer.check_epoch(header)

    def check_marker(
        self, header: BatchHeader, marker: EndMarker, transaction_version: int = 0
    ) -> None:
        """May the coordinator end the transaction of this producer?"""
        producer = self.entries.get(header.producer_id)
        if producer is None:
            return
        producer.check_marker_epoch(header, transaction_version)
        if producer.coordinator_epoch > marker.coordinator_epoch:
            raise TransactionCoordinatorFenced(
                f"a marker for producer {producer.id} comes from coordinator epoch "
                f"{marker.coordinator_epoch}, but epoch {producer.coordinator_epoch} wrote here"
            )

    def replay(self, header: BatchHeader, base_offset: int) -> None:
        """Apply an appended batch of records."""
        producer = self.entries.get(header.producer_id)
        if producer is None:
            producer = self.entries[header.producer_id] = Producer(header.producer_id)
        producer.add(header, base_offset + header.last_offset_delta)
        if header.attributes & TRANSACTIONAL and producer.transaction_first_offset == NO_OFFSET:
            producer.transaction_first_offset = base_offset
            self._open[base_offset] = producer.id

    def replay_marker(
        self, header: BatchHeader, marker: EndMarker, offset: int
    ) -> AbortedTransaction | None:
        """Apply the end of a transaction; return the range that readers skip after an abort."""
        producer = self.entries.get(header.producer_id)
        if producer is None:
            producer = self.entries[header.producer_id] = Producer(header.producer_id)
        first_offset = producer.transaction_first_offset
        if producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.batches.clear()
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = marker.timestamp
        producer.transaction_first_offset = NO_OFFSET
        if first_offset == NO_OFFSET:
            return None  # An empty transaction leaves nothing to skip or to wait for.
        self._open.pop(first_offset, None)
        self._ended[first_offset] = offset
        if marker.is_commit:
            return None
        stable = next(iter(self._open), offset + 1)
        return AbortedTransaction(producer.id, first_offset, offset, stable)

    @property
    def is_stable(self) -> bool:
        return not self._open and not self._ended

    def first_unstable_offset(self) -> int | None:
        """The lowest offset of an open transaction, or of one whose marker is not committed."""
        firsts = [min(offsets) for offsets in (self._open, self._ended) if offsets]
        return min(firsts) if firsts else None

    def on_high_watermark(self, high_watermark: int) -> None:
        """Ended transactions become stable once their marker is committed."""
        for first_offset, last_offset in list(self._ended.items()):
            if last_offset < high_watermark:
                del self._ended[first_offset]

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Remove producers that have expired, unless their transaction is open."""
        expired = [
            producer.id
            for producer in self.entries.values()
            if producer.transaction_first_offset == NO_OFFSET
            and now_ms - producer.last_timestamp >= expiration_ms
        ]
        for producer_id in expired:
            del self.entries[producer_id]

    def load(self, producers: Iterable[Producer]) -> None:
        """Start from the content of a snapshot."""
        for producer in producers:
            self.entries[producer.id] = producer
        opened = sorted(
            (producer.transaction_first_offset, producer.id)
            for producer in self.entries.values()
            if producer.transaction_first_offset != NO_OFFSET
        )
        self._open = dict(opened)
