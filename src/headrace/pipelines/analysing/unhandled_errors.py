"""Topics whose unreadable records a query does not handle itself.

A query that names `_error`, to filter by it or to keep it, gets these records as rows. Other
queries do not get them; they go to quarantine.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType

from headrace.pipelines.analysing.called_functions import called
from headrace.pipelines.analysing.original_bytes import names_column
from headrace.pipelines.analysing.reads import Read
from headrace.pipelines.declaring.names import is_source, source_name
from headrace.pipelines.model import ERROR, Pipeline, Query, TemporaryView

_WORD = re.compile(rf"\b{ERROR}\b", re.IGNORECASE)


def unhandled(
    query: Query, name: str, pipeline: Pipeline, reads: Mapping[str, Sequence[Read]]
) -> frozenset[str]:
    """Return the decoding sources behind a query whose `_error` neither it nor its views name.

    The names are those after `sources.`; `reads` has the inputs of each query by name.
    """
    found: dict[str, bool] = {}
    for source, is_named in _decoded(query, name, pipeline, reads, is_named=False):
        found[source] = found.get(source, False) or is_named
    return frozenset(source for source, is_named in found.items() if not is_named)


def _decoded(
    query: Query,
    name: str,
    pipeline: Pipeline,
    reads: Mapping[str, Sequence[Read]],
    *,
    is_named: bool,
) -> Iterator[tuple[str, bool]]:
    is_named = is_named or names_errors(query)
    for read in reads.get(name, ()):
        dataset = pipeline.datasets.get(read.name)
        short = source_name(read.name)
        if isinstance(dataset, TemporaryView):
            yield from _decoded(dataset.query, read.name, pipeline, reads, is_named=is_named)
        elif is_source(read.name) and _is_decoded(pipeline, short):
            yield short, is_named


def _is_decoded(pipeline: Pipeline, source: str) -> bool:
    return source in pipeline.sources and pipeline.sources[source].format != "bytes"


def names_errors(query: Query) -> bool:
    """Return whether a query's text, or its functions, name `_error`."""
    if isinstance(query, str):
        return names_column(query, ERROR)
    return any(_has_word(function.__code__) for function in called(query))


def _has_word(code: CodeType) -> bool:
    """Return whether the code has the column as a name, or as a word in a text."""
    if ERROR in code.co_names:
        return True
    return any(
        _has_word(one) if isinstance(one, CodeType) else _WORD.search(_text(one)) is not None
        for one in code.co_consts
    )


def _text(constant: object) -> str:
    return str(constant) if isinstance(constant, str | tuple | frozenset) else ""
