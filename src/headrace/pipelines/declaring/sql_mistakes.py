"""Mistakes in a query that are seen without Spark, whose start takes seconds.

Spark parses and checks the SQL. What it surely refuses is told here first: a query that begins with
a name, parentheses that do not match, and a name where only a word of SQL can be, if it is nearly
one: `FROM orders WHRE price > 0`. A name between two others, or between a value and a name, is no
SQL whatever it is called, but for the columns of a LATERAL VIEW: an alias ends what it names.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from headrace.pipelines.declaring.sql_keywords import KEYWORDS
from headrace.pipelines.declaring.sql_text import Token
from headrace.pipelines.problems import nearest

_BEGINNINGS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")
_BETWEEN = (
    *("AND", "BETWEEN", "ELSE", "FROM", "HAVING", "ILIKE", "JOIN", "LIKE", "LIMIT", "OFFSET"),
    *("QUALIFY", "RLIKE", "THEN", "WHEN", "WHERE"),
)
_BEFORE_BY = ("CLUSTER", "DISTRIBUTE", "GROUP", "ORDER", "PARTITION", "SORT")
_BEFORE_RELATION = ("FROM", "JOIN")

_COLUMNS = frozenset(("DATE", "KEY", "NAME", "TIME", "TYPE", "USER", "VALUE", "X"))
"""Words of SQL that no operand can follow, and that follow none: there they are columns."""
_ENDS = _COLUMNS | {
    *("DAY", "DAYS", "END", "FALSE", "HOUR", "HOURS", "MINUTE", "MINUTES", "MONTH", "MONTHS"),
    *("NULL", "OFFSET", "PARTITION", "SECOND", "SECONDS", "TIMESTAMP", "TRUE", "YEAR", "YEARS"),
}
"""Words of SQL that no name can follow but as an alias: constants, units, columns of topics."""
_OPENINGS = {")": "(", "]": "["}


class Mistake(NamedTuple):
    """What is wrong with a query, and where."""

    text: str
    line: int


def mistake_in(query: Sequence[Token]) -> Mistake | None:
    """The first mistake of a query that can be told for certain."""
    if any(token.text == "$" for token in query):
        return None  # Of a text between dollar signs, or a variable, only Spark knows the end.
    found = (*_wrong_beginnings(query), *_unmatched(query), *_misspelled(query))
    return min(found, key=lambda one: one.line, default=None)


def _wrong_beginnings(query: Sequence[Token]) -> Iterator[Mistake]:
    """Names in the place of SELECT: at the beginning, in a WITH clause, in a subquery."""
    for at, token in enumerate(query):
        if _is_name(token) and _begins_query(query, at):
            words = f"{', '.join(_BEGINNINGS[:-1])} or {_BEGINNINGS[-1]}"
            meant = nearest(token.upper, _BEGINNINGS)
            found = f"{token.text} does not fit here; a query begins with {words}{meant}"
            yield Mistake(found, token.line)


def _begins_query(query: Sequence[Token], at: int) -> bool:
    """Whether a query must begin here: `(SELCT id FROM` can be no list of values."""
    if at == 0:
        return True
    before = [token.upper or token.text for token in query[max(at - 4, 0) : at]]
    if before[-1] != "(":
        return False
    is_with = before[-2:-1] == ["AS"] and before[:1] in (["WITH"], ["RECURSIVE"])
    following = query[at + 1 : at + 3]
    is_selection = len(following) == 2 and following[1].upper == "FROM"
    return is_with or (is_selection and (following[0].text == "*" or _is_operand(following[0])))


def _unmatched(query: Sequence[Token]) -> Iterator[Mistake]:
    """The first bracket that none opens or closes."""
    opened: list[Token] = []
    for token in query:
        if token.text in _OPENINGS.values():
            opened.append(token)
        elif token.text not in _OPENINGS:
            continue
        elif not opened or opened.pop().text != _OPENINGS[token.text]:
            yield Mistake(f"nothing is open that this {token.text} closes", token.line)
            return
    if opened:
        yield Mistake(f"this {opened[-1].text} is not closed", opened[-1].line)


def _misspelled(query: Sequence[Token]) -> Iterator[Mistake]:
    """Names that are nearly the word which must be in their place."""
    has_view = any(token.upper == "VIEW" for token in query)
    for at in range(1, len(query) - 1):
        if _is_name(query[at]):
            due = _words_due(query, at, has_view=has_view)
            if meant := nearest(query[at].upper, due):
                yield Mistake(f"{query[at].text} does not fit here{meant}", query[at].line)


def _words_due(query: Sequence[Token], at: int, *, has_view: bool) -> Sequence[str]:
    """The words of SQL that may be in the place of a name; none if that may be right."""
    before = query[at - 1]
    if _is_subclause(query, at + 1):
        is_window = at > 1 and before.text == "(" and query[at - 2].upper == "OVER"
        return _BEFORE_BY if is_window or _ends_operand(query, at - 1) else ()
    if not _ends_operand(query, at - 1):
        return ()
    if _is_query_or_stream(query, at + 1):
        return _BEFORE_RELATION
    if before.text == ")" and has_view:
        return ()  # `LATERAL VIEW explode(items) t item`
    return _BETWEEN if _is_operand(query[at + 1]) else ()


def _is_subclause(query: Sequence[Token], at: int) -> bool:
    """Whether BY and an operand come here; BY alone may be a name."""
    is_followed = at + 1 < len(query) and (_is_operand(query[at + 1]) or query[at + 1].text == "(")
    return query[at].upper == "BY" and is_followed


def _is_query_or_stream(query: Sequence[Token], at: int) -> bool:
    """Whether a relation comes here that cannot be taken for the columns of an alias."""
    following = [token.upper or token.text for token in query[at : at + 3]]
    if len(following) < 3:
        return False
    first, second, third = following
    return (first == "STREAM" and (second == "(" or _is_name(query[at + 1]))) or (
        first == "(" and second == "SELECT" and third not in (",", ")")
    )


def _ends_operand(query: Sequence[Token], at: int) -> bool:
    """Whether a name, value or expression is complete here, and all columns, `*`, are one."""
    token = query[at]
    if token.text == "*":
        return at > 0 and (query[at - 1].upper == "SELECT" or query[at - 1].text in (",", "."))
    is_value = token.kind in ("text", "number") or token.text in (")", "]")
    return is_value or token.kind == "quoted" or _is_name(token) or token.upper in _ENDS


def _is_operand(token: Token) -> bool:
    is_value = token.kind in ("text", "number", "quoted")
    return is_value or _is_name(token) or token.upper in _COLUMNS


def _is_name(token: Token) -> bool:
    """Whether this is a bare word that is none of SQL's."""
    return token.kind == "word" and token.upper not in KEYWORDS
