"""Flows that take the records of a topic, but not the word that one could not be read.

Such a record is a row of nulls, and without its `_error` nobody can tell it from others. Where a
query chooses among single records the column is added without being asked for; what groups, joins,
or is a function, is its author's to mend.
"""

from collections.abc import Iterator

from headrace.pipelines.analysing.analysis import Analysis
from headrace.pipelines.analysing.original_bytes import speaks_of
from headrace.pipelines.model import ERROR, StreamingTable, TemporaryView
from headrace.pipelines.names import is_source


def lost_errors(analysis: Analysis) -> Iterator[str]:
    """What is to be said of each flow into a table that loses the errors of its topics."""
    for flow in analysis.pipeline.flows:
        frame = analysis.frames.get(flow.name)
        is_stored = isinstance(analysis.pipeline.datasets.get(flow.target), StreamingTable)
        if frame is None or not is_stored or ERROR in frame.columns:
            continue
        if speaks_of(flow.query, ERROR):
            continue
        for source in sorted(_decoded_behind(analysis, flow.name)):
            yield (
                f"{flow.place}: {flow.name} drops {ERROR} of {source}, so a payload that cannot be"
                " read becomes a row of nulls, and does not go to quarantine; select"
                f" {ERROR} and _payload too, or store the topic in a table and read that"
            )


def _decoded_behind(analysis: Analysis, name: str) -> set[str]:
    """The topics with errors that a query reads, itself or by temporary views."""
    found: set[str] = set()
    for read in analysis.reads.get(name, ()):
        if isinstance(analysis.pipeline.datasets.get(read.name), TemporaryView):
            found |= _decoded_behind(analysis, read.name)
        elif is_source(read.name) and read.name in analysis.schemas:
            found |= {read.name} if ERROR in analysis.schemas[read.name].names else set()
    return found
