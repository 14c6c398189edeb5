"""From committed batches to images: transactions held back, deltas cut where they are published.

The same loader runs over a snapshot and a log at start and over every batch that is written
later, so an image cannot depend on when it was made.
"""

from collections.abc import Iterable
from typing import NamedTuple

from headrace.metadata.delta import ImageDelta
from headrace.metadata.image import EMPTY, MetadataImage
from headrace.metadata.records import MetadataBatch, UnreplayableRecord
from headrace.protocol.message import Message
from headrace.protocol.schemas.records.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)

_TRANSACTION_RECORDS = (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)


class Publication(NamedTuple):
    """A new image, and how it differs from the one before."""

    delta: ImageDelta
    image: MetadataImage


class MetadataLoader:
    """Replays batches in order, and publishes between them."""

    __slots__ = ("_delta", "_end", "_stable_end", "_transaction", "image", "transaction_offset")

    def __init__(self, image: MetadataImage = EMPTY) -> None:
        self.image = image
        self.transaction_offset: int | None = None
        """Where an open transaction began; its records are held back until it ends."""
        self._delta = ImageDelta(image)
        self._transaction: list[Message] = []
        self._end = self._stable_end = (image.offset, image.epoch, image.timestamp_ms)

    def replay_snapshot(
        self, records: Iterable[Message], *, end_offset: int, epoch: int, timestamp_ms: int
    ) -> None:
        """Take a snapshot's records for everything that the log said before `end_offset`."""
        for record in records:
            self._delta.replay(record)
        self._end = (end_offset - 1, epoch, timestamp_ms)

    def replay(self, batch: MetadataBatch) -> None:
        if batch.base_offset <= self._end[0]:
            raise UnreplayableRecord(
                f"the batch at offset {batch.base_offset} follows offset {self._end[0]}"
            )
        records = () if batch.is_control else batch.records
        for offset, record in enumerate(records, batch.base_offset):
            if isinstance(record, _TRANSACTION_RECORDS):
                self._replay_transaction(record, offset)
            elif self.transaction_offset is None:
                self._delta.replay(record)
            else:
                self._transaction.append(record)
        self._end = (batch.last_offset, batch.epoch, batch.timestamp_ms)

    def publish(self) -> Publication:
        """The image after all batches so far; an open transaction is no part of it."""
        delta = self._delta
        end = self._end if self.transaction_offset is None else self._stable_end
        self.image = delta.image(*end)
        self._delta = ImageDelta(self.image)
        return Publication(delta, self.image)

    def _replay_transaction(self, record: Message, offset: int) -> None:
        if isinstance(record, BeginTransactionRecord):
            if self.transaction_offset is not None:
                raise UnreplayableRecord(f"a second transaction begins at offset {offset}")
            self.transaction_offset = offset
            self._stable_end = self._end
            return
        if self.transaction_offset is None:
            raise UnreplayableRecord(f"a transaction ends at offset {offset}, but none began")
        if isinstance(record, EndTransactionRecord):
            for held_back in self._transaction:
                self._delta.replay(held_back)
        self.transaction_offset = None
        self._transaction = []
