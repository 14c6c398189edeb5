"""What runs in Spark's tasks: a share of the topics becomes RecordBatches.

A reader is pickled to its tasks, so it holds what it was told and nothing that is open.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from headrace.spark.carrying import Carrier
from headrace.spark.refuge import Span
from headrace.spark.source.brokers import shared_brokers
from headrace.spark.source.options import SourceOptions
from headrace.spark.source.planning import Share
from headrace.spark.source.reading import RangeReader
from headrace.spark.source.rows import Decoder, Rows
from headrace.spark.worker_memory import task_done

if TYPE_CHECKING:
    from headrace.spark.unreadable import PutAside


class ShareOfTopics(InputPartition):
    """What one task reads."""

    def __init__(self, share: Share) -> None:
        super().__init__(share)


class TaskReader(Carrier):
    """The part of a reader that its tasks use."""

    def __init__(self, options: SourceOptions, schema: StructType, decoder: Decoder | None) -> None:
        self._options = options
        self._schema = schema
        self._decoder = decoder
        self._timestamp_ms_min: int | None = None

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """RecordBatches of a share; Spark hands over None where nothing was planned."""
        share: Share | None = partition.value
        if not share:
            return
        options = self._options
        brokers = shared_brokers(options.properties, patience_s=None)
        schema = to_arrow_schema(self._schema, timezone="UTC")
        aside = self._aside(share)
        rows = Rows(
            schema,
            self._decoder,
            options.rows.metadata_prefix,
            keeps_payloads=options.rows.keeps_payloads,
            aside=aside,
        )
        reader = RangeReader(
            brokers,
            share,
            rows.wanted,
            fails_on_data_loss=options.fails_on_data_loss,
            timestamp_ms_min=self._timestamp_ms_min,
        )
        try:
            for piece in reader.pieces():
                yield rows.batch(piece.place, piece.records, is_append_time=piece.is_append_time)
        except BaseException:  # Spark closes what it has read enough of.
            if aside is not None:
                aside.abort()
            raise
        if aside is not None:
            aside.finish()
        task_done()

    def _aside(self, share: Share) -> "PutAside | None":
        """Who takes what cannot be read, where it is to be taken out."""
        refuge = self._options.rows.refuge
        if refuge is None or self._decoder is None:
            return None
        # Only tasks write files; a stream's own process, which plans, starts sooner without.
        from headrace.spark.unreadable import PutAside

        spans = (Span(*one.place, one.first, one.end) for one in share)
        return PutAside(refuge, spans)
