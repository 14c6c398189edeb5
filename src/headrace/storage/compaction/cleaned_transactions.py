"""Transactions during compaction: aborted records and redundant markers.

A marker must stay as long as any record of its transaction, or consumers would read aborted
records. Compaction therefore follows the transactions through the log in the order of offsets, and
decides for each batch whether it can be removed.
"""

from collections.abc import Iterable
from heapq import heapify, heappop

import msgspec

from headrace.protocol.batches import BatchHeader
from headrace.protocol.control_records import ControlType
from headrace.storage.indexes import AbortedTransaction


class _Aborting(msgspec.Struct):
    """An aborted transaction that is open at the current offset of the walk."""

    transaction: AbortedTransaction
    has_records: bool = False


class CleanedTransactions:
    """The state of one walk through a log."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._to_come = [(item.first_offset, item.producer_id, item) for item in aborted]
        heapify(self._to_come)
        self._aborting: dict[int, _Aborting] = {}
        self._committing: set[int] = set()
        self._retained: list[AbortedTransaction] = []

    def take_retained(self) -> list[AbortedTransaction]:
        """The aborted transactions with markers kept since the last call, for the new index."""
        retained = self._retained
        self._retained = []
        return retained

    def is_aborted(self, header: BatchHeader) -> bool:
        """Return whether a batch belongs to an aborted transaction and can be removed."""
        self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        aborting = self._aborting.get(header.producer_id)
        if aborting is None:
            self._committing.add(header.producer_id)
            return False
        aborting.has_records = True
        return True

    def is_marker_useless(self, header: BatchHeader, kind: int | None) -> bool:
        """Return whether no records are left for a control batch.

        `kind` is the type of its control record, None if an earlier compaction emptied the batch.
        """
        self._begin_up_to(header.last_offset)
        if kind is None:
            return True
        if kind not in (ControlType.ABORT, ControlType.COMMIT):
            return False  # Records of the quorum have nothing to do with transactions.
        if kind == ControlType.COMMIT:
            had_records = header.producer_id in self._committing
            self._committing.discard(header.producer_id)
            return not had_records
        aborting = self._aborting.pop(header.producer_id, None)
        if aborting is None or not aborting.has_records:
            return True
        self._retained.append(aborting.transaction)
        return False

    def _begin_up_to(self, offset: int) -> None:
        while self._to_come and self._to_come[0][0] <= offset:
            _, producer_id, transaction = heappop(self._to_come)
            self._aborting.setdefault(producer_id, _Aborting(transaction))
