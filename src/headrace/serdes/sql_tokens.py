"""SQL as tokens, in two dialects: Spark's, and the one in which databases write CREATE TABLE."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

_SPARK = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<comment>--(?:\\\n|[^\r\n])*)
  | (?P<text>[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
  | (?P<quoted>`(?:[^`]|``)*`)
  | (?P<number>\d[\w.]*)
  | (?P<word>[^\W\d]\w*)
  | (?P<open>/\*|'|"|`)
  | (?P<mark>\|>|::|->|=>|<=>|<=|>=|<>|!=|==|\|\||.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ANSI = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<comment>--[^\n]*|\#[^\n]*|/\*.*?\*/)
  | (?P<text>[nN]?'(?:[^']|'')*')
  | (?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[A-Za-z_][^\]]*\])
  | (?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)
  | (?P<word>[^\W\d][\w$]*)
  | (?P<mark>::|[-+*/%<>=!|&~^?@.,;:()\[\]{}])
    """,
    re.VERBOSE | re.DOTALL,
)
_BRACKETS = re.compile(r"/\*|\*/")
"""The ends of a comment; Spark's comments nest."""
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}


class SqlSyntaxError(ValueError):
    """A text that is not SQL; `line` counts from 1."""

    def __init__(self, text: str, line: int) -> None:
        super().__init__(text)
        self.line = line


@dataclass(frozen=True, slots=True)
class Token:
    """A word, quoted name, text, number or mark of SQL."""

    kind: str
    text: str
    """As written, with quotes."""
    value: str
    """The name or text without its quotes; otherwise the same as `text`."""
    start: int = 0
    line: int = 0

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def upper(self) -> str:
        """The word in capitals, to compare it with keywords; empty for quoted names and others."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def symbol(self) -> str:
        """The word in capitals, or the mark; empty for quoted names, texts and numbers."""
        return self.text if self.kind == "mark" else self.upper

    @property
    def is_name(self) -> bool:
        return self.kind in ("word", "quoted")


def _spark_text(text: str) -> str:
    is_raw = text[0] in "rR"
    quote = text[1 if is_raw else 0]
    inner = text[2 if is_raw else 1 : -1].replace(quote * 2, quote)
    if is_raw:
        return inner
    return re.sub(r"\\(.)", lambda one: _ESCAPES.get(one[1], one[1]), inner, flags=re.DOTALL)


def _ansi_text(text: str) -> str:
    return text[text.index("'") + 1 : -1].replace("''", "'")


class Dialect(Enum):
    """A SQL dialect: the pattern of its tokens, and the meaning of a quoted text."""

    SPARK = (_SPARK, _spark_text)
    """Backslashes escape, texts have one or two quotes, comments nest."""
    ANSI = (_ANSI, _ansi_text)
    """PostgreSQL, MySQL and SQL Server: two quotes are a name."""

    def __init__(self, pattern: re.Pattern[str], text_value: Callable[[str], str]) -> None:
        self.pattern = pattern
        self.text_value = text_value


def tokens(sql: str, dialect: Dialect = Dialect.SPARK) -> list[Token]:
    """Return all tokens; SqlSyntaxError if a text, a name or a comment does not end."""
    found: list[Token] = []
    at, line = 0, 1
    while at < len(sql):
        match = dialect.pattern.match(sql, at)
        if match is None:
            raise SqlSyntaxError(f"{sql[at : at + 20]!r} is not SQL", line)
        kind, end = str(match.lastgroup), match.end()
        if kind == "open" and match[0] == "/*":
            kind, end = "comment", _comment_end(sql, at, line)
        if kind == "open":
            raise SqlSyntaxError(f"this {match[0]} has no end", line)
        if kind not in ("space", "comment"):
            found.append(Token(kind, match[0], _value(kind, match[0], dialect), at, line))
        line += sql.count("\n", at, end)
        at = end
    return found


def statements(sql: str) -> Iterator[list[Token]]:
    """Yield the tokens of each statement, without the semicolons between them."""
    statement: list[Token] = []
    for token in tokens(sql):
        if token.text != ";":
            statement.append(token)
        elif statement:
            yield statement
            statement = []
    if statement:
        yield statement


def quoted_name(name: str) -> str:
    """Return a name in backticks; a dot separates its parts."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in name.split("."))


def _value(kind: str, text: str, dialect: Dialect) -> str:
    if kind == "text":
        return dialect.text_value(text)
    return text[1:-1].replace(text[-1] * 2, text[-1]) if kind == "quoted" else text


def _comment_end(sql: str, start: int, line: int) -> int:
    depth = 0
    for bracket in _BRACKETS.finditer(sql, start):
        depth += 1 if bracket[0] == "/*" else -1
        if depth == 0:
            return bracket.end()
    raise SqlSyntaxError("this /* has no end", line)
