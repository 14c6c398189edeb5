"""Expectations in short words: what rows must be like, and what becomes of those that are not.

`expect`, `expect_or_drop`, `expect_or_quarantine` and `expect_or_fail` decorate the function of a
table, above or below `@table`. A rule is an SQL condition, or what the makers here return.
"""

import math
import sys
from collections.abc import Mapping
from typing import Protocol, TypeVar

from headrace.pipelines.declaring.registry import DeclaredRule, QueryFunction, current
from headrace.pipelines.intervals import seconds_of
from headrace.pipelines.model import (
    Expectation,
    Freshness,
    RowCount,
    RowRule,
    Rule,
    TableRule,
    UniqueKey,
    Violation,
)
from headrace.pipelines.problems import PipelineError

_Function = TypeVar("_Function", bound=QueryFunction)


class Decorator(Protocol):
    """Gives back the function that it was given."""

    def __call__(self, function: _Function, /) -> _Function: ...


def not_null(*columns: str) -> RowRule:
    """None of the columns may be null."""
    if not columns:
        raise PipelineError("not_null needs the name of a column")
    return RowRule(" AND ".join(f"{quoted(column)} IS NOT NULL" for column in columns))


def between(column: str, least: object, most: object) -> RowRule:
    """The column's value must be in a range, both ends included; null is not."""
    name = quoted(column)
    return RowRule(f"{name} IS NOT NULL AND {name} BETWEEN {literal(least)} AND {literal(most)}")


def matches(column: str, pattern: str) -> RowRule:
    """The column's text must contain a match of a regular expression (Java's); null does not."""
    name = quoted(column)
    return RowRule(f"{name} IS NOT NULL AND {name} RLIKE {literal(pattern)}")


def unique(*columns: str) -> UniqueKey:
    """No two rows of the table may have the same values in these columns."""
    if not columns:
        raise PipelineError("unique needs the name of a column")
    return UniqueKey(columns)


def fresh(column: str, within: str) -> Freshness:
    """The newest time in the column may be so old, such as `5 minutes`, when a batch is written."""
    try:
        return Freshness(column, seconds_of(within))
    except ValueError as error:
        raise PipelineError(str(error)) from error


def rows(least: int = 0, most: int | None = None) -> RowCount:
    """So many rows a batch may have."""
    if least < 0 or (most is not None and most < least):
        raise PipelineError(f"no batch has at least {least} and at most {most} rows")
    return RowCount(least, most)


def of_batch(condition: str) -> TableRule:
    """A condition over aggregates of each batch, such as `avg(price) < 100`."""
    return TableRule(condition)


def expectation(name: str, rule: str | Rule, on_violation: str | Violation) -> Expectation:
    """An expectation, if what shall happen can happen: a row count has no row to drop."""
    try:
        violation = Violation(on_violation)
    except ValueError as error:
        choice = ", ".join(one.value for one in Violation)
        raise PipelineError(f"{on_violation!r} is none of {choice}") from error
    made = RowRule(rule) if isinstance(rule, str) else rule
    if isinstance(made, RowRule | TableRule) and not made.condition.strip():
        raise PipelineError(f"the expectation {name!r} has no condition")
    is_about_rows = isinstance(made, RowRule | UniqueKey)
    if not is_about_rows and violation in (Violation.DROP, Violation.QUARANTINE):
        raise PipelineError(
            f"the expectation {name!r} is about whole batches, so there are no rows to"
            f" {violation.value}; let it warn or fail"
        )
    return Expectation(name, made, violation)


def expect(name: str, rule: str | Rule) -> Decorator:
    """Rows that break the rule are kept and counted."""
    return _expecting(name, rule, Violation.WARN)


def expect_or_drop(name: str, rule: str | Rule) -> Decorator:
    """Rows that break the rule are counted and left out."""
    return _expecting(name, rule, Violation.DROP)


def expect_or_quarantine(name: str, rule: str | Rule) -> Decorator:
    """Rows that break the rule go to the quarantine table, with the rule's name."""
    return _expecting(name, rule, Violation.QUARANTINE)


def expect_or_fail(name: str, rule: str | Rule) -> Decorator:
    """A row that breaks the rule stops the flow; nothing of its batch is written."""
    return _expecting(name, rule, Violation.FAIL)


def expect_unique(*columns: str, on_violation: str = "drop", name: str | None = None) -> Decorator:
    """Of several rows with one key only the first is kept; `on_violation` may say otherwise."""
    return _expecting(name or f"unique {', '.join(columns)}", unique(*columns), on_violation)


def expect_fresh(
    column: str, within: str, *, on_violation: str = "warn", name: str | None = None
) -> Decorator:
    """The newest row may be so old when a batch is written: `expect_fresh("ts", "5 minutes")`."""
    return _expecting(name or f"fresh {column}", fresh(column, within), on_violation)


def expect_rows(
    least: int = 0,
    most: int | None = None,
    *,
    on_violation: str = "warn",
    name: str | None = None,
) -> Decorator:
    """A batch may have so many rows."""
    return _expecting(name or "number of rows", rows(least, most), on_violation)


def expect_all(rules: Mapping[str, str | Rule]) -> Decorator:
    """Several rules by name; rows that break one are kept and counted."""
    return _expecting_all(rules, Violation.WARN)


def expect_all_or_drop(rules: Mapping[str, str | Rule]) -> Decorator:
    """Several rules by name; rows that break one are left out."""
    return _expecting_all(rules, Violation.DROP)


def expect_all_or_quarantine(rules: Mapping[str, str | Rule]) -> Decorator:
    """Several rules by name; rows that break one go to the quarantine table."""
    return _expecting_all(rules, Violation.QUARANTINE)


def expect_all_or_fail(rules: Mapping[str, str | Rule]) -> Decorator:
    """Several rules by name; a row that breaks one stops the flow."""
    return _expecting_all(rules, Violation.FAIL)


def quoted(column: str) -> str:
    """A column's name in SQL; dots lead into structs, as everywhere in Spark."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in column.split("."))


def literal(value: object) -> str:
    """A Python value as an SQL literal."""
    import datetime as dt
    from decimal import Decimal

    match value:
        case bool():
            return "true" if value else "false"
        case int() | Decimal():
            return str(value)
        case float() if math.isfinite(value):
            return f"{value!r}d"
        case float():
            return f"double('{value}')"
        case dt.datetime():
            return f"timestamp '{value.isoformat(sep=' ')}'"
        case dt.date():
            return f"date '{value.isoformat()}'"
        case str():
            escaped = value.replace("\\", "\\\\").replace("'", "\\'")
            return f"'{escaped}'"
        case _:
            raise PipelineError(
                f"{value!r} cannot be written in SQL; give a number, a text or a time"
            )


def _expecting(name: str, rule: str | Rule, on_violation: str | Violation) -> Decorator:
    wanted = expectation(name, rule, on_violation)

    def decorate(function: _Function) -> _Function:
        registry = current("an expectation")
        if not callable(function) or not hasattr(function, "__code__"):
            registry.complain(
                f"the expectation {name!r} decorates no function; write it above a `def`",
                registry.place_of_call(sys._getframe(1)),
            )
            return function
        place = registry.place_of_function(function)
        registry.rules.append(DeclaredRule(function, wanted, place))
        return function

    return decorate


def _expecting_all(rules: Mapping[str, str | Rule], violation: Violation) -> Decorator:
    decorators: list[Decorator] = [
        _expecting(name, rule, violation) for name, rule in rules.items()
    ]

    def decorate(function: _Function) -> _Function:
        for decorator in reversed(decorators):  # So that they end up in the order given.
            decorator(function)
        return function

    return decorate
