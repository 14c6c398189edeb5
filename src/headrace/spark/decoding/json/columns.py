"""Columns of any type from JSON values: scalars by their converters, nested ones by scanning on."""

from typing import Any

import numpy as np
import pyarrow as pa

from headrace.spark.decoding.columns.failures import MISSING, UNFIT, Failures, no_failures
from headrace.spark.decoding.columns.nullability import loosened, loosened_field
from headrace.spark.decoding.columns.scalars import noted, scalar_column
from headrace.spark.decoding.columns.spans import (
    ABSENT,
    ARRAY,
    NULL,
    OBJECT,
    VOID,
    Spans,
    bitmap,
    spans_of,
)
from headrace.spark.decoding.columns.utf8 import note_bad_utf8
from headrace.spark.decoding.ddl import ddl_of
from headrace.spark.decoding.json.objects import count_items, scan_items, scan_objects


def decode_objects(payloads: Any, fields: list[Any]) -> tuple[list[Any], Any]:
    """A column per field of the objects that payloads are, and why a payload gives no row."""
    failures = no_failures(len(payloads))
    roots = spans_of(payloads)
    note_bad_utf8(payloads, roots, failures)
    parts = object_columns(roots, fields, "the payload", failures)
    columns = columns_of(parts, fields, failures)
    return columns, failures.messages(roots)


def columns_of(parts: list[Spans], fields: list[Any], failures: Failures) -> list[Any]:
    """A column per field. A row with one bad value gives no values at all.

    That is known when the last column is made; then the bad rows are voided, and all made again.
    """
    columns = [
        column_of(part, field, field.name, failures)
        for part, field in zip(parts, fields, strict=True)
    ]
    bad = np.flatnonzero(failures.codes)
    if not any((part.kinds[bad] != VOID).any() for part in parts):
        return columns
    for part in parts:
        part.kinds[bad] = VOID
    return [
        column_of(part, field, field.name, failures)
        for part, field in zip(parts, fields, strict=True)
    ]


def object_columns(spans: Spans, fields: list[Any], path: str, failures: Failures) -> list[Spans]:
    """The spans of each field of these objects; rows that are no objects become null."""
    names = [field.name.encode() for field in fields]
    name_text = np.frombuffer(b"".join(names) or b"\0", np.uint8)
    name_ends = np.cumsum([0, *map(len, names)], dtype=np.int32)
    shape = (len(fields), len(spans))
    found = (np.zeros(shape, np.int32), np.zeros(shape, np.int32), np.empty(shape, np.uint8))
    scan_objects(
        spans.address, spans.starts, spans.ends, spans.kinds,
        name_text.ctypes.data, name_ends,
        spans.rows, failures.column(path, "STRUCT"), found, noted(failures),
    )  # fmt: skip
    starts, ends, kinds = found
    return [
        Spans(spans.data, starts[index], ends[index], kinds[index], spans.rows)
        for index in range(len(fields))
    ]


def column_of(spans: Spans, field: Any, path: str, failures: Failures) -> Any:
    """An Arrow array with the field's type; what does not fit is null and noted."""
    type_ = field.type
    column = failures.column(path, ddl_of(type_))
    if not field.nullable:
        for index in np.flatnonzero((spans.kinds == ABSENT) | (spans.kinds == NULL)):
            failures.note(MISSING, spans, index, column)
    if pa.types.is_struct(type_):
        return struct_column(checked(spans, OBJECT, column, failures), type_, path, failures)
    if pa.types.is_map(type_):
        return map_column(checked(spans, OBJECT, column, failures), type_, path, failures)
    if pa.types.is_list(type_):
        return list_column(checked(spans, ARRAY, column, failures), type_, path, failures)
    return scalar_column(spans, type_, column, failures)


def checked(spans: Spans, kind: int, column: int, failures: Failures) -> Spans:
    """The same spans, void where a value is not of the one kind that fits."""
    for index in np.flatnonzero((spans.kinds > NULL) & (spans.kinds != kind)):
        failures.note(UNFIT, spans, index, column)
    kinds = np.where(spans.kinds == kind, spans.kinds, VOID).astype(np.uint8)
    return Spans(spans.data, spans.starts, spans.ends, kinds, spans.rows)


def struct_column(spans: Spans, type_: Any, path: str, failures: Failures) -> Any:
    fields = list(type_)
    parts = object_columns(spans, fields, path, failures)
    children = [
        column_of(part, field, f"{path}.{field.name}", failures)
        for part, field in zip(parts, fields, strict=True)
    ]
    is_valid = (spans.kinds == OBJECT).astype(np.uint8)
    return pa.Array.from_buffers(loosened(type_), len(spans), [bitmap(is_valid)], children=children)


def list_column(spans: Spans, type_: Any, path: str, failures: Failures) -> Any:
    offsets, _, values = items_of(spans)
    child = column_of(values, type_.value_field, f"{path}[]", failures)
    is_valid = (spans.kinds == ARRAY).astype(np.uint8)
    buffers = [bitmap(is_valid), pa.py_buffer(offsets)]
    return pa.Array.from_buffers(loosened(type_), len(spans), buffers, children=[child])


def map_column(spans: Spans, type_: Any, path: str, failures: Failures) -> Any:
    offsets, keys, values = items_of(spans)
    key_column = column_of(keys, type_.key_field, f"{path} key", failures)
    value_column = column_of(values, type_.item_field, f"{path}[]", failures)
    entry_type = pa.struct([loosened_field(type_.key_field), loosened_field(type_.item_field)])
    entries = pa.Array.from_buffers(
        entry_type, len(values), [None], children=[key_column, value_column]
    )
    is_valid = (spans.kinds == OBJECT).astype(np.uint8)
    buffers = [bitmap(is_valid), pa.py_buffer(offsets)]
    return pa.Array.from_buffers(loosened(type_), len(spans), buffers, children=[entries])


def items_of(spans: Spans) -> tuple[Any, Spans, Spans]:
    """All that arrays or objects hold: where each one's items begin, their keys, their values."""
    offsets = np.empty(len(spans) + 1, np.int32)
    count = count_items(spans.address, spans.starts, spans.kinds, spans.ends, offsets)
    keys, values = empty_spans(count), empty_spans(count)
    rows = np.empty(count, np.int32)
    scan_items(spans.address, spans.starts, spans.kinds, spans.ends, spans.rows, keys, values, rows)
    return offsets, Spans(spans.data, *keys, rows), Spans(spans.data, *values, rows)


def empty_spans(count: int) -> tuple[Any, Any, Any]:
    return np.zeros(count, np.int32), np.zeros(count, np.int32), np.zeros(count, np.uint8)
