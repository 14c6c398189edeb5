"""Frames without rows that stand in for tables and topics while queries are analysed.

They are made of Spark's own parts, so that no Python process is started for them.
"""

import re
from typing import TYPE_CHECKING

from headrace.pipelines.analysing.origins import noted, origin_of
from headrace.pipelines.model import PipelineSettings, Source
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.sources import has_headers, source_options

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructField, StructType

CONNECTORS = ("headrace", "kafka")
"""Whose columns are known without asking Spark."""
STOCK_COLUMNS = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP,"
    " timestampType INT"
)
STOCK_HEADERS = "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
"""The columns of Spark's stock connector, whose jars need not be here for a dry run."""
_PLAIN = re.compile(r"[\w<>,:()]+")
"""A type without names that would have to be quoted."""


class StandIns:
    """Makes frames for one session; each is new, so that a query may join two of one table."""

    def __init__(self, spark: "SparkSession") -> None:
        self._nothing = spark.range(0)
        self._ticks = spark.readStream.format("rate").load().where("false")

    def table(self, schema: "StructType") -> "DataFrame":
        """A table without rows."""
        return _with_nulls(self._nothing, schema)

    def stream(self, schema: "StructType") -> "DataFrame":
        """A stream that never has a row."""
        return _with_nulls(self._ticks, schema)


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


def _with_nulls(rows: "DataFrame", schema: "StructType") -> "DataFrame":
    """Columns of nulls; by one text where they can be written so, as that is much quicker."""
    texts = [_null_text(field) for field in schema.fields]
    if None not in texts:
        return rows.selectExpr(*filter(None, texts))
    from pyspark.sql import functions as F  # noqa: N812

    pairs = zip(texts, schema.fields, strict=True)
    return rows.select(*(F.expr(text) if text else _null(field) for text, field in pairs))


def _null_text(field: "StructField") -> str | None:
    """A column of nulls in SQL, which has no words for metadata."""
    kind = field.dataType.simpleString()
    if origin_of(field) or not _PLAIN.fullmatch(kind):
        return None
    return f"CAST(NULL AS {kind}) AS `{field.name.replace('`', '``')}`"


def _null(field: "StructField") -> "Column":
    from pyspark.sql import functions as F  # noqa: N812

    null = F.lit(None).cast(field.dataType)
    known = origin_of(field)
    return null.alias(field.name, metadata=noted(known)) if known else null.alias(field.name)
