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
    own = spans_of(source, spans)
    if any(own.values()):
        return admitted(records_between(reads, source, own), source)
    options = source_options(source, reads.pipeline.settings)
    return admitted(reads.loaded(reads.spark.read, source, options).limit(0), source)


def records_between(
    reads: TableReads, source: Source, spans: Spans, *, sets_aside: bool = True
) -> "DataFrame":
    """The same before the source's entry rules have chosen among them, or anyone else."""
    options = span_options(source_options(source, reads.pipeline.settings), spans)
    if sets_aside:
        return reads.loaded(reads.spark.read, source, options)
    return reads.spark.read.format(source.connector).options(**options).load()
