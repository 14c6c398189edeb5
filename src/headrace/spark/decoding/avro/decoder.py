"""Avro payloads to columns: flat records by compiled code, all others row by row.

The payloads are bare records of one schema. Records of several writers' schemas, whose ids precede
the payloads, become rows of one reader's schema in `registry/`.
"""

from dataclasses import dataclass, fields
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.serdes.avro.model import Record
from headrace.serdes.avro.schema import AvroSchema
from headrace.spark.decoding.avro.column_types import avro_schema, columns_of
from headrace.spark.decoding.avro.projection import Projection, projection_of
from headrace.spark.decoding.avro.rows import RowReader
from headrace.spark.decoding.columns.failures import no_failures
from headrace.spark.decoding.columns.spans import VOID, Spans, spans_of
from headrace.spark.decoding.decoder import Decoded, batch_of, value_columns


@dataclass(frozen=True)
class AvroDecoder:
    """Reads records that were written by one schema as rows of another, or of the same."""

    writer_text: str
    reader_text: str
    writer_references: tuple[str, ...] = ()
    reader_references: tuple[str, ...] = ()
    recursive_depth_max: int = 0
    """How often a record may appear in itself; 0 rejects records that do."""

    def __getstate__(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @cached_property
    def writer(self) -> AvroSchema:
        is_same = self.writer_text == self.reader_text
        if is_same and self.writer_references == self.reader_references:
            return self.reader
        return avro_schema(self.writer_text, self.writer_references)

    @cached_property
    def reader(self) -> AvroSchema:
        return avro_schema(self.reader_text, self.reader_references)

    @cached_property
    def schema(self) -> Any:
        return columns_of(self.reader, self.recursive_depth_max)

    @cached_property
    def written(self) -> Any:
        """The Arrow schema of the writer's columns."""
        return columns_of(self.writer, self.recursive_depth_max)

    @cached_property
    def projection(self) -> Projection | None:
        writer, reader = self.writer.root, self.reader.root
        assert isinstance(writer, Record), "avro_schema takes no others"
        assert isinstance(reader, Record), "avro_schema takes no others"
        return projection_of(writer, reader, self.written, self.schema)

    @cached_property
    def _rows(self) -> RowReader:
        return RowReader(self.writer, self.reader)

    def decode(self, payloads: Any) -> Decoded:
        spans = spans_of(payloads)
        if self.projection is None:
            return self._decode_rows(spans)
        return self._decode_flat(spans, self.projection)

    def _decode_flat(self, spans: Spans, projection: Projection) -> Decoded:
        from headrace.spark.decoding.avro import columns as avro_columns

        failures = no_failures(len(spans))
        top, slots = avro_columns.walk(spans, self.writer.root, self.written, failures)
        columns = [avro_columns.column_of(slot, slots) for slot in top.children]
        bad = np.flatnonzero(failures.codes)
        if len(bad) and slots.is_valid[:, bad].any():
            slots.is_valid[:, bad] = 0
            columns = [avro_columns.column_of(slot, slots) for slot in top.children]
        is_here = pa.array(slots.is_valid[top.number].astype(np.bool_))
        rows = projection.rows(columns, is_here)
        return Decoded(batch_of(rows, self.schema, len(spans)), failures.messages(spans))

    def _decode_rows(self, spans: Spans) -> Decoded:
        errors: list[str | None] = [None] * len(spans)
        records: list[Any] = [None] * len(spans)
        for row in range(len(spans)):
            if spans.kinds[row] == VOID:
                continue
            try:
                records[row] = self._rows.record(spans.text(row))
            except ValueError as error:
                errors[row] = f"not a record of this Avro schema: {error}"
        getters = [itemgetter(field.name) for field in self.schema]
        columns = value_columns(self.schema, records, getters, errors)
        return Decoded(batch_of(columns, self.schema, len(spans)), pa.array(errors, pa.string()))
