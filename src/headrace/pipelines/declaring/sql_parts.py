"""The parts of a CREATE statement: words, names, lists, texts, and rules about rows."""

from collections.abc import Iterable, Sequence

from headrace.pipelines.declaring.rules import expectation, fresh, of_batch, rows, unique
from headrace.pipelines.declaring.sql_mistakes import mistake_in
from headrace.pipelines.declaring.sql_text import Token
from headrace.pipelines.intervals import seconds_of
from headrace.pipelines.model import Expectation, Place, Rule
from headrace.pipelines.problems import PipelineError, Problem, nearest

_VIOLATIONS = {
    ("WARN",): "warn",
    ("DROP", "ROW"): "drop",
    ("QUARANTINE", "ROW"): "quarantine",
    ("FAIL", "UPDATE"): "fail",
}


class Parts:
    """Reads a statement from left to right; what does not fit is an error at its line."""

    def __init__(self, sql: str, listed: Sequence[Token], file: str) -> None:
        self._sql = sql
        self._listed = listed
        self._file = file
        self._at = 0
        self.problems: list[Problem] = []
        """What is wrong with a query; what it is for is known nevertheless."""

    @property
    def is_at_end(self) -> bool:
        return self._at >= len(self._listed)

    def is_next(self, *words: str) -> bool:
        """Whether these words and marks come next."""
        ahead = self._listed[self._at : self._at + len(words)]
        return [token.upper or token.text for token in ahead] == list(words)

    def accept(self, *words: str) -> bool:
        """Step over these words, if they come next."""
        if not self.is_next(*words):
            return False
        self._at += len(words)
        return True

    def expect(self, word: str, *, instead_of: str | None = None) -> None:
        if not self.accept(word):
            raise self.wrong(instead_of or f"here must stand {word}", [word])

    def expect_one_of(self, *words: str) -> None:
        if not any(self.accept(word) for word in words):
            raise self.wrong(f"here must stand {' or '.join(words)}", words)

    def wrong(self, advice: str, words: Iterable[str] = ()) -> PipelineError:
        """An error at the next token, or at the last one when the statement is over.

        Of `words`, all that may come next, the one that was perhaps meant is told.
        """
        if self.is_at_end:
            last = self._listed[-1]
            return PipelineError(
                Problem(f"the statement ends too early; {advice}", Place(self._file, last.line))
            )
        token = self._listed[self._at]
        return PipelineError(
            Problem(
                f"{token.text} does not fit here; {advice}{nearest(token.upper, words)}",
                Place(self._file, token.line),
            )
        )

    def no_clause(self, allowed: Sequence[tuple[str, ...]], more: str = "") -> PipelineError:
        """An error where none of some clauses begins; `more` is what may stand there too."""
        advice = f"here may stand {', '.join(map(' '.join, allowed))}{more}"
        return self.wrong(advice, [words[0] for words in allowed])

    def take(self) -> Token:
        if self.is_at_end:
            raise self.wrong("something is missing")
        self._at += 1
        return self._listed[self._at - 1]

    def name(self) -> str:
        """A dataset's name, `staging.orders`, in lower case as names are."""
        parts = [self._name_part()]
        while self.accept("."):
            parts.append(self._name_part())
        return ".".join(parts)

    def names(self) -> tuple[str, ...]:
        """A list of columns: `(id, day)`."""
        return tuple(self._column(item) for item in self._items())

    def possibly_no_names(self) -> tuple[str, ...]:
        """The same where `()` says that it is none."""
        return () if self.accept("(", ")") else self.names()

    def column(self) -> str:
        """One column, as it is written: `seq`."""
        return self._name_token().name

    def text(self) -> str:
        """A text in quotes; a bare word or number is one too."""
        token = self.take()
        if token.kind not in ("text", "word", "number"):
            self._at -= 1
            raise self.wrong("write a text in quotes")
        return unquoted(token)

    def interval(self) -> str:
        """`5 MINUTES`, `INTERVAL 5 MINUTES` or `'5 minutes'`, as Spark's triggers spell it."""
        self.accept("INTERVAL")
        first = self.take()
        words = [unquoted(first)]
        if not self.is_at_end and first.kind == "number":
            words.append(self.take().text.lower())
        written = " ".join(words)
        try:
            seconds_of(written)
        except ValueError as error:
            self._at -= 1
            raise self.wrong(str(error)) from error
        return written

    def properties(self) -> dict[str, str]:
        """`('key' = 'value', other.key = 3)`."""
        found = {}
        for item in self._items():
            at = next((at for at, token in enumerate(item) if token.text == "="), None)
            if not at or at + 2 != len(item):
                raise self.wrong("write properties as ('key' = 'value', ...)")
            key = "".join(unquoted(token) for token in item[:at])
            found[key] = unquoted(item[-1])
        return found

    def merges(self) -> dict[str, str]:
        """`(hits SUM, last MAX)`."""
        found = {}
        for item in self._items():
            if len(item) != 2:
                raise self.wrong("write MERGE as (hits SUM, last MAX)")
            found[self._column(item[:1])] = item[1].text.lower()
        return found

    def definitions(self) -> tuple[list[str], tuple[Expectation, ...]]:
        """Columns as Spark's DDL spells them, and constraints: `(id LONG, CONSTRAINT c ...)`."""
        if not self.is_next("("):
            return [], ()
        columns: list[str] = []
        expectations: list[Expectation] = []
        for item in self._items():
            if item[0].upper == "CONSTRAINT":
                expectations.append(Parts(self._sql, item, self._file)._constraint())
            else:
                columns.append(self._sql[item[0].start : item[-1].end])
        return columns, tuple(expectations)

    def query(self) -> str:
        """The rest of the statement, on the same lines as in the file."""
        if self.is_at_end:
            raise self.wrong("here must stand a query")
        rest = self._listed[self._at :]
        if (mistake := mistake_in(rest)) is not None:
            self.problems.append(Problem(mistake.text, Place(self._file, mistake.line)))
        self._at = len(self._listed)
        return self._text_of(rest)

    def until(self, stops: Iterable[tuple[str, ...]]) -> str:
        """The text up to one of these clauses, or to the end."""
        start, depth = self._at, 0
        while not self.is_at_end:
            if depth == 0 and any(self.is_next(*words) for words in stops):
                break
            depth += {"(": 1, ")": -1}.get(self.take().text, 0)
        if self._at == start:
            raise self.wrong("something is missing")
        return self._text_of(self._listed[start : self._at])

    def _text_of(self, listed: Sequence[Token]) -> str:
        first, last = listed[0], listed[-1]
        return "\n" * (first.line - 1) + self._sql[first.start : last.end]

    def _constraint(self) -> Expectation:
        """`CONSTRAINT name EXPECT (condition) ON VIOLATION DROP ROW`, and its further forms."""
        self.expect("CONSTRAINT")
        name = self.take().name
        self.expect("EXPECT", instead_of="a constraint goes on with EXPECT (condition)")
        rule = self._rule()
        violation = "warn"
        if self.accept("ON", "VIOLATION"):
            found = next((words for words in _VIOLATIONS if self.accept(*words)), None)
            if found is None:
                choice = ", ".join(map(" ".join, _VIOLATIONS))
                raise self.wrong(f"on a violation one can {choice}")
            violation = _VIOLATIONS[found]
        if not self.is_at_end:
            raise self.wrong("a constraint ends with ON VIOLATION and what to do")
        return expectation(name, rule, violation)

    def _rule(self) -> str | Rule:
        if self.accept("UNIQUE"):
            return unique(*self.names())
        if self.accept("BATCH"):
            return of_batch(self._condition())
        if self.accept("FRESH"):
            column = self._name_part()
            self.expect("WITHIN", instead_of="say how old it may be: FRESH ts WITHIN 5 MINUTES")
            return fresh(column, self.interval())
        if self.accept("ROWS"):
            least = self._number() if self.accept("AT", "LEAST") else 0
            most = self._number() if self.accept("AT", "MOST") else None
            return rows(least, most)
        return self._condition()

    def _condition(self) -> str:
        if not self.is_next("("):
            raise self.wrong("write the condition in parentheses: EXPECT (price > 0)")
        start = self._at
        self._at = self._closing(start)
        inner = self._listed[start + 1 : self._at - 1]
        if not inner:
            raise self.wrong("the condition is empty")
        return self._sql[inner[0].start : inner[-1].end]

    def _number(self) -> int:
        token = self.take()
        if not token.text.isdigit():
            self._at -= 1
            raise self.wrong("write a number")
        return int(token.text)

    def _name_part(self) -> str:
        return self._name_token().name.lower()

    def _name_token(self) -> Token:
        token = self.take()
        if not token.is_name:
            self._at -= 1
            raise self.wrong("here must stand a name")
        return token

    def _column(self, item: Sequence[Token]) -> str:
        if len(item) != 1 or not item[0].is_name:
            raise self.wrong("write names of columns in parentheses: (id, day)")
        return item[0].name

    def _items(self) -> list[Sequence[Token]]:
        """What stands between parentheses, parted at its commas."""
        if not self.is_next("("):
            raise self.wrong("here must stand a list in parentheses")
        start = self._at
        self._at = self._closing(start)
        items: list[list[Token]] = [[]]
        depth = angles = 0
        for token in self._listed[start + 1 : self._at - 1]:
            depth += {"(": 1, ")": -1}.get(token.text, 0)
            if depth == 0:  # MAP<STRING, INT> has a comma, and `a < b` stands in parentheses.
                angles += {"<": 1, ">": -1}.get(token.text, 0)
            if token.text == "," and depth == 0 and angles == 0:
                items.append([])
            else:
                items[-1].append(token)
        if any(not item for item in items):
            raise self.wrong("the list has an empty place")
        return [*items]

    def _closing(self, start: int) -> int:
        """Behind the parenthesis that closes the one at `start`."""
        depth = 0
        for at in range(start, len(self._listed)):
            depth += {"(": 1, ")": -1}.get(self._listed[at].text, 0)
            if depth == 0:
                return at + 1
        raise self.wrong("this parenthesis is not closed")


def unquoted(token: Token) -> str:
    """The value of a text, or the token as it is."""
    if token.kind != "text":
        return token.name
    is_raw = token.text[0] in "rR"
    quote = token.text[1 if is_raw else 0]
    inner = token.text[2 if is_raw else 1 : -1].replace(quote * 2, quote)
    return inner if is_raw else _unescaped(inner)


def _unescaped(text: str) -> str:
    import re

    known = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}
    return re.sub(r"\\(.)", lambda found: known.get(found[1], found[1]), text, flags=re.DOTALL)
