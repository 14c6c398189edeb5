"""The bytes that a row was made of, kept beside it where a query makes rows of single records.

Quarantine is to keep the original bytes of what a table refuses. A query that only chooses among a
topic's records, and computes columns of each, can carry them along without being asked; in any
other, whose rows are made of several records, or of none, nobody but its author knows which are
meant.
"""

from collections.abc import Sequence
from types import CodeType

from headrace.pipelines.analysing.reads import Read
from headrace.pipelines.declaring.sql_text import SqlSyntaxError, Token, references, tokens
from headrace.pipelines.model import (
    PAYLOAD,
    Flow,
    Pipeline,
    Query,
    Source,
    StreamingTable,
    Violation,
)
from headrace.pipelines.names import is_source, source_name

_ONE_TO_ONE = frozenset(("WHERE",))
"""What may follow a relation and its alias, so that a row is still one record's."""
_OTHERS = frozenset(
    (
        *("CLUSTER", "DISTRIBUTE", "EXCEPT", "GROUP", "HAVING", "INTERSECT", "JOIN", "LATERAL"),
        *("LIMIT", "MINUS", "OFFSET", "ORDER", "PIVOT", "QUALIFY", "SORT", "UNION", "UNPIVOT"),
        *("WINDOW",),
    )
)


def wants_bytes(flow: Flow, pipeline: Pipeline) -> bool:
    """Whether expectations may send rows of a flow to quarantine."""
    target = pipeline.datasets.get(flow.target)
    return isinstance(target, StreamingTable) and any(
        one.on_violation is Violation.QUARANTINE for one in target.expectations
    )


def source_behind(query: Query, pipeline: Pipeline, reads: Sequence[Read]) -> Source | None:
    """The topic whose single records the query makes rows of; None if that cannot be told.

    Of a function it can be told only from what it returns: that has the topic's bytes still, if
    it reads but the topic and never speaks of them.
    """
    if len(reads) != 1 or not (reads[0].is_stream and is_source(reads[0].name)):
        return None
    is_plain = (
        _columns_end(query) is not None
        if isinstance(query, str)
        else not _speaks_of_bytes(getattr(query, "__code__", None))
    )
    return pipeline.sources.get(source_name(reads[0].name)) if is_plain else None


def with_payload(query: Query, source: Source) -> str | None:
    """The query with the bytes of its records as one more column; None if it has no place for it.

    Such a query that names errors gets the bytes of these records too.
    """
    if not isinstance(query, str) or (end := _columns_end(query)) is None:
        return None
    added = PAYLOAD if source.format != "bytes" else f"value AS {PAYLOAD}"
    return f"{query[:end]}, {added}{query[end:]}"


def speaks_of(query: Query, column: str) -> bool:
    """Whether the text of a query names a column."""
    try:
        named = tokens(query) if isinstance(query, str) else []
        return any(token.is_name and token.name.lower() == column for token in named)
    except SqlSyntaxError:
        return False


def _columns_end(query: str) -> int | None:
    """Where the columns end of a query that only chooses among a topic's records."""
    try:
        listed, read = tokens(query), references(query)
    except SqlSyntaxError:
        return None
    words = [token.upper for token in listed]
    if len(read) != 1 or not (read[0].is_stream and is_source(read[0].name)):
        return None
    if words[:1] != ["SELECT"] or words.count("SELECT") > 1 or words[1] == "DISTINCT":
        return None
    at = next(n for n, token in enumerate(listed) if token.start == read[0].stream_at)
    if words[at - 1] != "FROM" or not _is_one_to_one(listed, read[0].alias_at):
        return None
    return listed[at - 2].end


def _is_one_to_one(listed: list[Token], alias_at: int) -> bool:
    """Whether what follows the relation only chooses among its rows."""
    rest = [token for token in listed if token.start >= alias_at]
    if rest and rest[0].upper == "AS":
        rest = rest[1:]
    if rest and rest[0].is_name and rest[0].upper not in _ONE_TO_ONE | _OTHERS:
        rest = rest[1:]
    if not rest:
        return True
    return rest[0].upper in _ONE_TO_ONE and not any(token.upper in _OTHERS for token in rest)


def _speaks_of_bytes(code: CodeType | None) -> bool:
    """Whether a function, or one within it, has the column's name in its text."""
    if code is None:
        return True
    return any(
        _speaks_of_bytes(one) if isinstance(one, CodeType) else PAYLOAD in str(one)
        for one in code.co_consts
    )
