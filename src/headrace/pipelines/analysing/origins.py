"""Origins of columns, noted in the metadata that Spark carries with a column.

Spark keeps metadata while a column is selected, renamed, joined or grouped by, and drops it where
a value is computed. So the notes on the stand-ins of topics and tables identify the columns of a
query that are unchanged.

Two limits: Spark keeps only the notes of the first part of a union; and a Python function that
makes rows (`mapInPandas`) keeps the notes of the schema it was given, or none for a schema as text.
"""

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.types import StructField, StructType

RECORD = "record"
"""The owner of the columns about a record, besides its payload."""
_KEY = "headrace.origin"

Origins = Mapping[str, str]
"""Columns by name, with `OWNER.COLUMN` for a known origin."""


def origin(owner: str, column: str) -> str:
    """Return an origin as text: `record.topic`, `raw.orders.day`."""
    return f"{owner}.{column}"


def noted(known: str) -> dict[str, str]:
    """Return metadata with an origin."""
    return {_KEY: known}


def origin_of(field: "StructField") -> str:
    """Return the origin of a column, or an empty text."""
    return str(field.metadata.get(_KEY, ""))


def origins_of(schema: "StructType") -> dict[str, str]:
    return {field.name: known for field in schema.fields if (known := origin_of(field))}


def with_origins(schema: "StructType", known: Origins) -> "StructType":
    """Return the columns with exactly these origins noted."""
    from pyspark.sql.types import StructField, StructType

    notes = {name: noted(one) for name, one in known.items()}
    return StructType(
        [
            StructField(field.name, field.dataType, field.nullable, notes.get(field.name))
            for field in schema.fields
        ]
    )


def shared(several: Iterable[Origins]) -> Origins:
    """Return the origins that all of several flows share."""
    return reduce(lambda one, other: dict(one.items() & other.items()), several)
