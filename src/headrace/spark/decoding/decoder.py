"""The interface of decoders: columns by a schema, and an error for each bad payload."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

_REJECTIONS = (ValueError, TypeError, OverflowError)
"""Errors for values that a column cannot have, Arrow's among them."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A block of payloads as columns.

    A bad payload has nulls in all columns and a message in `errors`; a null payload has no error.
    """

    columns: Any
    errors: Any


class Decoder(Protocol):
    """Decodes payloads; picklable for workers."""

    @property
    def schema(self) -> Any:
        """The Arrow schema of the columns, in Spark's types; all may be null."""
        ...

    def decode(self, payloads: Any) -> Decoded:
        """Decode an Arrow array of binary values."""
        ...


def batch_of(arrays: list[Any], schema: Any, count: int) -> Any:
    """Return a record batch that keeps its number of rows even without columns."""
    if arrays:
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
    return pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))


def value_columns(
    schema: Any, rows: list[Any], getters: Sequence[Callable[[Any], Any]], errors: list[str | None]
) -> list[Any]:
    """Return a column per field from Python objects, one per row or None.

    A value that a getter or Arrow rejects makes its row bad; then all columns are built again.
    """
    columns = []
    for field, getter in zip(schema, getters, strict=True):
        try:
            values = [None if row is None else getter(row) for row in rows]
            columns.append(pa.array(values, field.type))
        except _REJECTIONS:
            _drop_rejected(field, getter, rows, errors)
            return value_columns(schema, rows, getters, errors)
    return columns


def _drop_rejected(
    field: Any, getter: Callable[[Any], Any], rows: list[Any], errors: list[str | None]
) -> None:
    """Find the rejected values of a column one by one, and drop their rows."""
    for number, row in enumerate(rows):
        try:
            pa.array([None if row is None else getter(row)], field.type)
        except _REJECTIONS as error:
            errors[number] = f"{field.name}: {(str(error) or type(error).__name__)[:200]}"
            rows[number] = None


def nullable(type_: Any) -> Any:
    """Make the fields of structs nullable: a row of a bad payload has no values."""
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(field.name, nullable(field.type)) for field in type_])
    if pa.types.is_map(type_):
        return pa.map_(nullable(type_.key_type), nullable(type_.item_type))
    if pa.types.is_list(type_):
        return pa.list_(pa.field("element", nullable(type_.value_type)))
    return type_


def nullable_schema(declared: Any) -> Any:
    """Make all columns nullable: a bad payload has nulls."""
    return pa.schema(
        [pa.field(field.name, nullable(field.type), metadata=field.metadata) for field in declared]
    )
