"""Where the columns of a query come from, noted in the metadata that Spark carries with a column.

Spark hands metadata on while a column is chosen, renamed, joined or grouped by, and drops it where
something is computed. So what is noted on the stand-ins of topics and tables tells which columns of
a query are still what these have given.

Two things cannot be told. Of a union Spark keeps what its first part notes. And a function in
Python that makes rows of its own (`mapInPandas`) is taken at its word: it has the notes that are in
the schema it was given, which are none if it was written down as text.
"""

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.types import StructField, StructType

RECORD = "record"
"""The owner of what a source tells of each record beside its payload."""
_KEY = "headrace.origin"

Origins = Mapping[str, str]
"""Columns by name, with `OWNER.COLUMN` of those whose origin is known."""


def origin(owner: str, column: str) -> str:
    """How the origin of a column is written: `record.topic`, `raw.orders.day`."""
    return f"{owner}.{column}"


def noted(known: str) -> dict[str, str]:
    """Metadata that notes an origin."""
    return {_KEY: known}


def origin_of(field: "StructField") -> str:
    """The origin of a column; nothing if it is not known."""
    return str(field.metadata.get(_KEY, ""))


def origins_of(schema: "StructType") -> dict[str, str]:
    return {field.name: known for field in schema.fields if (known := origin_of(field))}


def with_origins(schema: "StructType", known: Origins) -> "StructType":
    """The columns with these origins, and no others, noted on them."""
    from pyspark.sql.types import StructField, StructType

    notes = {name: noted(one) for name, one in known.items()}
    return StructType(
        [
            StructField(field.name, field.dataType, field.nullable, notes.get(field.name))
            for field in schema.fields
        ]
    )


def shared(several: Iterable[Origins]) -> Origins:
    """What all of several flows agree on."""
    return reduce(lambda one, other: dict(one.items() & other.items()), several)
