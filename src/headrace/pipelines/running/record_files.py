"""Which files of a table may have rows of given records, by what the table's log tells of them."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from headrace.lake.commits import AddedFile
from headrace.lake.key_bounds import FileBounds, KeyBounds
from headrace.lake.tables import Table
from headrace.pipelines.running.kept_records import PLACE, Place
from headrace.spark.refuge import Span
from headrace.spark.tables.frames import table_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TOPIC, _PARTITION, _OFFSET = PLACE


def frame_near(
    spark: "SparkSession", table: Table, version: int, places: Iterable[Place]
) -> "DataFrame":
    """A version's rows without the files that have none of some records; others are left in."""
    bounds = table.file_bounds(version, [_PARTITION, _OFFSET])
    chosen = files_near(table.files(version), bounds, spans_over(places))
    return table_frame(spark, table, version, chosen)


def files_near(
    files: Sequence[AddedFile], bounds: FileBounds, spans: Iterable[Span]
) -> list[AddedFile]:
    """The files that may have records of these spans.

    The log has no bounds of topics that could be relied on, but a table may be parted by them.
    """
    chosen: set[int] = set()
    for span in spans:
        within = {
            _PARTITION: (span.partition, span.partition),
            _OFFSET: (span.first, span.end - 1),
        }
        chosen.update(
            number
            for number in KeyBounds(within).numbers_of(bounds)
            if files[number].partition_values.get(_TOPIC, span.topic) == span.topic
        )
    return [files[number] for number in sorted(chosen)]


def spans_over(places: Iterable[Place]) -> list[Span]:
    """Of each partition one span, from its first record of these to its last."""
    ends: dict[tuple[str, int], tuple[int, int]] = {}
    for topic, partition, offset in places:
        first, end = ends.get((topic, partition), (offset, offset + 1))
        ends[topic, partition] = (min(first, offset), max(end, offset + 1))
    return [Span(*partition, *span) for partition, span in sorted(ends.items())]
