"""Records of a topic between given offsets, as a flow's source gives them."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.pipelines.model import Source
from headrace.pipelines.running.reading import TableReads
from headrace.pipelines.sources import admitted, source_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Spans = Mapping[str, Mapping[str, tuple[int, int]]]
"""For each topic and partition the first offset and the one after the last."""


def read_between(reads: TableReads, source: Source, spans: Spans) -> "DataFrame":
    """The records of a source in these spans, decoded and admitted as they are in a stream."""
    return admitted(records_between(reads, source, spans), source)


def records_between(reads: TableReads, source: Source, spans: Spans) -> "DataFrame":
    """The same before the source's entry rules have chosen among them."""
    wanted = {topic: spans[topic] for topic in spans if spans[topic]}
    options = source_options(source, reads.pipeline.settings)
    options.pop("subscribe", None)
    options.pop("subscribePattern", None)
    options["assign"] = json.dumps({t: [int(p) for p in ps] for t, ps in wanted.items()})
    for name, end in (("startingOffsets", 0), ("endingOffsets", 1)):
        offsets = {t: {p: span[end] for p, span in ps.items()} for t, ps in wanted.items()}
        options[name] = json.dumps(offsets)
    return reads.spark.read.format(source.connector).options(**options).load()
