"""Parses CREATE TABLE of ANSI SQL, PostgreSQL and MySQL: columns, types, nullability, defaults.

Keys, checks and storage options are skipped: a schema of records cannot express them.
"""

from dataclasses import dataclass, field, replace
from typing import Final, NoReturn

from headrace.serdes.schemas import InvalidSchema
from headrace.serdes.sql_tokens import Dialect, SqlSyntaxError, Token, tokens

TEXT_MAX: Final = 1 << 20

TABLE_CONSTRAINTS: Final = frozenset(
    ("CONSTRAINT", "PRIMARY", "UNIQUE", "FOREIGN", "CHECK", "EXCLUDE", "INDEX", "KEY", "FULLTEXT")
)
COLUMN_CLAUSES: Final = frozenset(
    (
        *("NOT", "NULL", "DEFAULT", "PRIMARY", "UNIQUE", "REFERENCES", "CHECK", "CONSTRAINT"),
        *("COMMENT", "COLLATE", "GENERATED", "AUTO_INCREMENT", "ON", "KEY", "IDENTITY", "AS"),
    )
)
BEFORE_TABLE: Final = frozenset(
    ("OR", "REPLACE", "GLOBAL", "LOCAL", "TEMPORARY", "TEMP", "UNLOGGED", "EXTERNAL", "FOREIGN")
)
TYPED: Final = frozenset(("DATE", "TIME", "TIMESTAMP"))
CONSTANTS: Final = frozenset(("TRUE", "FALSE", "NULL"))


@dataclass(slots=True)
class Column:
    name: str
    type: str
    """The words of the type in capitals, such as `TIMESTAMP WITH TIME ZONE`."""

    arguments: tuple[str, ...] = ()
    is_array: bool = False
    is_nullable: bool = True
    default: Token | None = None
    """A constant; None for an expression, which only a database can evaluate."""

    comment: str | None = None


@dataclass(slots=True)
class Table:
    name: str
    schema: str = ""
    columns: dict[str, Column] = field(default_factory=dict)
    comment: str | None = None


def read_table(sql: str) -> Table:
    """Parse the first CREATE TABLE of a text; `InvalidSchema` gives the reason of a failure."""
    if len(sql) > TEXT_MAX:
        raise InvalidSchema(f"the SQL has more than {TEXT_MAX} characters")
    try:
        listed = tokens(sql, Dialect.ANSI)
    except SqlSyntaxError as error:
        raise InvalidSchema(f"line {error.line} of the SQL: {error}") from error
    return _Parser(listed).table()


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = [*tokens, Token("end", "the end", "the end")]
        self._position = 0

    def table(self) -> Table:
        self._position = self._first_table()
        if self._take("IF"):
            self._expect("NOT")
            self._expect("EXISTS")
        *schemas, name = self._path()
        table = Table(name, ".".join(schemas))
        self._expect("(")
        self._entry(table)
        while self._take(","):
            self._entry(table)
        self._expect(")")
        self._rest(table)
        return table

    def _first_table(self) -> int:
        """Return the position after CREATE, words such as TEMPORARY, and TABLE."""
        words = [token.symbol for token in self._tokens]
        for begin in (index for index, word in enumerate(words) if word == "CREATE"):
            here = begin + 1
            while words[here] in BEFORE_TABLE:
                here += 1
            if words[here] == "TABLE":
                return here + 1
        raise InvalidSchema("the SQL has no CREATE TABLE")

    def _entry(self, table: Table) -> None:
        if self._next.symbol in TABLE_CONSTRAINTS:
            self._table_constraint(table)
            return
        column = self._column()
        if column.name in table.columns:
            self._fail(f"the table has two columns {column.name}")
        table.columns[column.name] = column

    def _table_constraint(self, table: Table) -> None:
        is_primary = False
        while self._next.symbol not in (",", ")"):
            if self._take("PRIMARY"):
                is_primary = True
            elif self._next.symbol == "(":
                for token in self._group():
                    if is_primary and token.value in table.columns:
                        table.columns[token.value].is_nullable = False
                is_primary = False
            else:
                self._advance()

    def _column(self) -> Column:
        name = self._identifier()
        words: list[str] = []
        arguments: tuple[str, ...] = ()
        while self._next.kind == "word" and self._next.symbol not in COLUMN_CLAUSES:
            words.append(self._advance().symbol)
            if self._next.symbol == "(":
                arguments = tuple(token.value for token in self._group() if token.value != ",")
        if not words:
            self._fail(f"the column {name} has no type")
        column = Column(name, " ".join(words), arguments)
        while self._next.symbol == "[":
            self._group()
            column.is_array = True
        while self._next.symbol not in (",", ")"):
            self._clause(column)
        return column

    def _clause(self, column: Column) -> None:
        if self._take("NOT"):
            self._expect("NULL")
            column.is_nullable = False
        elif self._take("PRIMARY"):
            column.is_nullable = False
        elif self._take("DEFAULT"):
            column.default = self._constant()
        elif self._take("COMMENT"):
            column.comment = self._text()
        elif self._next.symbol == "(":
            self._group()
        else:
            self._advance()

    def _constant(self) -> Token | None:
        """Parse a default: a number, a text or a constant, without the type that may follow it."""
        sign = self._advance().value if self._next.symbol in ("-", "+") else ""
        token = self._advance()
        if token.symbol in TYPED and self._next.kind == "text":
            token = self._advance()
        if token.kind == "number":
            token = replace(token, value=f"{sign.replace('+', '')}{token.value}")
        is_constant = token.kind in ("number", "text") or token.symbol in CONSTANTS
        while self._take("::"):
            self._advance()
        is_alone = self._next.symbol in (",", ")") or self._next.symbol in COLUMN_CLAUSES
        return token if is_constant and is_alone and token.symbol != "NULL" else None

    def _rest(self, table: Table) -> None:
        """Parse the comments after the columns, given as an option or as statements."""
        while self._next.kind != "end":
            if not self._take("COMMENT"):
                self._advance()
            elif self._take("ON"):
                self._comment_on(table)
            else:
                self._take("=")
                table.comment = self._text()

    def _comment_on(self, table: Table) -> None:
        kind = self._advance().symbol
        *_, last = path = self._path()
        self._expect("IS")
        comment = self._text()
        if kind == "TABLE" and last == table.name:
            table.comment = comment
        elif kind == "COLUMN" and path[-2:-1] == [table.name] and last in table.columns:
            table.columns[last].comment = comment

    def _path(self) -> list[str]:
        path = [self._identifier()]
        while self._take("."):
            path.append(self._identifier())
        return path

    def _identifier(self) -> str:
        token = self._advance()
        if token.kind not in ("word", "quoted"):
            self._fail(f"{token.value!r} is not a name")
        return token.value

    def _text(self) -> str:
        token = self._advance()
        if token.kind != "text":
            self._fail(f"{token.value!r} is not a quoted text")
        return token.value

    def _group(self) -> list[Token]:
        """Return the tokens between brackets, nested ones included."""
        closing = {"(": ")", "[": "]"}
        waiting = [closing[self._advance().value]]
        found: list[Token] = []
        while waiting:
            token = self._advance()
            if token.kind == "mark" and token.value == waiting[-1]:
                waiting.pop()
            elif token.kind == "mark" and token.value in closing:
                waiting.append(closing[token.value])
            else:
                found.append(token)
        return found

    @property
    def _next(self) -> Token:
        return self._tokens[self._position]

    def _advance(self) -> Token:
        token = self._next
        if token.kind == "end":
            raise InvalidSchema("the SQL ends within CREATE TABLE")
        self._position += 1
        return token

    def _take(self, word: str) -> bool:
        if self._next.symbol != word:
            return False
        self._position += 1
        return True

    def _expect(self, word: str) -> None:
        if not self._take(word):
            self._fail(f"{word} was expected before {self._next.value!r}")

    def _fail(self, reason: str) -> NoReturn:
        before = " ".join(token.value for token in self._tokens[: self._position][-5:])
        raise InvalidSchema(f"the SQL cannot be read: {reason} (after: {before})")
