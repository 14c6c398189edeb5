"""Types of columns in which anything may be null: a row of a bad payload has no values."""

from typing import Any

import pyarrow as pa


def loosened_field(field: Any) -> Any:
    return pa.field(field.name, loosened(field.type), nullable=field.nullable)


def loosened(type_: Any) -> Any:
    """The type with struct fields that may be null: a row of a bad payload has no values."""
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(field.name, loosened(field.type)) for field in type_])
    if pa.types.is_map(type_):
        return pa.map_(loosened(type_.key_type), loosened(type_.item_type))
    if pa.types.is_list(type_):
        return pa.list_(pa.field("element", loosened(type_.value_type)))
    return type_


def loosened_schema(declared: Any) -> Any:
    """The schema of the rows: a bad payload has nulls, so every column may be null."""
    return pa.schema(
        [pa.field(field.name, loosened(field.type), metadata=field.metadata) for field in declared]
    )
