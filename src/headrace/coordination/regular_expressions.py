r"""Regular expressions with RE2's syntax, matched in time linear in the text.

Clients send patterns (KIP-848, KIP-1152), and Kafka matches them with RE2. With the extra [re2]
so does this broker. Without it, Python parses the pattern, and the matcher follows all states of
the pattern at once; Python's own matcher backtracks, so a short pattern could occupy it for years.
This matcher rejects what RE2 lacks (back-references, look-around), and also word boundaries (`\b`)
and multi-line mode.
"""

import re
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from headrace.errors import InvalidRegularExpression

PATTERN_LENGTH_MAX = 1_000
STATES_MAX = 10_000
"""RE2 also rejects patterns that would need too much memory."""

_REPEAT_MAX = 1_000
_REMEMBERED_MAX = 10_000


class Pattern(Protocol):
    def fullmatch(self, text: str) -> Any:
        """Return a true value if the pattern matches the whole text."""


class RegularExpression:
    """A pattern ready to match; an invalid one raises INVALID_REGULAR_EXPRESSION."""

    __slots__ = ("_pattern",)

    def __init__(self, pattern: str) -> None:
        if len(pattern) > PATTERN_LENGTH_MAX:
            raise _invalid(pattern, f"it is longer than {PATTERN_LENGTH_MAX} characters")
        self._pattern = by_states(pattern) if _re2() is None else by_re2(pattern)

    def matches(self, text: str) -> bool:
        return bool(self._pattern.fullmatch(text))


@lru_cache(maxsize=256)
def compiled(pattern: str) -> RegularExpression:
    """Return a pattern ready to match; the members of a group usually send the same one."""
    return RegularExpression(pattern)


def by_re2(pattern: str) -> Pattern:
    """Compile a pattern with google-re2."""
    re2 = _re2()
    options = re2.Options()
    options.log_errors = False
    try:
        compiled: Pattern = re2.compile(pattern, options)
    except re2.error as error:
        raise _invalid(pattern, error.args[0].decode(errors="replace")) from None
    return compiled


def by_states(pattern: str) -> Pattern:
    """Compile a pattern with Python's parser and the matcher of this module."""
    # RE2 writes the end of the text `\z`, Python `\Z`.
    in_python = re.sub(r"((?:^|[^\\])(?:\\\\)*)\\z", r"\1\\Z", pattern)
    # Python's own parser, which its type information does not list.
    parser: Any = import_module("re._parser")
    try:
        return _States(parser.parse(in_python))
    except (re.error, OverflowError, RecursionError, _Unsupported) as error:
        raise _invalid(pattern, str(error)) from None


@cache
def _re2() -> Any:
    """Import google-re2 with the first pattern: few brokers receive one; None if missing."""
    try:
        return import_module("re2")
    except ImportError:
        return None


def _invalid(pattern: str, reason: str) -> InvalidRegularExpression:
    return InvalidRegularExpression(
        f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {reason}."
    )


class _Unsupported(Exception):
    """Syntax that RE2 or this matcher does not have."""


class _State(NamedTuple):
    """A step over one character if it `accepts` any, otherwise free moves to all targets.

    A move at an `edge` is free at the start ("^") or at the end ("$") of the text only.
    """

    targets: list[int]
    accepts: Callable[[str], bool] | None = None
    edge: str = "^$"


class _States:
    """A parsed pattern as states, laid out from its end to its start."""

    def __init__(self, parsed: Any) -> None:
        self._codes: Any = import_module("re._constants")
        self._states = [_State([])]
        first = self._sequence(parsed, 0, parsed.state.flags)
        self._first = frozenset((first,))
        self._remembered: dict[tuple[frozenset[int], str, str], frozenset[int]] = {}

    def fullmatch(self, text: str) -> bool:
        found = self._first
        for position, character in enumerate(text):
            found = self._next(found, character, "" if position else "^")
        return 0 in self._reached(found, "$" if text else "^$")

    def _next(self, states: frozenset[int], character: str, edge: str) -> frozenset[int]:
        key = (states, character, edge)
        found = self._remembered.get(key)
        if found is None:
            reached = [self._states[each] for each in self._reached(states, edge)]
            steps = [each for each in reached if each.accepts and each.accepts(character)]
            found = frozenset(target for each in steps for target in each.targets)
            if len(self._remembered) >= _REMEMBERED_MAX:
                self._remembered.clear()
            self._remembered[key] = found
        return found

    def _reached(self, states: frozenset[int], edge: str) -> set[int]:
        """Return the states and all that free moves reach from them."""
        reached = set(states)
        pending = list(states)
        while pending:
            state = self._states[pending.pop()]
            if state.accepts is None and (state.edge == "^$" or state.edge in edge):
                new = set(state.targets) - reached
                reached |= new
                pending += new
        return reached

    def _add(self, state: _State) -> int:
        if len(self._states) >= STATES_MAX:
            raise _Unsupported("the pattern is too large")
        self._states.append(state)
        return len(self._states) - 1

    def _sequence(self, items: Iterable[Any], end: int, flags: int) -> int:
        """Add the states of a sequence that continues at `end`; return the first."""
        for operation, argument in reversed(list(items)):
            end = self._item(operation, argument, end, flags)
        return end

    def _item(self, operation: Any, argument: Any, end: int, flags: int) -> int:
        codes = self._codes
        if operation in (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN):
            return self._add(_State([end], _accepts(codes, operation, argument, flags)))
        if operation is codes.BRANCH:
            return self._add(_State([self._sequence(each, end, flags) for each in argument[1]]))
        if operation is codes.SUBPATTERN:
            _, added, removed, items = argument
            return self._sequence(items, end, (flags | added) & ~removed)
        if operation in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            low, high, items = argument
            return self._repeat(low, high, items, end, flags)
        edges = {codes.AT_BEGINNING: "^", codes.AT_END: "$"}
        edges |= {codes.AT_BEGINNING_STRING: "^", codes.AT_END_STRING: "$"}
        if operation is codes.AT and argument in edges and not flags & re.MULTILINE:
            return self._add(_State([end], edge=edges[argument]))
        raise _Unsupported(f"{str(operation).lower()} is not supported")

    def _repeat(self, low: int, high: Any, items: Any, end: int, flags: int) -> int:
        is_endless = high is self._codes.MAXREPEAT
        if low > _REPEAT_MAX or (not is_endless and high > _REPEAT_MAX):
            raise _Unsupported(f"more than {_REPEAT_MAX} repetitions")
        if is_endless:
            loop = self._add(_State([end]))
            self._states[loop].targets.append(self._sequence(items, loop, flags))
            end = loop
        for _ in range(0 if is_endless else high - low):
            end = self._add(_State([end, self._sequence(items, end, flags)]))
        for _ in range(low):
            end = self._sequence(items, end, flags)
        return end


def _accepts(codes: Any, operation: Any, argument: Any, flags: int) -> Callable[[str], bool]:
    """Return the test of one character; like RE2's, classes such as `\\d` are ASCII."""
    if operation is codes.ANY:
        source = "(?s:.)" if flags & re.DOTALL else "."
    elif operation is codes.IN:
        source = f"[{''.join(_class_item(codes, *item) for item in argument)}]"
    else:
        source = f"[{'^' * (operation is codes.NOT_LITERAL)}{re.escape(chr(argument))}]"
    one_character = re.compile(source, re.ASCII | (flags & re.IGNORECASE))
    return lambda character: one_character.match(character) is not None


def _class_item(codes: Any, operation: Any, argument: Any) -> str:
    if operation is codes.NEGATE:
        return "^"
    if operation is codes.LITERAL:
        return re.escape(chr(argument))
    if operation is codes.RANGE:
        return "-".join(re.escape(chr(each)) for each in argument)
    kind = str(argument).removeprefix("CATEGORY_")  # NOT_DIGIT becomes \D.
    letter = kind.removeprefix("NOT_")[0].lower()
    return "\\" + (letter.upper() if kind.startswith("NOT_") else letter)
