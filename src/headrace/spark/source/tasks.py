"""The part of the readers that runs in tasks: a share of the topics becomes RecordBatches.

Tasks unpickle the reader, so it has options and no open resources.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from headrace.spark.decoding.decoder import Decoder
from headrace.spark.launching.pickled_package import PickledWithPackage
from headrace.spark.side_output import Span
from headrace.spark.source.brokers import shared_brokers
from headrace.spark.source.options import SourceOptions
from headrace.spark.source.planning import TaskRanges
from headrace.spark.source.reading import RangeReader
from headrace.spark.source.rows import Rows

if TYPE_CHECKING:
    from headrace.spark.side_output_files import SideOutputWriter


class TaskPartition(InputPartition):
    """The share of one task."""

    def __init__(self, share: TaskRanges) -> None:
        super().__init__(share)


class TaskReader(PickledWithPackage):
    """The part of a reader that its tasks use."""

    def __init__(self, options: SourceOptions, schema: StructType, decoder: Decoder | None) -> None:
        self._options = options
        self._schema = schema
        self._decoder = decoder
        self._timestamp_ms_min: int | None = None

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the RecordBatches of a share; Spark passes None if no tasks were planned."""
        share: TaskRanges | None = partition.value
        if not share:
            return
        options = self._options
        brokers = shared_brokers(options.properties, patience_s=None)
        schema = to_arrow_schema(self._schema, timezone="UTC")
        side_output = self._side_output(share)
        rows = Rows(
            schema,
            self._decoder,
            options.rows.metadata_prefix,
            keeps_payloads=options.rows.keeps_payloads,
            side_output=side_output,
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
        except BaseException:  # Spark closes the generator once it has enough rows.
            if side_output is not None:
                side_output.abort()
            raise
        if side_output is not None:
            side_output.finish()

    def _side_output(self, share: TaskRanges) -> "SideOutputWriter | None":
        """Open the side output for unreadable records, if there is one."""
        side_output = self._options.rows.side_output
        if side_output is None or self._decoder is None:
            return None
        # Only tasks write files; the process that plans a stream starts sooner without this.
        from headrace.spark.side_output_files import SideOutputWriter

        spans = (Span(*one.place, one.first, one.end) for one in share)
        return SideOutputWriter(side_output, spans)
