"""Record sets as brokers send them: the relevant batches, and their records as plain blocks.

A set may begin before the wanted offset, contain markers of transactions and records of aborted
ones, and end inside a batch. Batches are selected by their headers. Only selected ones are checked
and decompressed, in chunks of about `CHUNK_BYTES`.
"""

import heapq
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from headrace.errors import CorruptMessage
from headrace.protocol.batches import HEADER_SIZE, BatchHeader, check_crc, headers, records_of
from headrace.protocol.compression import Codec, decompress
from headrace.protocol.control_records import ControlType, control_type
from headrace.spark.source.errors import DamagedRecords
from headrace.spark.source.record_columns import NO_TIME, Block, Chunk

CHUNK_BYTES = 4 << 20
"""Uncompressed bytes per chunk, about the size of a RecordBatch."""

Aborted = Sequence[tuple[int, int]]
"""Producer id and first offset of the aborted transactions in a set."""


class Batch(NamedTuple):
    """A selected batch with its position in the set."""

    position: int
    header: BatchHeader


class WalkedSet(NamedTuple):
    """The selected batches of a record set."""

    batches: list[Batch]
    next_offset: int | None
    """The offset of the next fetch; None if the set has no whole batch."""


def walk(
    place: str,
    records: memoryview,
    first_offset: int,
    end_offset: int,
    aborted: Aborted | None = None,
    timestamp_ms_min: int | None = None,
) -> WalkedSet:
    """Select the batches with records in a range of offsets, by their headers.

    `aborted` is None for uncommitted reads. Batches without records from `timestamp_ms_min` on are
    skipped.
    """
    transactions = None if aborted is None else AbortedTransactions(aborted)
    batches: list[Batch] = []
    next_offset: int | None = None
    try:
        for position, header in headers(records):
            if next_offset is not None and header.next_offset <= next_offset:
                raise CorruptMessage(f"offset {header.base_offset} comes after {next_offset}")
            next_offset = header.next_offset
            is_dropped = transactions is not None and transactions.drops(records, position, header)
            if header.is_control or is_dropped:
                continue
            if next_offset <= first_offset or header.base_offset >= end_offset:
                continue
            if header.size == HEADER_SIZE and not header.count:
                continue  # Compaction keeps empty batches for the state of their producers.
            if timestamp_ms_min is not None and header.max_timestamp < timestamp_ms_min:
                continue
            batches.append(Batch(position, header))
    except CorruptMessage as error:
        raise DamagedRecords(f"{place}, near offset {first_offset}: {error}") from error
    return WalkedSet(batches, next_offset)


def chunks(
    place: str, records: memoryview, batches: Sequence[Batch], *, checks_crcs: bool
) -> Iterator[Chunk]:
    """Yield the records of batches as uncompressed blocks, a few megabytes at a time."""
    run: _Run | None = None
    for batch in batches:
        try:
            if checks_crcs:
                check_crc(records, batch.position, batch.header.size)
            if run is not None and (not run.fits(batch.header) or run.size >= CHUNK_BYTES):
                yield run.chunk()
                run = None
            if run is None:
                run = _Run(place, records, batch.header)
            run.add(batch)
        except CorruptMessage as error:
            raise DamagedRecords(
                f"{place}: the batch at offset {batch.header.base_offset} is damaged: {error};"
                " compare the log with a replica's"
            ) from error
    if run is not None:
        yield run.chunk()


class _Run:
    """Batches for one chunk: all compressed or none, with one type of timestamp."""

    def __init__(self, place: str, records: memoryview, first: BatchHeader) -> None:
        self.size = 0
        self._place = place
        self._records = records
        self._is_append_time = first.uses_log_append_time
        self._plain = bytearray() if first.codec else None
        self._blocks: list[Block] = []

    def fits(self, header: BatchHeader) -> bool:
        is_compressed = header.codec != 0
        return (is_compressed, header.uses_log_append_time) == (
            self._plain is not None,
            self._is_append_time,
        )

    def add(self, batch: Batch) -> None:
        position, header = batch
        start, end = position + HEADER_SIZE, position + header.size
        if self._plain is not None:
            if header.codec > Codec.ZSTD:
                raise CorruptMessage(f"unknown codec {header.codec}")
            content = decompress(header.codec, self._records[start:end])
            start = len(self._plain)
            end = start + len(content)
            self._plain += content
        append_time = header.max_timestamp if self._is_append_time else NO_TIME
        self._blocks.append(
            (start, end, header.count, header.base_offset, header.base_timestamp, append_time)
        )
        self.size += end - start

    def chunk(self) -> Chunk:
        data = self._records if self._plain is None else memoryview(self._plain)
        return Chunk(self._place, data, self._blocks, self._is_append_time)


class AbortedTransactions:
    """Finds the batches of aborted transactions in a record set, in the order of the log.

    The broker lists the first offsets of the transactions; each ends at its marker.
    """

    def __init__(self, aborted: Aborted) -> None:
        self._coming = [(first_offset, producer_id) for producer_id, first_offset in aborted]
        heapq.heapify(self._coming)
        self._open: set[int] = set()

    def drops(self, records: memoryview, position: int, header: BatchHeader) -> bool:
        """Return whether a batch is part of an aborted transaction, or its end marker."""
        while self._coming and self._coming[0][0] <= header.last_offset:
            self._open.add(heapq.heappop(self._coming)[1])
        if header.producer_id not in self._open or not header.is_transactional:
            return False
        if header.is_control:
            marker = records_of(records, position)
            if marker and control_type(marker[0].key) == ControlType.ABORT:
                self._open.discard(header.producer_id)
        return True
