"""Avro payloads to columns: flat records by compiled code, all others row by row.

Rows are read by fastavro, or by `rows` where fastavro's values would not tell enough: unions of
several types, and records that hold themselves.

The payloads are bare records of one schema. How records of several writers' schemas, named in front
of each payload, become rows of one reader's schema: see `registry/`.
"""

import io
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa

from headrace.spark.decoding.avro.projection import Projection, projection_of
from headrace.spark.decoding.avro.resolved import with_members
from headrace.spark.decoding.avro.rows import RowReader
from headrace.spark.decoding.avro.schemas import AvroSchema, Node, avro_schema
from headrace.spark.decoding.columns.failures import no_failures
from headrace.spark.decoding.columns.spans import VOID, Spans, spans_of
from headrace.spark.decoding.decoder import Decoded, batch_of


@dataclass(frozen=True)
class AvroDecoder:
    """Reads records that were written by one schema as rows of another, or of the same."""

    writer_text: str
    reader_text: str
    writer_references: tuple[str, ...] = ()
    reader_references: tuple[str, ...] = ()
    recursive_depth_max: int = 0
    """How often a record may appear in itself; 0 refuses those that do."""

    def __getstate__(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @cached_property
    def writer(self) -> AvroSchema:
        return avro_schema(self.writer_text, self.writer_references, self.recursive_depth_max)

    @cached_property
    def reader(self) -> AvroSchema:
        return avro_schema(self.reader_text, self.reader_references, self.recursive_depth_max)

    @cached_property
    def projection(self) -> Projection | None:
        return projection_of(self.writer, self.reader)

    @property
    def schema(self) -> Any:
        return self.reader.arrow

    def decode(self, payloads: Any) -> Decoded:
        return self.decode_spans(spans_of(payloads))

    def decode_spans(self, spans: Spans) -> Decoded:
        """Rows of records that lie at these spans."""
        if self.projection is None:
            return self._decode_rows(spans)
        return self._decode_flat(spans, self.projection)

    def _decode_flat(self, spans: Spans, projection: Projection) -> Decoded:
        from headrace.spark.decoding.avro import columns as avro_columns

        failures = no_failures(len(spans))
        top, slots = avro_columns.walk(spans, self.writer.root, failures)
        columns = [avro_columns.column_of(slot, slots) for slot in top.children]
        bad = np.flatnonzero(failures.codes)
        if len(bad) and slots.is_valid[:, bad].any():
            slots.is_valid[:, bad] = 0
            columns = [avro_columns.column_of(slot, slots) for slot in top.children]
        is_here = fixed_validity(slots.is_valid[top.number])
        rows = projection.rows(columns, is_here)
        return Decoded(batch_of(rows, self.schema, len(spans)), failures.messages(spans))

    def _decode_rows(self, spans: Spans) -> Decoded:
        errors: list[str | None] = [None] * len(spans)
        records: list[Any] = [None] * len(spans)
        read = self._record_reader()
        for row in range(len(spans)):
            if spans.kinds[row] == VOID:
                continue
            try:
                records[row] = read(spans.text(row))
            except BAD_RECORD as error:
                errors[row] = f"not a record of this Avro schema: {reason_of(error)}"
        columns = self._columns(records, errors)
        return Decoded(batch_of(columns, self.schema, len(spans)), pa.array(errors, pa.string()))

    def _record_reader(self) -> Callable[[bytes], Any]:
        """What makes a record of the reader's of a payload."""
        writer, reader = self.writer, self.reader
        is_same = self.reader_text == self.writer_text
        if is_same and writer.root.any(needs_rows):
            return RowReader(writer).record
        target = None if is_same else reader.parsed
        has_members = reader.root.any(lambda node: node.has_members)
        guard = RowReader(writer) if writer.root.any(lambda node: node.is_cut) else None

        def read(payload: bytes) -> Any:
            if guard is not None:
                guard.record(payload)  # Refuses what nests too deep for fastavro's stack.
            record = record_in(payload, writer.parsed, target)
            return with_members(record, reader.root) if has_members else record

        return read

    def _columns(self, records: list[Any], errors: list[str | None]) -> list[Any]:
        """A column per field; values that Arrow does not take make their rows bad."""
        columns: list[Any] = []
        for field in self.schema:
            values = [None if record is None else record[field.name] for record in records]
            try:
                columns.append(pa.array(values, field.type))
            except ARROW_REFUSES:
                note_refused(values, field, errors)
                for row, error in enumerate(errors):
                    if error is not None:
                        records[row] = None
                return self._columns(records, errors)
        return columns


BAD_RECORD = (
    ValueError, TypeError, IndexError, KeyError, EOFError, OverflowError, ArithmeticError,
    StopIteration, fastavro.read.SchemaResolutionError,
)  # fmt: skip
"""What fastavro raises on bytes that are not such a record; it has no one error for it."""

ARROW_REFUSES = (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeError, TypeError)


def needs_rows(node: Node) -> bool:
    """Whether fastavro's value of this type would not tell enough, or too much."""
    return node.has_members or node.is_cut


def record_in(payload: bytes, writer: Any, reader: Any) -> Any:
    """The record that all of these bytes are."""
    stream = io.BytesIO(payload)
    record = fastavro.schemaless_reader(stream, writer, reader)
    rest = len(payload) - stream.tell()
    if rest:
        raise ValueError(f"{rest} bytes follow it")
    return record


def note_refused(values: list[Any], field: Any, errors: list[str | None]) -> None:
    """Find the rows whose value Arrow refuses, one by one."""
    for row, value in enumerate(values):
        try:
            pa.array([value], field.type)
        except ARROW_REFUSES as error:
            errors[row] = f"{field.name}: {reason_of(error)}"


def reason_of(error: Exception) -> str:
    """What is wrong with a record, in words that speak of it and not of Python."""
    if isinstance(error, OverflowError):
        return (
            "a number is too large for its type, or a time beyond the years 1 to 9999; is its unit"
            " another?"
        )
    return (str(error) or type(error).__name__)[:200]


def fixed_validity(is_valid: Any) -> Any:
    return pa.array(is_valid.astype(np.bool_))
