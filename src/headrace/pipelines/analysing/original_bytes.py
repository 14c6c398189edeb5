"""What quarantine has to know of a row, kept beside it where a query makes rows of single records.

Quarantine is to get what cannot be read, and to keep the original bytes of what a table refuses. A
query that only chooses among a topic's records, and computes columns of each, can carry the error
and the bytes along without being asked; in any other, whose rows are made of several records, or of
none, nobody but its author knows which are meant.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType

from headrace.pipelines.analysing.reads import Read
from headrace.pipelines.declaring.sql_text import SqlSyntaxError, Token, references, tokens
from headrace.pipelines.model import (
    ERROR,
    PAYLOAD,
    Flow,
    Pipeline,
    Query,
    Source,
    StreamingTable,
    Violation,
)
from headrace.pipelines.names import is_source

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
        _plain_select(query) is not None
        if isinstance(query, str)
        else not _speaks_of_bytes(getattr(query, "__code__", None))
    )
    return pipeline.sources.get(reads[0].name.partition(".")[2]) if is_plain else None


def with_helpers(query: Query, columns: Sequence[str], source: Source) -> str | None:
    """The query with more columns: the bytes of its records, why they could not be read.

    Where errors are known, its WHERE lets the records pass that could not be read: all its columns
    are null in them, so it would leave them out. None if the query has no place for the columns.
    """
    if not isinstance(query, str) or (found := _plain_select(query)) is None:
        return None
    is_decoded = source.format != "bytes"
    names = {PAYLOAD: PAYLOAD if is_decoded else f"value AS {PAYLOAD}"}
    added = "".join(f", {names.get(column, column)}" for column in columns)
    head, rest = query[: found.columns_end], query[found.columns_end :]
    if is_decoded and found.where is not None and not found.speaks_of_errors:
        first, last = found.where
        condition = query[first:last]
        rest = query[found.columns_end : first]
        rest += f"{ERROR} IS NOT NULL OR ({condition}){query[last:]}"
    return f"{head}{added}{rest}"


def speaks_of(query: Query, column: str) -> bool:
    """Whether the text of a query names a column."""
    try:
        return isinstance(query, str) and _names(tokens(query), column)
    except SqlSyntaxError:
        return False


@dataclass(frozen=True, slots=True)
class _Select:
    """The parts of `SELECT .. FROM STREAM(sources.x) WHERE ..`, as positions in its text."""

    columns_end: int
    where: tuple[int, int] | None
    speaks_of_errors: bool


def _plain_select(query: str) -> _Select | None:
    """The parts of a query that only chooses among a topic's records."""
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
    rest = [token for token in listed if token.start >= read[0].alias_at]
    words_after = [token.upper for token in rest]
    where = None
    if "WHERE" in words_after[:-1]:
        where = (rest[words_after.index("WHERE") + 1].start, rest[-1].end)
    return _Select(listed[at - 2].end, where, _names(listed, ERROR))


def _names(listed: list[Token], column: str) -> bool:
    return any(token.is_name and token.name.lower() == column for token in listed)


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
