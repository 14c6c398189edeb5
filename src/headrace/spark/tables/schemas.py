"""Schemas of Spark in Arrow's words and back: the one place where they are matched."""

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType


def schema_of(schema: pa.Schema) -> StructType:
    """Spark's schema for a table's."""
    return from_arrow_schema(schema.remove_metadata())


def arrow_schema_of(schema: StructType) -> pa.Schema:
    """The Arrow schema that Spark has for its own, and expects of a Python source.

    What Spark notes on a column, such as a watermark, is of a query and not of a table.
    """
    fields = to_arrow_schema(schema, timezone="UTC")
    return pa.schema([field.remove_metadata() for field in fields])
