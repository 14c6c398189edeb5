"""Frames without rows that stand in for tables and topics while queries are analysed.

They are made of Spark's own parts, so that no Python process is started for them.
"""

from typing import TYPE_CHECKING

from headrace.pipelines.model import PipelineSettings, Source
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.sources import has_headers, source_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

CONNECTORS = ("headrace", "kafka")
"""Whose columns are known without asking Spark."""
STOCK_COLUMNS = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP,"
    " timestampType INT"
)
STOCK_HEADERS = "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
"""The columns of Spark's stock connector, whose jars need not be here for a dry run."""


class StandIns:
    """Makes frames for one session; each is new, so that a query may join two of one table."""

    def __init__(self, spark: "SparkSession") -> None:
        self._nothing = spark.range(0).select()
        self._ticks = spark.readStream.format("rate").load().where("false").select()

    def table(self, schema: "StructType") -> "DataFrame":
        """A table without rows."""
        return filled(self._nothing, schema)

    def stream(self, schema: "StructType") -> "DataFrame":
        """A stream that never has a row."""
        return filled(self._ticks, schema)


def source_schema(source: Source, settings: PipelineSettings) -> "StructType":
    """The columns of a topic, told by the source itself, in this process."""
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
    """The columns of `id BIGINT, name STRING`; Spark parses it."""
    from pyspark.sql.types import StructType

    schema = StructType.fromDDL(ddl)
    if not isinstance(schema, StructType):
        raise PipelineError(f"{ddl!r} is no schema; write names and types: id BIGINT, name STRING")
    return schema


def filled(rows: "DataFrame", schema: "StructType") -> "DataFrame":
    """The columns of a schema, with what is noted on them, and nulls where the rows have none.

    One call to the JVM, where each column would be several: most of a dry run is such calls.
    """
    from pyspark.sql.types import StructField, StructType

    nullable = [StructField(one.name, one.dataType, True, one.metadata) for one in schema.fields]
    return rows.to(StructType(nullable))
