"""Records of a topic between given offsets, as a flow's source gives them."""

from typing import TYPE_CHECKING

from headrace.pipelines.model import Source
from headrace.pipelines.running.reading import TableReads
from headrace.pipelines.sources import admitted, source_options, span_options, spans_of
from headrace.spark.refuge import Spans

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def read_between(reads: TableReads, source: Source, spans: Spans) -> "DataFrame":
    """The records of a source in these spans, decoded and admitted as they are in a stream.

    The spans may be of other topics too, which the flow reads by other sources.
    """
    return admitted(records_between(reads, source, spans_of(source, spans)), source)


def records_between(
    reads: TableReads, source: Source, spans: Spans, *, sets_aside: bool = True
) -> "DataFrame":
    """The same before the source's entry rules have chosen among them, or anyone else."""
    options = source_options(source, reads.pipeline.settings)
    if not any(spans.values()):  # No topic is asked: there may be none any more.
        return _loaded(reads, source, options, sets_aside=sets_aside).limit(0)
    return _loaded(reads, source, span_options(options, spans), sets_aside=sets_aside)


def _loaded(
    reads: TableReads, source: Source, options: dict[str, str], *, sets_aside: bool
) -> "DataFrame":
    if sets_aside:
        return reads.loaded(reads.spark.read, source, options)
    return reads.spark.read.format(source.connector).options(**options).load()
