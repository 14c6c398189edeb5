"""`format("headrace")` for Spark: its schema, readers and writers.

Spark passes some parameters by name.
"""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from headrace.spark.decoding.decoder import Decoder
from headrace.spark.launching.pickled_package import PickledWithPackage
from headrace.spark.source.options import check, client_properties, parse, parse_rows
from headrace.spark.source.rows import row_schema

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )


class DefaultSource(PickledWithPackage, DataSource):
    """Topics of any Kafka cluster, read and written without jars."""

    @classmethod
    def name(cls) -> str:
        return "headrace"

    def schema(self) -> StructType:
        """Return the stock connector's columns, or those of the payload, as selected."""
        check(self.options)
        rows = parse_rows(self.options)
        schema = row_schema(
            rows.columns,
            has_headers=rows.has_headers,
            decoder=self._decoder(),
            prefix=rows.metadata_prefix,
        )
        return from_arrow_schema(schema)

    def reader(self, schema: StructType) -> "DataSourceReader":
        from headrace.spark.source.batch_reader import BatchReader, FilteringBatchReader

        options = parse(self.options, is_streaming=False)
        kind = FilteringBatchReader if options.pushes_filters else BatchReader
        return kind(options, schema, self._decoder())

    def streamReader(self, schema: StructType) -> "DataSourceStreamReader":  # noqa: N802
        from headrace.spark.source.stream_reader import StreamReader

        options = parse(self.options, is_streaming=True)
        return StreamReader(options, schema, self._decoder())

    def writer(self, schema: StructType, overwrite: bool) -> "DataSourceWriter":
        from headrace.spark.sink.writer import batch_writer

        return batch_writer(self.options, schema, overwrite)

    def streamWriter(  # noqa: N802
        self, schema: StructType, overwrite: bool
    ) -> "DataSourceStreamWriter":
        from headrace.spark.sink.writer import stream_writer

        return stream_writer(self.options, schema, overwrite)

    def _decoder(self) -> Decoder | None:
        """Return the decoder, or None for bytes."""
        if "format" not in self.options:
            return None
        from headrace.spark.decoding.formats import decoder_of

        return decoder_of(self.options, client_properties(self.options))
