"""Reads CREATE TABLE as ANSI SQL, PostgreSQL and MySQL write it: columns, types, what may be null.

Keys, checks and storage options are passed over: a schema of records has no place for them. What
a column may hold and what it is when nobody says is kept.
"""

import re
from dataclasses import dataclass, field
from typing import Final, NoReturn

from headrace.serdes.schemas import InvalidSchema

TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|\#[^\n]*|/\*.*?\*/)
    |(?P<text>[nN]?'(?:[^']|'')*')
    |(?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[A-Za-z_][^\]]*\])
    |(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)
    |(?P<word>[^\W\d][\w$]*)
    |(?P<sign>::|[-+*/%<>=!|&~^?@.,;:()\[\]{}])""",
    re.VERBOSE | re.DOTALL,
)
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


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str

    @property
    def upper(self) -> str:
        return self.text.upper() if self.kind in ("word", "sign") else ""


@dataclass(slots=True)
class Column:
    name: str
    type: str
    """Its words in capitals, such as `TIMESTAMP WITH TIME ZONE`."""

    arguments: tuple[str, ...] = ()
    is_array: bool = False
    is_nullable: bool = True
    default: Token | None = None
    """A constant, or None: an expression is worked out by a database, not by a schema."""

    comment: str | None = None


@dataclass(slots=True)
class Table:
    name: str
    schema: str = ""
    columns: dict[str, Column] = field(default_factory=dict)
    comment: str | None = None


def read_table(sql: str) -> Table:
    """The table that the first CREATE TABLE of a text makes; `InvalidSchema` says what is wrong."""
    if len(sql) > TEXT_MAX:
        raise InvalidSchema(f"the SQL has more than {TEXT_MAX} characters")
    return _Parser(_tokens(sql)).table()


def _tokens(sql: str) -> list[Token]:
    found: list[Token] = []
    position = 0
    while position < len(sql):
        match = TOKEN.match(sql, position)
        if match is None:
            line = sql.count("\n", 0, position) + 1
            raise InvalidSchema(f"line {line} of the SQL: {sql[position : position + 20]!r}?")
        position = match.end()
        if match.lastgroup != "space":
            found.append(Token(str(match.lastgroup), _unquoted(str(match.lastgroup), match[0])))
    return found


def _unquoted(kind: str, text: str) -> str:
    if kind == "text":
        return text[text.index("'") + 1 : -1].replace("''", "'")
    if kind == "quoted":
        return text[1:-1].replace(text[-1] * 2, text[-1])
    return text


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = [*tokens, Token("end", "the end")]
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
        """Where the name stands after CREATE, words such as TEMPORARY, and TABLE."""
        words = [token.upper for token in self._tokens]
        for begin in (index for index, word in enumerate(words) if word == "CREATE"):
            here = begin + 1
            while words[here] in BEFORE_TABLE:
                here += 1
            if words[here] == "TABLE":
                return here + 1
        raise InvalidSchema("the SQL has no CREATE TABLE")

    def _entry(self, table: Table) -> None:
        if self._next.upper in TABLE_CONSTRAINTS:
            self._table_constraint(table)
            return
        column = self._column()
        if column.name in table.columns:
            self._fail(f"the table has two columns {column.name}")
        table.columns[column.name] = column

    def _table_constraint(self, table: Table) -> None:
        is_primary = False
        while self._next.upper not in (",", ")"):
            if self._take("PRIMARY"):
                is_primary = True
            elif self._next.upper == "(":
                for token in self._group():
                    if is_primary and token.text in table.columns:
                        table.columns[token.text].is_nullable = False
                is_primary = False
            else:
                self._advance()

    def _column(self) -> Column:
        name = self._identifier()
        words: list[str] = []
        arguments: tuple[str, ...] = ()
        while self._next.kind == "word" and self._next.upper not in COLUMN_CLAUSES:
            words.append(self._advance().upper)
            if self._next.upper == "(":
                arguments = tuple(token.text for token in self._group() if token.text != ",")
        if not words:
            self._fail(f"the column {name} has no type")
        column = Column(name, " ".join(words), arguments)
        while self._next.upper == "[":
            self._group()
            column.is_array = True
        while self._next.upper not in (",", ")"):
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
        elif self._next.upper == "(":
            self._group()
        else:
            self._advance()

    def _constant(self) -> Token | None:
        """A default that is a number, a text or a constant, without the type that may follow it."""
        sign = self._advance().text if self._next.text in ("-", "+") else ""
        token = self._advance()
        if token.upper in TYPED and self._next.kind == "text":
            token = self._advance()
        if token.kind == "number":
            token = Token("number", f"{sign.replace('+', '')}{token.text}")
        is_constant = token.kind in ("number", "text") or token.upper in CONSTANTS
        while self._take("::"):
            self._advance()
        is_alone = self._next.upper in (",", ")") or self._next.upper in COLUMN_CLAUSES
        return token if is_constant and is_alone and token.upper != "NULL" else None

    def _rest(self, table: Table) -> None:
        """What follows the columns: a comment as an option, or comments as statements."""
        while self._next.kind != "end":
            if not self._take("COMMENT"):
                self._advance()
            elif self._take("ON"):
                self._comment_on(table)
            else:
                self._take("=")
                table.comment = self._text()

    def _comment_on(self, table: Table) -> None:
        kind = self._advance().upper
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
            self._fail(f"{token.text!r} is no name")
        return token.text

    def _text(self) -> str:
        token = self._advance()
        if token.kind != "text":
            self._fail(f"{token.text!r} is no text in quotes")
        return token.text

    def _group(self) -> list[Token]:
        """What stands between brackets, those within them included."""
        closing = {"(": ")", "[": "]"}
        waiting = [closing[self._advance().text]]
        found: list[Token] = []
        while waiting:
            token = self._advance()
            if token.kind == "sign" and token.text == waiting[-1]:
                waiting.pop()
            elif token.kind == "sign" and token.text in closing:
                waiting.append(closing[token.text])
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
        if self._next.upper != word:
            return False
        self._position += 1
        return True

    def _expect(self, word: str) -> None:
        if not self._take(word):
            self._fail(f"{word} was expected before {self._next.text!r}")

    def _fail(self, reason: str) -> NoReturn:
        before = " ".join(token.text for token in self._tokens[: self._position][-5:])
        raise InvalidSchema(f"the SQL cannot be read: {reason} (after: {before})")
