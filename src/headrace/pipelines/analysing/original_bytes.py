"""The original bytes of rows, kept for quarantine where each row comes from one record.

A query that only filters a topic's records and computes columns from each can carry the bytes along
automatically. In other queries a row comes from several records or none, and only the author can
choose the bytes.
"""

from collections.abc import Sequence
from itertools import pairwise
from types import CodeType

from headrace.pipelines import model
from headrace.pipelines.analysing.reads import Read
from headrace.pipelines.declaring.names import is_source, source_name
from headrace.pipelines.queries.sources import has_headers, metadata_prefix
from headrace.pipelines.queries.sql_references import references
from headrace.serdes.sql_tokens import SqlSyntaxError, Token, tokens

_ONE_TO_ONE = frozenset(("WHERE",))
"""Words after a relation and its alias that keep one row per record."""
_OTHERS = frozenset(
    (
        *("CLUSTER", "DISTRIBUTE", "EXCEPT", "GROUP", "HAVING", "INTERSECT", "JOIN", "LATERAL"),
        *("LIMIT", "MINUS", "OFFSET", "ORDER", "PIVOT", "QUALIFY", "SORT", "UNION", "UNPIVOT"),
        *("WINDOW",),
    )
)


def needs_bytes(flow: model.Flow, pipeline: model.Pipeline) -> bool:
    """Return whether expectations may send rows of a flow to quarantine."""
    target = pipeline.datasets.get(flow.target)
    return isinstance(target, model.StreamingTable) and any(
        one.on_violation is model.Violation.QUARANTINE for one in target.expectations
    )


def source_behind(
    query: model.Query, pipeline: model.Pipeline, reads: Sequence[Read]
) -> model.Source | None:
    """Return the topic whose single records become the query's rows; None if that is uncertain.

    For a function only the result counts: it must still have the bytes, and the function must
    read only the topic and never name the bytes.
    """
    if len(reads) != 1 or not (reads[0].is_stream and is_source(reads[0].name)):
        return None
    is_plain = (
        _columns_end(query) is not None
        if isinstance(query, str)
        else not _names_bytes(getattr(query, "__code__", None))
    )
    return pipeline.sources.get(source_name(reads[0].name)) if is_plain else None


def with_payload(query: model.Query, source: model.Source) -> str | None:
    """Return the query with the bytes of its records as one more column; None if impossible.

    Key, headers and times are included if the query uses them: redrive runs it on them again. A
    query that names errors gets the bytes of undecoded records too.
    """
    if not isinstance(query, str) or (end := _columns_end(query)) is None:
        return None
    added = model.PAYLOAD if source.format != "bytes" else f"value AS {model.PAYLOAD}"
    prefix = metadata_prefix(source)
    is_whole = any(
        token.text == "*" and before.symbol in ("SELECT", ",", ".")  # Not a multiplication.
        for before, token in pairwise(tokens(query))
    )
    beside = [
        f"`{prefix}{name}` AS {name}"
        for name in _beside(source)
        if is_whole or names_column(query, (prefix + name).lower())
    ]
    if beside:
        added += f", struct({', '.join(beside)}) AS {model.KEPT_RECORD}"
    return f"{query[:end]}, {added}{query[end:]}"


def _beside(source: model.Source) -> list[str]:
    """Return a source's columns besides a record's payload and location."""
    own = ["key", "timestamp", "timestampType"] if source.format == "bytes" else ["timestamp"]
    return [*own, "headers"] if has_headers(source) else own


def names_column(query: model.Query, column: str) -> bool:
    """Return whether the text of a query names a column."""
    try:
        named = tokens(query) if isinstance(query, str) else []
        return any(token.is_name and token.value.lower() == column for token in named)
    except SqlSyntaxError:
        return False


def _columns_end(query: str) -> int | None:
    """Return the end of the select list if the query only filters a topic's records."""
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
    """Return whether the words after the relation keep one row per record."""
    rest = [token for token in listed if token.start >= alias_at]
    if rest and rest[0].upper == "AS":
        rest = rest[1:]
    if rest and rest[0].is_name and rest[0].upper not in _ONE_TO_ONE | _OTHERS:
        rest = rest[1:]
    if not rest:
        return True
    return rest[0].upper in _ONE_TO_ONE and not any(token.upper in _OTHERS for token in rest)


def _names_bytes(code: CodeType | None) -> bool:
    """Return whether a function, or a nested one, has the column's name in a text."""
    if code is None:
        return True
    return any(
        _names_bytes(one) if isinstance(one, CodeType) else model.PAYLOAD in str(one)
        for one in code.co_consts
    )
