"""Decoding CSV payloads, one line each, by a schema.

Fields come in the order of the columns. An empty field is null; a quoted empty field is an empty
string. Quotes within quotes are doubled or escaped. A line with the wrong number of fields, or with
a value that does not fit, becomes a row with an error. Workers import the compiled code; the
process that plans the query does not.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.spark.decoding.columns import failures as faults
from headrace.spark.decoding.columns.failures import Failures, no_failures
from headrace.spark.decoding.columns.spans import NULL, VOID, Spans, spans_of
from headrace.spark.decoding.ddl import ddl_of
from headrace.spark.decoding.decoder import Decoded, batch_of, nullable_schema
from headrace.spark.decoding.errors import InvalidSchema


@dataclass(frozen=True)
class CsvDecoder:
    """Decodes lines of delimited fields."""

    declared: Any
    delimiter: str = ","
    null_value: str = ""
    header: bool = False
    """A payload with the names of the columns is a header, and becomes a row of nulls."""
    escape: str = ""
    """The sign that escapes quotes and itself within quotes."""

    def __post_init__(self) -> None:
        for field in self.declared:
            if pa.types.is_nested(field.type):
                raise InvalidSchema(
                    f"{field.name}: a CSV field cannot be {ddl_of(field.type)}; "
                    "declare it as STRING, or use JSON"
                )

    @property
    def schema(self) -> Any:
        return nullable_schema(self.declared)

    def decode(self, payloads: Any) -> Decoded:
        failures = no_failures(len(payloads))
        roots = spans_of(payloads)
        faults.note_bad_utf8(payloads, roots, failures)
        self._note_empty(roots, failures)
        parts = self._scan(roots, failures)
        columns = self._columns(parts, failures)
        bad = np.flatnonzero(failures.codes)
        if any((part.kinds[bad] != VOID).any() for part in parts):
            for part in parts:
                part.kinds[bad] = VOID
            columns = self._columns(parts, failures)
        return Decoded(batch_of(columns, self.schema, len(payloads)), failures.messages(roots))

    def _note_empty(self, roots: Spans, failures: Failures) -> None:
        """Record empty payloads as bad; with one column they are a row with a null."""
        if len(self.declared) == 1:
            return
        for index in np.flatnonzero((roots.starts == roots.ends) & (roots.kinds != VOID)):
            failures.note(faults.EMPTY, roots, index, 0)
            roots.kinds[index] = VOID

    def _scan(self, roots: Spans, failures: Failures) -> list[Spans]:
        from headrace.spark.decoding.csv.scanning import scan_lines

        for field in self.declared:
            failures.column(field.name, ddl_of(field.type))
        shape = (len(self.declared), len(roots))
        found = (np.zeros(shape, np.int32), np.zeros(shape, np.int32), np.zeros(shape, np.uint8))
        scan_lines(
            roots.address, roots.starts, roots.ends, roots.kinds,
            ord(self.delimiter), ord(self.escape or "\0"), found, failures.arrays,
        )  # fmt: skip
        parts = [
            Spans(roots.data, found[0][index], found[1][index], found[2][index], roots.rows)
            for index in range(len(self.declared))
        ]
        if self.header:
            self._void_headers(parts)
        if self.null_value:
            void_texts(parts, self.null_value.encode())
        for part, field in zip(parts, self.declared, strict=True):
            find_kinds(part, field.type)
        return parts

    def _void_headers(self, parts: list[Spans]) -> None:
        is_header = np.ones(len(parts[0]), np.bool_)
        for part, field in zip(parts, self.declared, strict=True):
            is_header &= texts_equal(part, field.name.encode())
        for part in parts:
            part.kinds[is_header] = VOID

    def _columns(self, parts: list[Spans], failures: Failures) -> list[Any]:
        from headrace.spark.decoding.columns.scalars import scalar_column

        columns = []
        for index, (part, field) in enumerate(zip(parts, self.declared, strict=True)):
            if not field.nullable:
                for row in np.flatnonzero(part.kinds == NULL):
                    failures.note(faults.MISSING, part, row, index)
            columns.append(scalar_column(part, field.type, index, failures))
        return columns


def find_kinds(part: Spans, type_: Any) -> None:
    """Find numbers and booleans among the texts, for columns of these types."""
    from headrace.spark.decoding.csv.scanning import find_booleans, find_numbers

    if pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        find_numbers(part.address, part.starts, part.ends, part.kinds)
    elif pa.types.is_boolean(type_):
        find_booleans(part.address, part.starts, part.ends, part.kinds)


def texts_equal(part: Spans, text: bytes) -> Any:
    """Return a mask of the values that equal this text."""
    is_equal = (part.ends - part.starts == len(text)) & (part.kinds > NULL)
    for index in np.flatnonzero(is_equal):
        is_equal[index] = part.text(index) == text
    return is_equal


def void_texts(parts: list[Spans], null_value: bytes) -> None:
    for part in parts:
        part.kinds[texts_equal(part, null_value)] = NULL
