"""Conversion of schemas between Spark and Arrow."""

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType


def schema_of(schema: pa.Schema) -> StructType:
    """Convert a table's schema to Spark's."""
    return from_arrow_schema(schema.remove_metadata())


def arrow_schema_of(schema: StructType) -> pa.Schema:
    """Convert Spark's schema to the Arrow schema that it expects of a Python source.

    Metadata of columns, such as watermarks, belongs to queries and is left out.
    """
    fields = to_arrow_schema(schema, timezone="UTC")
    return pa.schema([field.remove_metadata() for field in fields])
