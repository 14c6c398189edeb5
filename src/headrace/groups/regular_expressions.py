"""Regular expressions in RE2's way: time linear in the text, whatever the pattern.

Consumers send patterns (KIP-848) and Kafka matches them with RE2, which has no back-references
and no look-around and so never explodes. Python's `re` can be made to run for years by a short
pattern. Hence Python parses, we refuse what RE2 does not have, and match by walking all states
of the pattern at once; sets of states that were met are remembered, so that a topic name costs
one dictionary look-up a character.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple

from headrace.errors import InvalidRegularExpression

PATTERN_LENGTH_MAX = 1_000
STATES_MAX = 10_000
"""As RE2, which refuses a pattern that would need too much memory."""

_REPEAT_MAX = 1_000
_REMEMBERED_MAX = 10_000

Accepts = Callable[[str], bool]


class _Step(NamedTuple):
    """To `target`, past one character that is accepted."""

    accepts: Accepts
    target: int


class _Skip(NamedTuple):
    """To `target`, past nothing, where `holds` of the character before and the one after."""

    target: int
    holds: Callable[[str, str], bool] | None = None


class RegularExpression:
    """A pattern that is ready to match; one that is wrong is INVALID_REGULAR_EXPRESSION."""

    __slots__ = ("_automaton", "_closures", "_moves")

    def __init__(self, pattern: str) -> None:
        self._automaton = _compile(pattern)
        self._closures: dict[tuple[frozenset[int], str, str], frozenset[int]] = {}
        self._moves: dict[tuple[frozenset[int], str], frozenset[int]] = {}

    def matches(self, text: str) -> bool:
        """Whether the pattern matches the whole text."""
        states = frozenset((self._automaton.start,))
        before = ""
        for character in text:
            states = self._move(self._closure(states, before, character), character)
            if not states:
                return False
            before = character
        return self._automaton.end in self._closure(states, before, "")

    def _closure(self, states: frozenset[int], before: str, after: str) -> frozenset[int]:
        """All states that are reached without reading on."""
        if not self._automaton.looks_around:
            before = after = ""
        key = (states, before, after)
        found = self._closures.get(key)
        if found is None:
            found = self._automaton.closure(states, before, after)
            _remember(self._closures, key, found)
        return found

    def _move(self, states: frozenset[int], character: str) -> frozenset[int]:
        key = (states, character)
        found = self._moves.get(key)
        if found is None:
            found = self._automaton.move(states, character)
            _remember(self._moves, key, found)
        return found


@lru_cache(maxsize=256)
def compiled(pattern: str) -> RegularExpression:
    """A pattern that is ready to match; members of a group mostly send the same."""
    return RegularExpression(pattern)


def _remember(memory: dict[Any, frozenset[int]], key: Any, value: frozenset[int]) -> None:
    if len(memory) >= _REMEMBERED_MAX:
        memory.clear()
    memory[key] = value


class _Automaton:
    """States with what leads on from each of them."""

    __slots__ = ("end", "looks_around", "skips", "start", "steps")

    def __init__(self) -> None:
        self.steps: list[list[_Step]] = []
        self.skips: list[list[_Skip]] = []
        self.looks_around = False
        self.start = self.state()
        self.end = self.start

    def state(self) -> int:
        if len(self.steps) >= STATES_MAX:
            raise InvalidRegularExpression("the pattern is too large")
        self.steps.append([])
        self.skips.append([])
        return len(self.steps) - 1

    def closure(self, states: Iterable[int], before: str, after: str) -> frozenset[int]:
        found = set(states)
        pending = list(found)
        while pending:
            for skip in self.skips[pending.pop()]:
                if skip.target not in found and (skip.holds is None or skip.holds(before, after)):
                    found.add(skip.target)
                    pending.append(skip.target)
        return frozenset(found)

    def move(self, states: Iterable[int], character: str) -> frozenset[int]:
        return frozenset(
            step.target for state in states for step in self.steps[state] if step.accepts(character)
        )


def _compile(pattern: str) -> _Automaton:
    # Python's own parser, which its type information does not list.
    codes: Any = import_module("re._constants")
    parser: Any = import_module("re._parser")

    if len(pattern) > PATTERN_LENGTH_MAX:
        raise _refusal(pattern, f"it is longer than {PATTERN_LENGTH_MAX} characters")
    try:
        parsed = parser.parse(_in_python(pattern))
    except (re.error, OverflowError, RecursionError) as error:
        raise _refusal(pattern, str(error)) from None
    automaton = _Automaton()
    try:
        automaton.end = _Builder(automaton, codes).build(
            list(parsed), automaton.start, parsed.state.flags
        )
    except (_Unsupported, RecursionError, InvalidRegularExpression) as error:
        raise _refusal(pattern, str(error)) from None
    return automaton


def _in_python(pattern: str) -> str:
    r"""RE2 writes the end of the text `\z`; Python `\Z`."""
    return re.sub(r"((?:^|[^\\])(?:\\\\)*)\\z", r"\1\\Z", pattern)


def _refusal(pattern: str, reason: str) -> InvalidRegularExpression:
    return InvalidRegularExpression(
        f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {reason}."
    )


class _Unsupported(Exception):
    """Something that Python's patterns have and RE2's have not."""


class _Builder:
    """Adds the states of a parsed pattern to an automaton."""

    def __init__(self, automaton: _Automaton, codes: Any) -> None:
        self.automaton = automaton
        self.codes = codes

    def build(self, items: Sequence[tuple[Any, Any]], start: int, flags: int) -> int:
        """Lay out a sequence from `start` on, and say where it ends."""
        for operation, argument in items:
            start = self._one(operation, argument, start, flags)
        return start

    def _one(self, operation: Any, argument: Any, start: int, flags: int) -> int:
        codes = self.codes
        if operation in (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN):
            end = self.automaton.state()
            accepts = _accepts(codes, operation, argument, flags)
            self.automaton.steps[start].append(_Step(accepts, end))
            return end
        if operation is codes.BRANCH:
            return self._branch(argument[1], start, flags)
        if operation is codes.SUBPATTERN:
            _, added, removed, items = argument
            return self.build(list(items), start, (flags | added) & ~removed)
        if operation in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            low, high, items = argument
            return self._repeat(list(items), low, high, start, flags)
        if operation is codes.AT:
            return self._at(argument, start, flags)
        raise _Unsupported(f"{str(operation).lower()} is not supported")

    def _branch(self, choices: Iterable[Any], start: int, flags: int) -> int:
        end = self.automaton.state()
        for choice in choices:
            begin = self.automaton.state()
            self._skip(start, begin)
            self._skip(self.build(list(choice), begin, flags), end)
        return end

    def _repeat(self, items: list[Any], low: int, high: Any, start: int, flags: int) -> int:
        endless = high is self.codes.MAXREPEAT
        if low > _REPEAT_MAX or (not endless and high > _REPEAT_MAX):
            raise _Unsupported(f"more than {_REPEAT_MAX} repetitions")
        for _ in range(low):
            start = self.build(items, start, flags)
        end = self.automaton.state()
        self._skip(start, end)
        if endless:
            loop = self.automaton.state()
            self._skip(start, loop)
            last = self.build(items, loop, flags)
            self._skip(last, loop)
            self._skip(last, end)
            return end
        for _ in range(high - low):
            start = self.build(items, start, flags)
            self._skip(start, end)
        return end

    def _at(self, place: Any, start: int, flags: int) -> int:
        codes = self.codes
        by_lines = bool(flags & re.MULTILINE)
        tests: dict[Any, Callable[[str, str], bool]] = {
            codes.AT_BEGINNING: lambda before, after: not before or (by_lines and before == "\n"),
            codes.AT_BEGINNING_STRING: lambda before, after: not before,
            codes.AT_END: lambda before, after: not after or (by_lines and after == "\n"),
            codes.AT_END_STRING: lambda before, after: not after,
            codes.AT_BOUNDARY: lambda before, after: _is_word(before) != _is_word(after),
            codes.AT_NON_BOUNDARY: lambda before, after: _is_word(before) == _is_word(after),
        }
        end = self.automaton.state()
        self.automaton.looks_around = True
        self.automaton.skips[start].append(_Skip(end, tests[place]))
        return end

    def _skip(self, start: int, end: int) -> None:
        self.automaton.skips[start].append(_Skip(end))


def _accepts(codes: Any, operation: Any, argument: Any, flags: int) -> Accepts:
    """The test of one character; RE2's classes are those of ASCII."""
    if operation is codes.ANY:
        return (lambda one: True) if flags & re.DOTALL else (lambda one: one != "\n")
    if operation in (codes.LITERAL, codes.NOT_LITERAL):
        negated = operation is codes.NOT_LITERAL
        source = f"[{'^' if negated else ''}{re.escape(chr(argument))}]"
    else:
        source = f"[{''.join(_class_item(codes, *item) for item in argument)}]"
    one_character = re.compile(source, re.ASCII | (flags & re.IGNORECASE))
    return lambda one: one_character.match(one) is not None


def _class_item(codes: Any, operation: Any, argument: Any) -> str:
    if operation is codes.NEGATE:
        return "^"
    if operation is codes.LITERAL:
        return re.escape(chr(argument))
    if operation is codes.RANGE:
        return f"{re.escape(chr(argument[0]))}-{re.escape(chr(argument[1]))}"
    letters = {
        codes.CATEGORY_DIGIT: r"\d",
        codes.CATEGORY_NOT_DIGIT: r"\D",
        codes.CATEGORY_SPACE: r"\s",
        codes.CATEGORY_NOT_SPACE: r"\S",
        codes.CATEGORY_WORD: r"\w",
        codes.CATEGORY_NOT_WORD: r"\W",
    }
    return letters[argument]


def _is_word(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character == "_")
