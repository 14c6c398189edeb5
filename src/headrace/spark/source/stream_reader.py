"""`spark.readStream.format("headrace")`: planned in one process during the query's life.

Spark polls the latest offsets all the time, and plans tasks with every micro-batch; each call costs
at most one request to each leader.
"""

from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from headrace.spark.decoding.decoder import Decoder
from headrace.spark.source.brokers import shared_brokers
from headrace.spark.source.offsets import from_spark, to_spark
from headrace.spark.source.options import SourceOptions
from headrace.spark.source.progress import BackgroundCommits
from headrace.spark.source.stream_plan import StreamPlan
from headrace.spark.source.tasks import TaskPartition, TaskReader

SparkOffset = dict[str, dict[str, int]]


class StreamReader(TaskReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans the tasks of micro-batches."""

    def __init__(self, options: SourceOptions, schema: StructType, decoder: Decoder | None) -> None:
        super().__init__(options, schema, decoder)
        self._opened: StreamPlan | None = None
        self._commits: BackgroundCommits | None = None

    def initialOffset(self) -> SparkOffset:  # noqa: N802
        return to_spark(self._plan.initial())

    def latestOffset(self, start: SparkOffset, limit: ReadLimit) -> SparkOffset:  # noqa: N802
        """Return the end of the next micro-batch; Spark may ignore the options and read all."""
        is_limited = not isinstance(limit, ReadAllAvailable)
        return to_spark(self._plan.next_end(from_spark(start), is_limited=is_limited))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return one of the limits, as Spark supports one; `latestOffset` applies both."""
        options = self._options
        if options.rows_max is not None:
            return ReadMaxRows(options.rows_max)
        if options.bytes_max is not None:
            return ReadMaxBytes(options.bytes_max)
        return ReadAllAvailable() if options.rows_min is None else ReadMaxRows((1 << 63) - 1)

    def reportLatestOffset(self) -> SparkOffset | None:  # noqa: N802
        """Return the last known end of the topics, from which Spark computes the lag."""
        return to_spark(self._plan.newest) or None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._plan.prepare_available_now()

    def partitions(self, start: SparkOffset, end: SparkOffset) -> list[InputPartition]:
        shares = self._plan.shares(from_spark(start), from_spark(end))
        return [TaskPartition(share) for share in shares]

    def commit(self, end: SparkOffset) -> None:
        """Commit the group's offsets in the background."""
        if self._options.group is not None:
            if self._commits is None:
                self._commits = BackgroundCommits(self._options.properties, self._options.group)
            self._commits.offer(from_spark(end))

    def stop(self) -> None:
        if self._commits is not None:
            self._commits.close()

    @property
    def _plan(self) -> StreamPlan:
        if self._opened is None:
            self._opened = StreamPlan(self._options, shared_brokers(self._options.properties))
        return self._opened

    def __getstate__(self) -> dict[str, Any]:
        """Leave out open clients, which tasks do not need."""
        return {**self.__dict__, "_opened": None, "_commits": None}
