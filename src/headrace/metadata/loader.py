"""Builds images from committed batches; records of open transactions are held back.

One loader replays the snapshot and the log at the start, and every later batch, so an image does
not depend on the moment at which it was built.
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
    """A new image, and its difference from the one before."""

    delta: ImageDelta
    image: MetadataImage


class LoaderState(NamedTuple):
    """The state of a loader after a publication."""

    image: MetadataImage
    end: tuple[int, int, int]
    stable_end: tuple[int, int, int]
    transaction_offset: int | None
    transaction: tuple[Message, ...]
    """Records of an open transaction, which the image does not show yet."""


class MetadataLoader:
    """Replays batches in order, and publishes images between them."""

    __slots__ = ("_delta", "_end", "_stable_end", "_transaction", "image", "transaction_offset")

    def __init__(self, image: MetadataImage = EMPTY) -> None:
        self.image = image
        self.transaction_offset: int | None = None
        """The offset of an open transaction, whose records are held back until it ends."""
        self._delta = ImageDelta(image)
        self._transaction: list[Message] = []
        self._end = self._stable_end = (image.offset, image.epoch, image.timestamp_ms)

    @classmethod
    def resume(cls, state: LoaderState) -> "MetadataLoader":
        """Return a loader that continues from a state, even within a transaction."""
        loader = cls(state.image)
        loader._end, loader._stable_end = state.end, state.stable_end
        loader.transaction_offset = state.transaction_offset
        loader._transaction = list(state.transaction)
        return loader

    def state(self) -> LoaderState:
        """Return the state as of the last publication, which must include every batch."""
        return LoaderState(
            self.image,
            self._end,
            self._stable_end,
            self.transaction_offset,
            tuple(self._transaction),
        )

    @property
    def next_offset(self) -> int:
        """The offset after the last replayed batch."""
        return self._end[0] + 1

    def replay_snapshot(
        self, records: Iterable[Message], *, end_offset: int, epoch: int, timestamp_ms: int
    ) -> None:
        """Replay a snapshot, which replaces the log before `end_offset`, and the image."""
        self._delta = ImageDelta.replacing(self.image)
        for record in records:
            self._delta.replay(record)
        self.transaction_offset, self._transaction = None, []
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
        """Publish the image after all batches so far, without an open transaction."""
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
