"""The parts of a CREATE statement: words, names, lists, texts, and rules about rows."""

from collections.abc import Collection, Iterable, Sequence

from headrace.pipelines.declaring.intervals import seconds_of
from headrace.pipelines.declaring.rules import expectation, fresh, of_batch, rows, unique
from headrace.pipelines.declaring.sql_mistakes import mistake_in
from headrace.pipelines.model import Expectation, Location, Rule
from headrace.pipelines.problems import PipelineError, Problem, nearest
from headrace.serdes.sql_tokens import Token

_VIOLATIONS = {
    ("WARN",): "warn",
    ("DROP", "ROW"): "drop",
    ("QUARANTINE", "ROW"): "quarantine",
    ("FAIL", "UPDATE"): "fail",
}


class Parts:
    """Reads a statement from left to right; a mistake is an error at its line."""

    def __init__(self, sql: str, listed: Sequence[Token], file: str) -> None:
        self._sql = sql
        self._listed = listed
        self._file = file
        self._at = 0
        self.problems: list[Problem] = []
        """The problems of queries; their declarations are still read."""

    @property
    def is_at_end(self) -> bool:
        return self._at >= len(self._listed)

    def is_next(self, *words: str) -> bool:
        """Return whether these words and marks come next."""
        ahead = self._listed[self._at : self._at + len(words)]
        return [token.symbol for token in ahead] == list(words)

    def accept(self, *words: str) -> bool:
        """Step over these words, if they come next."""
        if not self.is_next(*words):
            return False
        self._at += len(words)
        return True

    def expect(self, word: str, *, instead_of: str | None = None) -> None:
        if not self.accept(word):
            raise self.wrong(instead_of or f"{word} must come here", [word])

    def expect_one_of(self, *words: str) -> None:
        if not any(self.accept(word) for word in words):
            raise self.wrong(f"{' or '.join(words)} must come here", words)

    def wrong(self, advice: str, words: Iterable[str] = ()) -> PipelineError:
        """Return the error at the next token, or at the last one when the statement is over.

        `words` are the words that may come next; a similar one is suggested.
        """
        if self.is_at_end:
            last = self._listed[-1]
            return PipelineError(
                Problem(f"the statement ends too early; {advice}", Location(self._file, last.line))
            )
        token = self._listed[self._at]
        return PipelineError(
            Problem(
                f"{token.text} does not fit here; {advice}{nearest(token.upper, words)}",
                Location(self._file, token.line),
            )
        )

    def no_clause(self, clauses: Iterable[str], more: str = "") -> PipelineError:
        """Return the error where none of the clauses begins; `more` names other words allowed."""
        allowed = list(clauses)
        advice = f"allowed here are {', '.join(allowed)}{more}"
        return self.wrong(advice, [clause.split()[0] for clause in allowed])

    def take(self) -> Token:
        if self.is_at_end:
            raise self.wrong("something is missing")
        self._at += 1
        return self._listed[self._at - 1]

    def name(self) -> str:
        """Read a dataset's name, `staging.orders`, and lower its case."""
        parts = [self._name_part()]
        while self.accept("."):
            parts.append(self._name_part())
        return ".".join(parts)

    def names(self) -> tuple[str, ...]:
        """Read a list of columns: `(id, day)`."""
        return tuple(self._column(item) for item in self._items())

    def possibly_no_names(self) -> tuple[str, ...]:
        """Read a list of columns that may be empty: `()`."""
        return () if self.accept("(", ")") else self.names()

    def column(self) -> str:
        """Read one column, as written: `seq`."""
        return self._name_token().value

    def text(self) -> str:
        """Read a text in quotes; a bare word or number is one too."""
        token = self.take()
        if token.kind not in ("text", "word", "number"):
            self._at -= 1
            raise self.wrong("write a text in quotes")
        return token.value

    def interval(self) -> str:
        """Read `5 MINUTES`, `INTERVAL 5 MINUTES` or `'5 minutes'`, as Spark's triggers spell it."""
        self.accept("INTERVAL")
        first = self.take()
        words = [first.value]
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
        """Read `('key' = 'value', other.key = 3)`."""
        found = {}
        for item in self._items():
            at = next((at for at, token in enumerate(item) if token.text == "="), None)
            if not at or at + 2 != len(item):
                raise self.wrong("write properties as ('key' = 'value', ...)")
            key = "".join(token.value for token in item[:at])
            found[key] = item[-1].value
        return found

    def merges(self) -> dict[str, str]:
        """Read `(hits SUM, last MAX)`."""
        found = {}
        for item in self._items():
            if len(item) != 2:
                raise self.wrong("write MERGE as (hits SUM, last MAX)")
            found[self._column(item[:1])] = item[1].text.lower()
        return found

    def definitions(self) -> tuple[list[str], tuple[Expectation, ...]]:
        """Read columns in Spark's DDL, and constraints: `(id LONG, CONSTRAINT c ...)`."""
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
        """Read the rest of the statement, on the same lines as in the file."""
        if self.is_at_end:
            raise self.wrong("a query must come here")
        rest = self._listed[self._at :]
        if (mistake := mistake_in(rest)) is not None:
            self.problems.append(Problem(mistake.text, Location(self._file, mistake.line)))
        self._at = len(self._listed)
        return self._text_of(rest)

    def until(self, stops: Collection[Sequence[str]]) -> str:
        """Read the text up to one of these clauses, or to the end."""
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
        """Read `CONSTRAINT name EXPECT (condition) ON VIOLATION DROP ROW`, and its other forms."""
        self.expect("CONSTRAINT")
        name = self.take().value
        self.expect("EXPECT", instead_of="a constraint continues with EXPECT (condition)")
        rule = self._rule()
        violation = "warn"
        if self.accept("ON", "VIOLATION"):
            found = next((words for words in _VIOLATIONS if self.accept(*words)), None)
            if found is None:
                choice = ", ".join(map(" ".join, _VIOLATIONS))
                raise self.wrong(f"the choices on a violation are {choice}")
            violation = _VIOLATIONS[found]
        if not self.is_at_end:
            raise self.wrong("a constraint ends with ON VIOLATION and its consequence")
        return expectation(name, rule, violation)

    def _rule(self) -> str | Rule:
        if self.accept("UNIQUE"):
            return unique(*self.names())
        if self.accept("BATCH"):
            return of_batch(self._condition())
        if self.accept("FRESH"):
            column = self._name_part()
            self.expect("WITHIN", instead_of="add the largest age: FRESH ts WITHIN 5 MINUTES")
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
        return self._name_token().value.lower()

    def _name_token(self) -> Token:
        token = self.take()
        if not token.is_name:
            self._at -= 1
            raise self.wrong("a name must come here")
        return token

    def _column(self, item: Sequence[Token]) -> str:
        if len(item) != 1 or not item[0].is_name:
            raise self.wrong("write names of columns in parentheses: (id, day)")
        return item[0].value

    def _items(self) -> list[Sequence[Token]]:
        """Read the items between parentheses, split at commas."""
        if not self.is_next("("):
            raise self.wrong("a list in parentheses must come here")
        start = self._at
        self._at = self._closing(start)
        items: list[list[Token]] = [[]]
        depth = angles = 0
        for token in self._listed[start + 1 : self._at - 1]:
            depth += {"(": 1, ")": -1}.get(token.text, 0)
            if depth == 0:  # MAP<STRING, INT> has a comma; `a < b` is inside parentheses.
                angles += {"<": 1, ">": -1}.get(token.text, 0)
            if token.text == "," and depth == 0 and angles == 0:
                items.append([])
            else:
                items[-1].append(token)
        if any(not item for item in items):
            raise self.wrong("the list has an empty place")
        return [*items]

    def _closing(self, start: int) -> int:
        """Return the position behind the parenthesis that closes the one at `start`."""
        depth = 0
        for at in range(start, len(self._listed)):
            depth += {"(": 1, ")": -1}.get(self._listed[at].text, 0)
            if depth == 0:
                return at + 1
        raise self.wrong("this parenthesis is not closed")
