"""Expectations: rules about rows, and the consequence for rows that break one.

`expect`, `expect_or_drop`, `expect_or_quarantine` and `expect_or_fail` decorate the function of a
table, above or below `@table`. A rule is an SQL condition, or built by a function of this module.
"""

import math
import sys
from collections.abc import Mapping
from typing import Protocol, TypeVar

from headrace.pipelines import model
from headrace.pipelines.declaring.intervals import seconds_of
from headrace.pipelines.declaring.registry import DeclaredRule, QueryFunction, current
from headrace.pipelines.problems import PipelineError

_Function = TypeVar("_Function", bound=QueryFunction)


class Decorator(Protocol):
    """Returns the function that it decorates."""

    def __call__(self, function: _Function, /) -> _Function: ...


def not_null(*columns: str) -> model.RowRule:
    """Require that none of the columns is null."""
    if not columns:
        raise PipelineError("not_null needs the name of a column")
    return model.RowRule(" AND ".join(f"{quoted(column)} IS NOT NULL" for column in columns))


def between(column: str, least: object, most: object) -> model.RowRule:
    """Require a value in a range, both ends included; null breaks the rule."""
    name = quoted(column)
    return model.RowRule(
        f"{name} IS NOT NULL AND {name} BETWEEN {literal(least)} AND {literal(most)}"
    )


def matches(column: str, pattern: str) -> model.RowRule:
    """Require a match of a regular expression (Java's) in the text; null breaks the rule."""
    name = quoted(column)
    return model.RowRule(f"{name} IS NOT NULL AND {name} RLIKE {literal(pattern)}")


def unique(*columns: str) -> model.UniqueKey:
    """Require that no two rows of the table have the same values in these columns."""
    if not columns:
        raise PipelineError("unique needs the name of a column")
    return model.UniqueKey(columns)


def fresh(column: str, within: str) -> model.Freshness:
    """Require a newest time not older than `5 minutes`, for example, when a batch is written."""
    try:
        return model.Freshness(column, seconds_of(within))
    except ValueError as error:
        raise PipelineError(str(error)) from error


def rows(least: int = 0, most: int | None = None) -> model.RowCount:
    """Require a number of rows in each batch."""
    if least < 0 or (most is not None and most < least):
        raise PipelineError(f"a batch cannot have at least {least} and at most {most} rows")
    return model.RowCount(least, most)


def of_batch(condition: str) -> model.TableRule:
    """Require a condition over aggregates of each batch, such as `avg(price) < 100`."""
    return model.TableRule(condition)


def expectation(
    name: str, rule: str | model.Rule, on_violation: str | model.Violation
) -> model.Expectation:
    """Return an expectation; reject consequences without a meaning: a row count drops no row."""
    try:
        violation = model.Violation(on_violation)
    except ValueError as error:
        choice = ", ".join(one.value for one in model.Violation)
        raise PipelineError(f"{on_violation!r} is unknown; it can be {choice}") from error
    made = model.RowRule(rule) if isinstance(rule, str) else rule
    if isinstance(made, model.RowRule | model.TableRule) and not made.condition.strip():
        raise PipelineError(f"the expectation {name!r} has no condition")
    is_about_rows = isinstance(made, model.RowRule | model.UniqueKey)
    if not is_about_rows and violation in (model.Violation.DROP, model.Violation.QUARANTINE):
        raise PipelineError(
            f"the expectation {name!r} is about whole batches, so there are no rows to"
            f" {violation.value}; let it warn or fail"
        )
    return model.Expectation(name, made, violation)


def expect(name: str, rule: str | model.Rule) -> Decorator:
    """Keep and count rows that break the rule."""
    return _expecting(name, rule, model.Violation.WARN)


def expect_or_drop(name: str, rule: str | model.Rule) -> Decorator:
    """Count and drop rows that break the rule."""
    return _expecting(name, rule, model.Violation.DROP)


def expect_or_quarantine(name: str, rule: str | model.Rule) -> Decorator:
    """Put rows that break the rule into the quarantine table, with the rule's name."""
    return _expecting(name, rule, model.Violation.QUARANTINE)


def expect_or_fail(name: str, rule: str | model.Rule) -> Decorator:
    """Stop the flow at a row that breaks the rule; nothing of its batch is written."""
    return _expecting(name, rule, model.Violation.FAIL)


def expect_unique(*columns: str, on_violation: str = "drop", name: str | None = None) -> Decorator:
    """Keep only the first of several rows with one key, unless `on_violation` differs."""
    return _expecting(name or f"unique {', '.join(columns)}", unique(*columns), on_violation)


def expect_fresh(
    column: str, within: str, *, on_violation: str = "warn", name: str | None = None
) -> Decorator:
    """Limit the age of the newest row of a batch: `expect_fresh("ts", "5 minutes")`."""
    return _expecting(name or f"fresh {column}", fresh(column, within), on_violation)


def expect_rows(
    least: int = 0,
    most: int | None = None,
    *,
    on_violation: str = "warn",
    name: str | None = None,
) -> Decorator:
    """Limit the number of rows of a batch."""
    return _expecting(name or "number of rows", rows(least, most), on_violation)


def expect_all(rules: Mapping[str, str | model.Rule]) -> Decorator:
    """Add several rules by name; rows that break one are kept and counted."""
    return _expecting_all(rules, model.Violation.WARN)


def expect_all_or_drop(rules: Mapping[str, str | model.Rule]) -> Decorator:
    """Add several rules by name; rows that break one are dropped."""
    return _expecting_all(rules, model.Violation.DROP)


def expect_all_or_quarantine(rules: Mapping[str, str | model.Rule]) -> Decorator:
    """Add several rules by name; rows that break one go to the quarantine table."""
    return _expecting_all(rules, model.Violation.QUARANTINE)


def expect_all_or_fail(rules: Mapping[str, str | model.Rule]) -> Decorator:
    """Add several rules by name; a row that breaks one stops the flow."""
    return _expecting_all(rules, model.Violation.FAIL)


def quoted(column: str) -> str:
    """Return a column's name in SQL; dots lead into structs, as in Spark."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in column.split("."))


def literal(value: object) -> str:
    """Return a Python value as an SQL literal."""
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


def _expecting(name: str, rule: str | model.Rule, on_violation: str | model.Violation) -> Decorator:
    wanted = expectation(name, rule, on_violation)

    def decorate(function: _Function) -> _Function:
        registry = current("an expectation")
        if not callable(function) or not hasattr(function, "__code__"):
            registry.complain(
                f"the expectation {name!r} decorates no function; write it above a `def`",
                registry.location_of_call(sys._getframe(1)),
            )
            return function
        location = registry.location_of_function(function)
        registry.rules.append(DeclaredRule(function, wanted, location))
        return function

    return decorate


def _expecting_all(rules: Mapping[str, str | model.Rule], violation: model.Violation) -> Decorator:
    decorators: list[Decorator] = [
        _expecting(name, rule, violation) for name, rule in rules.items()
    ]

    def decorate(function: _Function) -> _Function:
        for decorator in reversed(decorators):  # Keeps the given order.
            decorator(function)
        return function

    return decorate
