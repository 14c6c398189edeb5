"""Filters of records: small expressions in CEL over the parts of a record.

`value.amount > 100 && headers.region == "eu"`. Only listed functions are allowed, and none that
iterates over lists, so the time per record is bounded by the lengths of expression and record.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Protocol

from headrace.rest.errors import RestError, bad_request

VARIABLES = ("key", "value", "headers", "topic", "partition", "offset", "timestamp")

_LENGTH_MAX = 1_000
_SUMS_MAX = 8
"""Maximum number of concatenations, which make texts longer."""
_PROGRAMS_MAX = 256
_FUNCTIONS = frozenset(
    {
        *("contains", "startsWith", "endsWith", "matches", "size", "has"),
        *("int", "uint", "double", "string", "bool", "bytes"),
    }
)
_MACROS = re.compile(r"\b(all|exists|exists_one|existsOne|map|filter|reduce|sortBy)\s*\(")
_NAME = re.compile(r"[A-Za-z]\w*")
_FAILURES = (ValueError, RuntimeError, TypeError, LookupError, ArithmeticError)


class _Program(Protocol):
    def execute(self, context: dict[str, Any]) -> Any: ...


class Filter:
    """A valid expression."""

    def __init__(self, text: str, program: _Program) -> None:
        self.text = text
        self._program = program

    def accepts(self, record: Mapping[str, Any]) -> bool:
        """Return whether the expression is true; an error, such as a missing field, is false."""
        try:
            return self._program.execute(dict(record)) is True
        except _FAILURES:
            return False


@lru_cache(_PROGRAMS_MAX)
def compiled(text: str) -> Filter:
    """Compile an expression, or raise the reason why it is invalid."""
    try:
        import cel
    except ImportError:
        raise RestError(
            501, 501, "filters need the package common-expression-language on the proxy"
        ) from None
    _check_text(text)
    try:
        program = cel.compile(text)
    except _FAILURES as error:
        raise _wrong(str(error).partition(": ERROR: ")[2] or str(error)) from None
    _check_names(program.variables(), program.functions())
    return Filter(text, program)


def _check_text(text: str) -> None:
    if not text.strip() or len(text) > _LENGTH_MAX:
        raise _wrong(f"it has {len(text)} characters; 1 to {_LENGTH_MAX} are allowed")
    if (found := _MACROS.search(text)) is not None:
        raise _wrong(f"{found[1]}() iterates over lists, which is not allowed")
    if text.count("+") > _SUMS_MAX:
        raise _wrong(f"it has more than {_SUMS_MAX} operators +")


def _check_names(variables: list[str], functions: list[str]) -> None:
    for name in variables:
        if name not in VARIABLES:
            raise _wrong(f"{name[:40]!r} is unknown; variables are {', '.join(VARIABLES)}")
    for name in functions:
        if _NAME.fullmatch(name) and name not in _FUNCTIONS:
            allowed = ", ".join(sorted(_FUNCTIONS))
            raise _wrong(f"{name[:40]}() is not allowed; functions are {allowed}")


def _wrong(reason: str) -> RestError:
    return bad_request(f"the filter is invalid: {reason[:300]}")
