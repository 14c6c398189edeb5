"""Compaction, batch by batch: keep the last record of each key.

The dirty part of a log is read once to learn the last offset of each key (`map_batch`), then the
log is read from its start and each batch is copied as it is, rewritten without the records that
are out of date, or left out (`Compaction.keep`). A tombstone stays for `delete.retention.ms`
after the first compaction that read it; that time is written into its batch as the delete
horizon, so that it counts across restarts and replicas (KIP-534). Offsets never change:
a rewritten batch spans the same offsets and sequence numbers as before.
"""

from collections.abc import Callable, Mapping

import msgspec

from headrace.protocol.batches import (
    CODEC_MASK,
    DELETE_HORIZON,
    NO_TIMESTAMP,
    BatchHeader,
    assemble_batch,
    block_of,
    check_crc,
)
from headrace.protocol.control_records import control_type
from headrace.protocol.records import RecordSpan, read_varint, scan_records, varint
from headrace.storage.compaction.cleaned_transactions import CleanedTransactions
from headrace.storage.compaction.offset_map import OffsetMap
from headrace.storage.indexes import AbortedTransaction


class LastRecord(msgspec.Struct, frozen=True):
    """The newest batch of an active producer, which must still exist after a restart."""

    last_data_offset: int | None
    producer_epoch: int


class CompactionStats(msgspec.Struct):
    """The records and bytes that a round of compaction read and kept."""

    records_read: int = 0
    bytes_read: int = 0
    records_written: int = 0
    bytes_written: int = 0


class KeptBatch(msgspec.Struct, gc=False):
    """A batch for the new segment."""

    data: bytearray | memoryview
    last_offset: int
    max_timestamp: int


def map_batch(
    offsets: OffsetMap, batch: memoryview, header: BatchHeader, start_offset: int
) -> None:
    """Map each key of a batch to its last offset, for records from `start_offset` on."""
    put = offsets.put
    base_offset = header.base_offset
    block = block_of(batch, 0, header)
    for _, _, _, offset_delta, key, _ in scan_records(block, header.count):
        if key is not None and base_offset + offset_delta >= start_offset:
            put(key, base_offset + offset_delta)


class Compaction:
    """The rules of one round, applied to the batches of a log in the order of their offsets."""

    def __init__(
        self,
        offsets: OffsetMap,
        mapped_offset: int,
        *,
        end_offset: int,
        now_ms: int,
        delete_retention_ms: int,
        transactions: CleanedTransactions,
        producers: Mapping[int, LastRecord],
        stats: CompactionStats | None = None,
    ) -> None:
        self._last_offset_of: Callable[[bytes], int | None] = offsets.lookup()
        self._mapped_offset = mapped_offset
        self._end_offset = end_offset
        self._now_ms = now_ms
        self._delete_retention_ms = delete_retention_ms
        self._transactions = transactions
        self._producers = producers
        self.stats = stats or CompactionStats()

    def keep(self, batch: memoryview, header: BatchHeader) -> KeptBatch | None:
        """The part of a batch for the new segment; None if the whole batch is removed.

        The checksum is verified first: a rewritten batch gets a new one, which must not
        hide damaged records.
        """
        check_crc(batch, 0, header.size)
        self.stats.bytes_read += header.size
        self.stats.records_read += header.count
        useless = self._is_useless(batch, header)
        horizon_ms = header.delete_horizon_ms
        drop_all = useless
        if header.is_control:
            drop_all = useless and horizon_ms is not None and horizon_ms <= self._now_ms
        kept = None
        if not drop_all:
            kept = self._keep_records(batch, header, sets_horizon=useless)
        if kept is None and self._must_stay(header):
            kept = _emptied(header)
        if kept is not None:
            self.stats.bytes_written += len(kept.data)
        return kept

    def take_retained(self) -> list[AbortedTransaction]:
        """The entries for the transaction index of the segment written so far."""
        return self._transactions.take_retained()

    def _is_useless(self, batch: memoryview, header: BatchHeader) -> bool:
        """Return whether the batch is aborted data or a marker of a transaction without records."""
        if not header.is_control:
            return self._transactions.is_aborted(header)
        return self._transactions.is_marker_useless(header, control_type_of(batch, header))

    def _must_stay(self, header: BatchHeader) -> bool:
        """Return whether a batch is needed even without its records.

        The last batch of an active producer carries its sequence number and epoch; the last
        batch of the round, where the part of the log that is compacted ends.
        """
        if header.next_offset == self._end_offset:
            return True
        last = self._producers.get(header.producer_id) if header.has_producer_id else None
        if last is None:
            return False
        if last.last_data_offset is None:
            return header.is_control and header.producer_epoch == last.producer_epoch
        return header.last_offset == last.last_data_offset

    def _keep_records(
        self, batch: memoryview, header: BatchHeader, *, sets_horizon: bool
    ) -> KeptBatch | None:
        block = block_of(batch, 0, header)
        kept = self._latest_of(block, header)
        if not kept:
            return None
        self.stats.records_written += len(kept)
        if header.delete_horizon_ms is not None:
            sets_horizon = False
        elif not all(span[5] for span in kept):
            sets_horizon = True
        if len(kept) == header.count and not sets_horizon:
            return KeptBatch(batch, header.last_offset, header.max_timestamp)
        return self._rewritten(block, header, kept, sets_horizon=sets_horizon)

    def _latest_of(self, block: bytes, header: BatchHeader) -> list[RecordSpan]:
        """Return the records that later ones do not replace."""
        spans = scan_records(block, header.count)
        if header.is_control:
            return list(spans)
        base_offset = header.base_offset
        last_offset_of = self._last_offset_of
        mapped_offset = self._mapped_offset
        horizon_ms = header.delete_horizon_ms
        drops_tombstones = horizon_ms is not None and horizon_ms <= self._now_ms
        kept = []
        for span in spans:
            _, _, _, offset_delta, key, has_value = span
            offset = base_offset + offset_delta
            if offset > mapped_offset:
                kept.append(span)
            elif key is None:
                continue  # A record without key has no successor.
            elif offset >= (last_offset_of(key) or 0) and (has_value or not drops_tombstones):
                kept.append(span)
        return kept

    def _rewritten(
        self, block: bytes, header: BatchHeader, kept: list[RecordSpan], *, sets_horizon: bool
    ) -> KeptBatch:
        """Return the batch with some of its records, and its old offsets, sequences and codec."""
        rewritten = msgspec.structs.replace(header, count=len(kept))
        if not header.uses_log_append_time:
            rewritten.max_timestamp = header.base_timestamp + max(span[2] for span in kept)
        if sets_horizon:
            rewritten.base_timestamp = self._now_ms + self._delete_retention_ms
            rewritten.attributes |= DELETE_HORIZON
            shift_ms = header.base_timestamp - rewritten.base_timestamp
            records = b"".join([_shifted(block, span, shift_ms) for span in kept])
        else:
            records = b"".join([block[span[0] : span[1]] for span in kept])
        return KeptBatch(
            assemble_batch(rewritten, records), header.last_offset, rewritten.max_timestamp
        )


def _emptied(header: BatchHeader) -> KeptBatch:
    """Return the batch without records, because its numbers are still needed."""
    empty = msgspec.structs.replace(
        header,
        attributes=header.attributes & ~(CODEC_MASK | DELETE_HORIZON),
        base_timestamp=NO_TIMESTAMP,
        count=0,
    )
    return KeptBatch(assemble_batch(empty, b""), header.last_offset, header.max_timestamp)


def _shifted(block: bytes, span: RecordSpan, shift_ms: int) -> bytes:
    """Return a record with its timestamp relative to another base; other fields are copied."""
    start, end, timestamp_delta, _, _, _ = span
    _, position = read_varint(block, start)
    _, after = read_varint(block, position + 1, 70)
    delta = varint(timestamp_delta + shift_ms)
    return b"".join(
        (
            varint(1 + len(delta) + end - after),
            block[position : position + 1],
            delta,
            block[after:end],
        )
    )


def control_type_of(batch: memoryview, header: BatchHeader) -> int | None:
    """The type of a batch's control record, None if compaction has emptied the batch."""
    for _, _, _, _, key, _ in scan_records(block_of(batch, 0, header), header.count):
        return control_type(key)
    return None
