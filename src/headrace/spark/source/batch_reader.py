"""`spark.read.format("headrace")`: what lies between two bounds, once."""

from collections.abc import Iterable

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from headrace.spark.source.brokers import Brokers, shared_brokers
from headrace.spark.source.filters import Pushed, pushed
from headrace.spark.source.offsets import LATEST, Positions
from headrace.spark.source.options import SourceOptions
from headrace.spark.source.planning import ranges_between, shares_of
from headrace.spark.source.resolving import check_order, places_of, resolved, subscribed
from headrace.spark.source.rows import Decoder
from headrace.spark.source.tasks import ShareOfTopics, TaskReader


class BatchReader(TaskReader, DataSourceReader):
    """Plans a batch; its tasks read it."""

    def __init__(self, options: SourceOptions, schema: StructType, decoder: Decoder | None) -> None:
        super().__init__(options, schema, decoder)
        self._pushed = Pushed()

    def partitions(self) -> list[InputPartition]:
        """The tasks; none where the filters leave nothing, or nothing is there."""
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
        shares = shares_of(ranges, options.tasks_min, options.task_rows_max)
        return [ShareOfTopics(share) for share in shares]

    def _not_older(self, brokers: Brokers, start: Positions) -> Positions:
        """Begin with the first record that can be young enough for the filters."""
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
    """Takes filters from Spark too; Spark refuses this class where its setting forbids that.

    Spark keeps one plan for all that is asked of a loaded frame, the last one that filters made,
    and uses it for questions that have other filters or none. So this is for one question alone.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Narrow what is read, and let Spark filter as well: only bounds are used here."""
        self._pushed = pushed(filters, self._options.rows.metadata_prefix)
        return filters
