"""Topics whose unreadable records a query does not take care of itself.

Who names `_error`, to choose by it or to keep it, means to: such a query gets these records as
rows. From any other they are kept away, and go to quarantine.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType

from headrace.pipelines.analysing.called_functions import called
from headrace.pipelines.analysing.original_bytes import speaks_of
from headrace.pipelines.analysing.reads import Read
from headrace.pipelines.model import ERROR, Pipeline, Query, TemporaryView
from headrace.pipelines.names import is_source, source_name

_WORD = re.compile(rf"\b{ERROR}\b", re.IGNORECASE)


def unhandled(
    query: Query, name: str, pipeline: Pipeline, reads: Mapping[str, Sequence[Read]]
) -> frozenset[str]:
    """The sources that decode, read by a query or by views before it, none of which says `_error`.

    The names are those behind `sources.`; `reads` has what each query reads, by its name.
    """
    found: dict[str, bool] = {}
    for source, is_spoken_of in _decoded(query, name, pipeline, reads, is_spoken_of=False):
        found[source] = found.get(source, False) or is_spoken_of
    return frozenset(source for source, is_spoken_of in found.items() if not is_spoken_of)


def _decoded(
    query: Query,
    name: str,
    pipeline: Pipeline,
    reads: Mapping[str, Sequence[Read]],
    *,
    is_spoken_of: bool,
) -> Iterator[tuple[str, bool]]:
    is_spoken_of = is_spoken_of or names_errors(query)
    for read in reads.get(name, ()):
        dataset = pipeline.datasets.get(read.name)
        short = source_name(read.name)
        if isinstance(dataset, TemporaryView):
            yield from _decoded(
                dataset.query, read.name, pipeline, reads, is_spoken_of=is_spoken_of
            )
        elif is_source(read.name) and _is_decoded(pipeline, short):
            yield short, is_spoken_of


def _is_decoded(pipeline: Pipeline, source: str) -> bool:
    return source in pipeline.sources and pipeline.sources[source].format != "bytes"


def names_errors(query: Query) -> bool:
    """Whether `_error` stands in the text of a query, or in a function or those that it calls."""
    if isinstance(query, str):
        return speaks_of(query, ERROR)
    return any(_has_word(function.__code__) for function in called(query))


def _has_word(code: CodeType) -> bool:
    """Whether a name in the code is the column's, or a text has it as a word."""
    if ERROR in code.co_names:
        return True
    return any(
        _has_word(one) if isinstance(one, CodeType) else _WORD.search(_text(one)) is not None
        for one in code.co_consts
    )


def _text(constant: object) -> str:
    return str(constant) if isinstance(constant, str | tuple | frozenset) else ""
