"""`spark.read.format("headrace")`: the records between two bounds."""

from collections.abc import Iterable

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from headrace.spark.decoding.decoder import Decoder
from headrace.spark.source.brokers import Brokers, shared_brokers
from headrace.spark.source.filters import Pushed, pushed
from headrace.spark.source.offsets import LATEST, Positions
from headrace.spark.source.options import SourceOptions
from headrace.spark.source.planning import ranges_between, task_ranges
from headrace.spark.source.resolving import check_order, places_of, resolved, subscribed
from headrace.spark.source.tasks import TaskPartition, TaskReader


class BatchReader(TaskReader, DataSourceReader):
    """Plans the tasks of a batch."""

    def __init__(self, options: SourceOptions, schema: StructType, decoder: Decoder | None) -> None:
        super().__init__(options, schema, decoder)
        self._pushed = Pushed()

    def partitions(self) -> list[InputPartition]:
        """Plan the tasks, if there are records that the filters pass."""
        options = self._options
        brokers = shared_brokers(options.properties)
        topics = subscribed(brokers, options.subscription)
        places = places_of(topics, options.subscription)
        begin = resolved(brokers, places, options.start)
        end = resolved(brokers, places, options.end)
        check_order(begin, end, (options.start, options.end))
        start = self._not_older(brokers, begin)
        topic_ids = {topic.name: topic.topic_id for topic in topics}
        ranges = list(self._pushed.narrowed(ranges_between(start, end, topic_ids)))
        shares = task_ranges(ranges, options.tasks_min, options.task_rows_max)
        return [TaskPartition(share) for share in shares]

    def _not_older(self, brokers: Brokers, start: Positions) -> Positions:
        """Begin with the first record that may match the filters on the timestamp."""
        earliest_ms = self._pushed.timestamp_ms_min
        if earliest_ms is None or not start:
            return start
        self._timestamp_ms_min = earliest_ms
        found = brokers.offsets(dict.fromkeys(start, max(0, earliest_ms)))
        latest = brokers.offsets(dict.fromkeys(start, LATEST))
        return {
            place: max(offset, found[place] if found[place] >= 0 else latest[place])
            for place, offset in start.items()
        }


class FilteringBatchReader(BatchReader):
    """A reader with filter push-down, which Spark rejects unless its setting allows that.

    Spark keeps one plan for all queries on a loaded frame, with the filters of the last one, and
    uses it for queries with other filters or none. So this class is for a single query.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Use the bounds in the filters, and let Spark apply all of them."""
        self._pushed = pushed(filters, self._options.rows.metadata_prefix)
        return filters
