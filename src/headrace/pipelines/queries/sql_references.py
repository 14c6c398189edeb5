"""The datasets that a query in SQL reads, and their replacement by views.

Spark parses and checks the SQL; this module only finds the names of relations: after FROM, JOIN and
TABLE, in each list of a FROM clause, and inside STREAM(...). Every other dotted name is a column,
whose table may be named like a zone.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from headrace.serdes.sql_tokens import Token, quoted_name, tokens

_AFTER_RELATION = frozenset(
    (
        *("ANTI", "CLUSTER", "CROSS", "DISTRIBUTE", "EXCEPT", "FOR", "FULL", "GROUP", "HAVING"),
        *("INNER", "INTERSECT", "JOIN", "LATERAL", "LEFT", "LIMIT", "MINUS", "NATURAL", "OFFSET"),
        *("ON", "ORDER", "PIVOT", "QUALIFY", "RIGHT", "SELECT", "SEMI", "SORT", "TABLESAMPLE"),
        *("TIMESTAMP", "UNION", "UNPIVOT", "USING", "VERSION", "WATERMARK", "WHERE", "WINDOW"),
    )
)
"""Words that may follow a relation and are not its alias."""
_BEFORE_RELATION = frozenset(("FROM", "LATERAL", "SELECT", "TABLE", "VALUES", "WITH"))
"""Words that may be in the place of a relation and are not its name."""
_ENDS_FROM = frozenset(
    (
        *("CLUSTER", "DISTRIBUTE", "EXCEPT", "GROUP", "HAVING", "INTERSECT", "LIMIT", "MINUS"),
        *("OFFSET", "ORDER", "QUALIFY", "SELECT", "SORT", "UNION", "WHERE", "WINDOW"),
    )
)
_FILE_FORMATS = frozenset(("avro", "binaryfile", "csv", "delta", "json", "orc", "parquet", "text"))
"""In Spark's SQL csv.`/some/path` is a file, not a table of a zone."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A relation's name in a query."""

    name: str
    is_stream: bool
    start: int
    end: int
    alias_at: int
    """The position for an alias."""
    has_alias: bool
    line: int
    stream_at: int = -1
    """The position of the word STREAM, if the relation is read as a stream."""
    scope: int = 0
    """The number of its FROM clause."""


def references(sql: str) -> list[Reference]:
    """Return the datasets that a query reads, in the order of the text.

    A name without a zone is a temporary view's, unless the query's own WITH clause has it.
    """
    listed = tokens(sql)
    own = {token.value.lower() for token in _common_table_expressions(listed)}
    return [one for one in _Finder(listed).found() if one.name not in own]


def replaced(
    sql: str,
    found: Sequence[Reference],
    view_of: Callable[[Reference], str],
    is_at_rest: Callable[[Reference], bool] = lambda _: False,
) -> str:
    """Return the query with its relations replaced by views.

    Each view gets the table's name as its alias, so that `orders.id` stays valid; a column written
    with its zone is written with the alias instead. For one that `is_at_rest`, the words STREAM and
    WATERMARK are removed.
    """
    edits: list[tuple[int, int, str]] = []
    aliases = _aliases(found)
    for reference in found:
        start, end = reference.start, reference.end
        if reference.is_stream and is_at_rest(reference):
            start, end = reference.stream_at, reference.alias_at
        edits.append((start, end, quoted_name(view_of(reference))))
        if not reference.has_alias:
            alias = quoted_name(aliases[reference.name])
            edits.append((reference.alias_at, reference.alias_at, f" AS {alias}"))
    edits += _zones_of_columns(sql, found, aliases)
    # Insertions come before the edits that begin at their place.
    for start, end, text in sorted(edits, key=lambda edit: edit[:2], reverse=True):
        sql = sql[:start] + text + sql[end:]
    return sql


def _common_table_expressions(listed: Sequence[Token]) -> Iterator[Token]:
    """Yield the names of a WITH clause: `name AS (` or `name (columns) AS (`."""
    if not any(token.upper == "WITH" for token in listed):
        return
    for at, token in enumerate(listed[:-2]):
        if token.is_name and listed[at + 1].upper == "AS" and listed[at + 2].text == "(":
            yield token
        elif token.text == ")" and listed[at + 1].upper == "AS" and listed[at + 2].text == "(":
            start = _opening(listed, at)
            if start and listed[start - 1].is_name:
                yield listed[start - 1]


def _opening(listed: Sequence[Token], closing: int) -> int | None:
    depth = 0
    for at in range(closing, -1, -1):
        depth += {")": 1, "(": -1}.get(listed[at].text, 0)
        if depth == 0:
            return at
    return None


def _aliases(found: Sequence[Reference]) -> dict[str, str]:
    """Return each table's name without its zone; with it, if two in one FROM would be equal."""
    tables = {(one.scope, one.name) for one in found if not one.has_alias}
    beside = Counter((scope, name.rpartition(".")[2]) for scope, name in tables)
    aliases: dict[str, str] = {}
    for scope, name in tables:
        short = name.rpartition(".")[2]
        is_alike = beside[scope, short] > 1
        if is_alike or name not in aliases:
            aliases[name] = name.replace(".", "__") if is_alike else short
    return aliases


def _zones_of_columns(
    sql: str, found: Sequence[Reference], aliases: Mapping[str, str]
) -> list[tuple[int, int, str]]:
    """Return edits that turn `staging.orders.id` into `orders.id`."""
    relations = {one.start for one in found}
    listed = tokens(sql)
    edits = []
    for at, token in enumerate(listed[:-4]):
        parts = listed[at : at + 5]
        is_chain = (
            [part.text for part in parts[1::2]] == [".", "."]
            and all(part.is_name for part in parts[:3:2])
            and (parts[4].is_name or parts[4].text == "*")
        )
        is_first = at == 0 or listed[at - 1].text != "."
        name = f"{token.value}.{parts[2].value}".lower()
        if not (is_chain and is_first and name in aliases) or token.start in relations:
            continue
        if aliases[name] == name.rpartition(".")[2]:
            edits.append((token.start, parts[2].start, ""))
        else:
            edits.append((token.start, parts[2].end, quoted_name(aliases[name])))
    return edits


@dataclass(slots=True)
class _Level:
    """The state inside one pair of parentheses."""

    has_query: bool = False
    is_in_from: bool = False
    wants_relation: bool = False
    is_stream: bool = False
    scope: int = 0


class _Finder:
    """Walks over the tokens of a query and keeps the clause of each pair of parentheses."""

    def __init__(self, listed: Sequence[Token]) -> None:
        self.listed = listed
        self.levels = [_Level()]
        self.at = 0
        self.scopes = 0

    def found(self) -> list[Reference]:
        result: list[Reference] = []
        while self.at < len(self.listed):
            level = self.levels[-1]
            if level.wants_relation and self._is_relation():
                result += self._relation(level)
            else:
                self._step(self.listed[self.at], level)
                self.at += 1
        return result

    def _step(self, token: Token, level: _Level) -> None:
        is_first = self.at == 0 or self.listed[self.at - 1].text == "("
        word = token.upper
        if token.text == "(":
            inner = _Level(wants_relation=level.wants_relation, is_stream=level.is_stream)
            inner.is_in_from, inner.scope = level.wants_relation, level.scope
            level.wants_relation = level.is_stream = False
            self.levels.append(inner)
        elif token.text == ")" and len(self.levels) > 1:
            self.levels.pop()
        elif token.text == "," and level.is_in_from:
            level.wants_relation = True
        elif word == "SELECT":
            level.has_query, level.is_in_from, level.wants_relation = True, False, False
        elif word == "FROM" and (level.has_query or is_first) and not self._is_comparison():
            level.is_in_from = level.wants_relation = level.has_query = True
            self.scopes += 1
            level.scope = self.scopes
        elif word == "JOIN" or (word == "TABLE" and (is_first or self._follows("UNION", "ALL"))):
            level.wants_relation = True
        elif word == "STREAM" and level.wants_relation:
            level.is_stream = True
        elif word == "VALUES" or word in _ENDS_FROM or token.text == "|>" or self._is_view():
            level.is_in_from = level.wants_relation = False

    def _is_view(self) -> bool:
        """Return whether LATERAL VIEW comes here, whose commas separate columns, not relations."""
        following = self.listed[self.at : self.at + 2]
        return [one.upper for one in following] == ["LATERAL", "VIEW"]

    def _is_comparison(self) -> bool:
        """Return whether this FROM belongs to IS DISTINCT FROM."""
        return self._follows("DISTINCT") and self.listed[self.at - 2].upper in ("IS", "NOT")

    def _follows(self, *words: str) -> bool:
        return self.at > 0 and self.listed[self.at - 1].upper in words

    def _is_relation(self) -> bool:
        """Return whether a relation's name comes here, not a subquery or a keyword."""
        first = self.listed[self.at]
        if first.upper == "STREAM":
            return not self._is_stream_word()
        return first.is_name and first.upper not in _BEFORE_RELATION

    def _relation(self, level: _Level) -> list[Reference]:
        """Read the relation here; functions and files are skipped."""
        start, end = self.at, self.at + 1
        while end + 1 < len(self.listed) and self._is_dotted(end):
            end += 2
        parts = [token.value for token in self.listed[start:end:2]]
        is_function = end < len(self.listed) and self.listed[end].text == "("
        is_file = len(parts) > 1 and parts[0].lower() in _FILE_FORMATS
        is_stream, level.wants_relation, level.is_stream = level.is_stream, False, False
        self.at = end
        if is_function or is_file:
            return []
        alias_at, has_alias = self._alias(start, end)
        return [
            Reference(
                ".".join(parts).lower(),
                is_stream,
                self.listed[start].start,
                self.listed[end - 1].end,
                alias_at,
                has_alias or self.listed[start - 1].upper == "TABLE",
                self.listed[start].line,
                self._stream_at(start) if is_stream else -1,
                level.scope,
            )
        ]

    def _stream_at(self, start: int) -> int:
        """Return the position of STREAM before a relation: `STREAM name` or `STREAM(name)`."""
        before = start - 1 if self.listed[start - 1].upper == "STREAM" else start - 2
        return self.listed[before].start

    def _is_dotted(self, at: int) -> bool:
        return self.listed[at].text == "." and self.listed[at + 1].is_name

    def _is_stream_word(self) -> bool:
        """Return whether STREAM is a keyword here, before `(` or a name, not a relation."""
        if self.at + 1 >= len(self.listed):
            return False
        following = self.listed[self.at + 1]
        return following.text == "(" or (
            following.is_name and following.upper not in _AFTER_RELATION | {"AS"}
        )

    def _alias(self, start: int, end: int) -> tuple[int, bool]:
        """Return the position for the relation's alias, and whether it has one.

        It comes last: `STREAM(name) TABLESAMPLE (..) WATERMARK .. DELAY OF INTERVAL .. AS alias`.
        """
        is_in_stream = start > 1 and self.listed[start - 2].upper == "STREAM"
        is_closed = end < len(self.listed) and self.listed[end].text == ")"
        at = self._after_watermark(
            self._after_sample(end + 1 if is_in_stream and is_closed else end)
        )
        following = self.listed[at] if at < len(self.listed) else None
        has_alias = (
            following is not None and following.is_name and following.upper not in _AFTER_RELATION
        )
        return self.listed[at - 1].end, has_alias

    def _after_sample(self, at: int) -> int:
        """Return the position behind `TABLESAMPLE (..)` and `REPEATABLE (..)`, if present."""
        while at < len(self.listed) and self.listed[at].upper in ("TABLESAMPLE", "REPEATABLE"):
            depth, at = 0, at + 1
            while at < len(self.listed):
                depth += {"(": 1, ")": -1}.get(self.listed[at].text, 0)
                at += 1
                if depth == 0:
                    break
        return at

    def _after_watermark(self, at: int) -> int:
        """Return the position behind `WATERMARK expression DELAY OF INTERVAL length`, if any."""
        if at >= len(self.listed) or self.listed[at].upper != "WATERMARK":
            return at
        while at < len(self.listed) and self.listed[at].upper != "DELAY":
            at += 1
        at += 3  # DELAY OF INTERVAL
        while at + 1 < len(self.listed) and self._is_length(at):
            at += 2
        return min(at, len(self.listed))

    def _is_length(self, at: int) -> bool:
        return self.listed[at].kind in ("number", "text") and self.listed[at + 1].kind == "word"
