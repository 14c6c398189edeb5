"""Columns from lines of CSV: fields found by a scanner, then converted by their columns' types."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.spark.decoding.columns.failures import EMPTY, MISSING, Failures, no_failures
from headrace.spark.decoding.columns.scalars import noted, scalar_column
from headrace.spark.decoding.columns.spans import NULL, VOID, Spans, spans_of
from headrace.spark.decoding.columns.utf8 import note_bad_utf8
from headrace.spark.decoding.csv.scanning import find_booleans, find_numbers, scan_lines
from headrace.spark.decoding.ddl import ddl_of


@dataclass(frozen=True, slots=True)
class Lines:
    """How lines are read: the columns in their order, and what parts and marks fields."""

    declared: Any
    delimiter: str
    null_value: str
    header: bool
    escape: str = ""

    def decode(self, payloads: Any) -> tuple[list[Any], Any]:
        """A column per field, and why a payload gives no row."""
        failures = no_failures(len(payloads))
        roots = spans_of(payloads)
        note_bad_utf8(payloads, roots, failures)
        self._note_empty(roots, failures)
        parts = self._scan(roots, failures)
        columns = self._columns(parts, failures)
        bad = np.flatnonzero(failures.codes)
        if any((part.kinds[bad] != VOID).any() for part in parts):
            for part in parts:
                part.kinds[bad] = VOID
            columns = self._columns(parts, failures)
        return columns, failures.messages(roots)

    def _note_empty(self, roots: Spans, failures: Failures) -> None:
        """An empty payload is no line, unless the schema has but one column to be null."""
        if len(self.declared) == 1:
            return
        for index in np.flatnonzero((roots.starts == roots.ends) & (roots.kinds != VOID)):
            failures.note(EMPTY, roots, index, 0)
            roots.kinds[index] = VOID

    def _scan(self, roots: Spans, failures: Failures) -> list[Spans]:
        for field in self.declared:
            failures.column(field.name, ddl_of(field.type))
        shape = (len(self.declared), len(roots))
        found = (np.zeros(shape, np.int32), np.zeros(shape, np.int32), np.zeros(shape, np.uint8))
        scan_lines(
            roots.address, roots.starts, roots.ends, roots.kinds,
            ord(self.delimiter), ord(self.escape or "\0"), found, noted(failures),
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
        columns = []
        for index, (part, field) in enumerate(zip(parts, self.declared, strict=True)):
            if not field.nullable:
                for row in np.flatnonzero(part.kinds == NULL):
                    failures.note(MISSING, part, row, index)
            columns.append(scalar_column(part, field.type, index, failures))
        return columns


def find_kinds(part: Spans, type_: Any) -> None:
    """CSV has only texts: tell numbers and booleans where the column wants them."""
    if pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        find_numbers(part.address, part.starts, part.ends, part.kinds)
    elif pa.types.is_boolean(type_):
        find_booleans(part.address, part.starts, part.ends, part.kinds)


def texts_equal(part: Spans, text: bytes) -> Any:
    """Which values are exactly this text."""
    is_equal = (part.ends - part.starts == len(text)) & (part.kinds > NULL)
    for index in np.flatnonzero(is_equal):
        is_equal[index] = part.text(index) == text
    return is_equal


def void_texts(parts: list[Spans], null_value: bytes) -> None:
    for part in parts:
        part.kinds[texts_equal(part, null_value)] = NULL
