"""Decoding JSON payloads by a schema, like Spark's `from_json` but with error messages.

Missing fields are null, unknown ones are ignored, and the last of equal names counts. A payload
that is not JSON, or has a value that does not fit its column, becomes a row with an error. Unlike
in Spark, a STRING column keeps numbers and objects as written, and text after the object is an
error.

Scalars are built by converters, nested values by further scans. Workers import the compiled code;
the process that plans the query does not.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.spark.decoding.columns.failures import (
    MISSING,
    UNFIT,
    Failures,
    no_failures,
    note_bad_utf8,
)
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
from headrace.spark.decoding.ddl import ddl_of
from headrace.spark.decoding.decoder import Decoded, batch_of, nullable, nullable_schema
from headrace.spark.decoding.errors import InvalidSchema


@dataclass(frozen=True)
class JsonDecoder:
    """Decodes objects with the fields of `declared`."""

    declared: Any

    def __post_init__(self) -> None:
        for field in self.declared:
            refuse_keys(field.type, field.name)

    @property
    def schema(self) -> Any:
        return nullable_schema(self.declared)

    def decode(self, payloads: Any) -> Decoded:
        failures = no_failures(len(payloads))
        roots = spans_of(payloads)
        note_bad_utf8(payloads, roots, failures)
        fields = list(self.declared)
        parts = object_columns(roots, fields, "the payload", failures)
        columns = columns_of(parts, fields, failures)
        return Decoded(batch_of(columns, self.schema, len(payloads)), failures.messages(roots))


def refuse_keys(type_: Any, path: str) -> None:
    """Reject maps with keys other than strings, which JSON does not have."""
    if pa.types.is_map(type_):
        if not pa.types.is_string(type_.key_type):
            raise InvalidSchema(
                f"{path}: keys of a JSON object are strings: write MAP<STRING, ...>"
            )
        refuse_keys(type_.item_type, f"{path}[]")
    elif pa.types.is_list(type_):
        refuse_keys(type_.value_type, f"{path}[]")
    elif pa.types.is_struct(type_):
        for field in type_:
            refuse_keys(field.type, f"{path}.{field.name}")


def columns_of(parts: list[Spans], fields: list[Any], failures: Failures) -> list[Any]:
    """Return a column per field; a row with one bad value has nulls in all of them.

    Bad rows are known after the last column, so all columns are built again without them.
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
    return columns_of(parts, fields, failures)


def object_columns(spans: Spans, fields: list[Any], path: str, failures: Failures) -> list[Spans]:
    """Return the spans of each field of these objects; rows without an object become null."""
    from headrace.spark.decoding.json.objects import scan_objects

    names = [field.name.encode() for field in fields]
    name_text = np.frombuffer(b"".join(names) or b"\0", np.uint8)
    name_ends = np.cumsum([0, *map(len, names)], dtype=np.int32)
    shape = (len(fields), len(spans))
    found = (np.zeros(shape, np.int32), np.zeros(shape, np.int32), np.empty(shape, np.uint8))
    faults = (*failures.arrays, failures.column(path, "STRUCT"))
    scan_objects(spans.arrays, (name_text.ctypes.data, name_ends), found, faults)
    starts, ends, kinds = found
    return [
        Spans(spans.data, starts[index], ends[index], kinds[index], spans.rows)
        for index in range(len(fields))
    ]


def column_of(spans: Spans, field: Any, path: str, failures: Failures) -> Any:
    """Build an Arrow array; values that do not fit are null and recorded."""
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
    from headrace.spark.decoding.columns.scalars import scalar_column

    return scalar_column(spans, type_, column, failures)


def checked(spans: Spans, kind: int, column: int, failures: Failures) -> Spans:
    """Void and record the values that are not of this kind."""
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
    return pa.Array.from_buffers(nullable(type_), len(spans), [bitmap(is_valid)], children=children)


def list_column(spans: Spans, type_: Any, path: str, failures: Failures) -> Any:
    offsets, _, values = items_of(spans)
    child = column_of(values, type_.value_field, f"{path}[]", failures)
    is_valid = (spans.kinds == ARRAY).astype(np.uint8)
    buffers = [bitmap(is_valid), pa.py_buffer(offsets)]
    return pa.Array.from_buffers(nullable(type_), len(spans), buffers, children=[child])


def map_column(spans: Spans, type_: Any, path: str, failures: Failures) -> Any:
    offsets, keys, values = items_of(spans)
    key_column = column_of(keys, type_.key_field, f"{path} key", failures)
    value_column = column_of(values, type_.item_field, f"{path}[]", failures)
    entry_type = pa.struct(
        [
            field.with_type(nullable(field.type)).remove_metadata()
            for field in (type_.key_field, type_.item_field)
        ]
    )
    entries = pa.Array.from_buffers(
        entry_type, len(values), [None], children=[key_column, value_column]
    )
    is_valid = (spans.kinds == OBJECT).astype(np.uint8)
    buffers = [bitmap(is_valid), pa.py_buffer(offsets)]
    return pa.Array.from_buffers(nullable(type_), len(spans), buffers, children=[entries])


def items_of(spans: Spans) -> tuple[Any, Spans, Spans]:
    """Return the offsets of the items of arrays or objects, their keys, and their values."""
    from headrace.spark.decoding.json.objects import count_items, scan_items

    offsets = np.empty(len(spans) + 1, np.int32)
    count = count_items(spans.arrays, offsets)
    keys, values = empty_spans(count), empty_spans(count)
    rows = np.empty(count, np.int32)
    scan_items(spans.arrays, keys, values, rows)
    return offsets, Spans(spans.data, *keys, rows), Spans(spans.data, *values, rows)


def empty_spans(count: int) -> tuple[Any, Any, Any]:
    return np.zeros(count, np.int32), np.zeros(count, np.int32), np.zeros(count, np.uint8)
