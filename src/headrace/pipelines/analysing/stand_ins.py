"""Empty frames in place of tables and topics while queries are analysed.

They consist of Spark's own parts, so that no Python process starts for them.
"""

from typing import TYPE_CHECKING

from headrace.pipelines.model import PipelineSettings, Source
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.queries.sources import has_headers, source_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

CONNECTORS = ("headrace", "kafka")
"""Connectors whose columns are known without Spark."""
STOCK_COLUMNS = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP,"
    " timestampType INT"
)
STOCK_HEADERS = "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
"""The columns of Spark's stock connector, whose jars a dry run does not need."""


class StandIns:
    """Makes frames for one session; each is new, so that a query may join a table with itself."""

    def __init__(self, spark: "SparkSession") -> None:
        self._nothing = spark.range(0).select()
        self._ticks = spark.readStream.format("rate").load().where("false").select()

    def table(self, schema: "StructType") -> "DataFrame":
        """Return a table without rows."""
        return filled(self._nothing, schema)

    def stream(self, schema: "StructType") -> "DataFrame":
        """Return a stream that never has a row."""
        return filled(self._ticks, schema)


def source_schema(source: Source, settings: PipelineSettings) -> "StructType":
    """Return the columns of a topic, computed by the source itself in this process."""
    if source.connector == "kafka":
        headers = f", {STOCK_HEADERS}" if has_headers(source) else ""
        return parsed_schema(f"{STOCK_COLUMNS}{headers}")
    from pyspark.sql.datasource import CaseInsensitiveDict

    from headrace.spark.source.options import parse
    from headrace.spark.source.source import DefaultSource

    options = CaseInsensitiveDict(source_options(source, settings))
    parse(options, is_streaming=True)
    return DefaultSource(options).schema()


def parsed_schema(ddl: str) -> "StructType":
    """Return the columns of `id BIGINT, name STRING`; Spark parses it."""
    from pyspark.sql.types import StructType

    schema = StructType.fromDDL(ddl)
    if not isinstance(schema, StructType):
        raise PipelineError(f"{ddl!r} is not a schema; write names and types: id BIGINT, name TEXT")
    return schema


def filled(rows: "DataFrame", schema: "StructType") -> "DataFrame":
    """Return the columns of a schema, with their metadata, and nulls for those that rows lack.

    One call to the JVM instead of several per column: such calls are most of a dry run's time.
    """
    from pyspark.sql.types import StructField, StructType

    nullable = [StructField(one.name, one.dataType, True, one.metadata) for one in schema.fields]
    return rows.to(StructType(nullable))
