"""Runs a rule by its type: CEL over a message or a field, or a Python function by name.

A guard and a semicolon may precede an expression; if the guard is false the rule does not apply.
Python functions come from the program itself; text from a registry is never run as Python.
"""

import datetime
import decimal
import uuid
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Protocol

from headrace.errors import HeadraceError
from headrace.schema_clients.rules.fields import SCALARS, FieldFacts, tags_by_path
from headrace.serdes.contracts import Rule, RuleKind

PYTHON = "PYTHON"
PYTHON_FIELD = "PYTHON_FIELD"
CEL = "CEL"
CEL_FIELD = "CEL_FIELD"

_PROGRAMS_MAX = 1_000


class InvalidRule(HeadraceError):
    """A rule that cannot be executed."""


class ConditionFailed(HeadraceError):
    """A value does not meet a condition."""


class Subject(Protocol):
    """The value that rules are applied to, for any schema type."""

    @property
    def tags(self) -> Mapping[str, list[str]]: ...

    def message(self, value: Any) -> Any:
        """Return the value as rules see it: dicts, lists and scalars."""
        ...

    def visit(self, value: Any, visit: Callable[[FieldFacts, Any], Any]) -> Any: ...

    def replaced(self, value: Any, by: Any) -> Any:
        """Return the value with a rule's result in its place."""
        ...


Function = Callable[..., Any]
"""Receives a value; a field rule's function receives a field's value and its `FieldFacts`."""


def run_rule(rule: Rule, subject: Subject, value: Any, functions: Mapping[str, Function]) -> Any:
    """Return the value after one rule; raise `ConditionFailed` if the rule rejects it."""
    match rule.type:
        case "CEL":
            return _outcome(rule, subject, value, _on_message(rule, subject, value))
        case "PYTHON":
            function = _function(rule, functions)
            return _outcome(rule, subject, value, function(subject.message(value)))
        case "CEL_FIELD":
            message = _cel_value(subject.message(value))
            return _by_field(
                rule, subject, value, lambda facts, one: _on_field(rule, facts, one, message)
            )
        case "PYTHON_FIELD":
            function = _function(rule, functions)
            return _by_field(rule, subject, value, lambda facts, one: function(one, facts))
    raise InvalidRule(
        f"rule {rule.name}: unknown type {rule.type}; the types are {CEL}, {CEL_FIELD}, {PYTHON}"
        f" and {PYTHON_FIELD}"
    )


class _DoesNotApply:
    """The result if a guard skipped the rule."""


_NOT_APPLIED = _DoesNotApply()


def _outcome(rule: Rule, subject: Subject, value: Any, result: Any) -> Any:
    if result is _NOT_APPLIED:
        return value
    if rule.kind is RuleKind.CONDITION:
        if result is not True:
            raise ConditionFailed(f"the value does not meet {rule.expr}")
        return value
    return subject.replaced(value, result)


def _by_field(
    rule: Rule, subject: Subject, value: Any, run: Callable[[FieldFacts, Any], Any]
) -> Any:
    wanted = frozenset(rule.tags or ())

    def visit(facts: FieldFacts, content: Any) -> Any:
        tags = facts.tags | tags_by_path(subject.tags, facts.full_name)
        if facts.type_name not in SCALARS or (wanted and wanted.isdisjoint(tags)):
            return content
        found = FieldFacts(facts.full_name, facts.name, facts.type_name, tags)
        result = run(found, content)
        if result is _NOT_APPLIED:
            return content
        if rule.kind is RuleKind.CONDITION:
            if result is not True:
                raise ConditionFailed(f"the field {facts.full_name} does not meet {rule.expr}")
            return content
        return result

    changed = subject.visit(value, visit)
    return value if rule.kind is RuleKind.CONDITION else changed


def _on_message(rule: Rule, subject: Subject, value: Any) -> Any:
    return _guarded(rule, {"message": _cel_value(subject.message(value))})


def _on_field(rule: Rule, facts: FieldFacts, content: Any, message: Any) -> Any:
    return _guarded(
        rule,
        {
            "value": _cel_value(content),
            "fullName": facts.full_name,
            "name": facts.name,
            "typeName": facts.type_name,
            "tags": sorted(facts.tags),
            "message": message,
        },
    )


def _guarded(rule: Rule, known: dict[str, Any]) -> Any:
    guard, separator, expression = (rule.expr or "").rpartition(";")
    if separator and _evaluated(rule, guard.strip(), known) is not True:
        return _NOT_APPLIED
    return _evaluated(rule, expression.strip(), known)


def _evaluated(rule: Rule, expression: str, known: dict[str, Any]) -> Any:
    try:
        return _program(expression).execute(known)
    except (ValueError, RuntimeError, TypeError, LookupError) as error:
        raise InvalidRule(f"rule {rule.name}: {expression} failed: {error}") from error


@lru_cache(_PROGRAMS_MAX)
def _program(expression: str) -> Any:
    import cel

    return cel.compile(expression)


def _cel_value(value: Any) -> Any:
    """Convert dates, decimals and UUIDs, which CEL lacks, to timestamps, numbers and texts."""
    match value:
        case dict():
            return {key: _cel_value(one) for key, one in value.items()}
        case list() | tuple():
            return [_cel_value(one) for one in value]
        case datetime.datetime():
            return value
        case datetime.date():
            return datetime.datetime(value.year, value.month, value.day, tzinfo=datetime.UTC)
        case decimal.Decimal():
            return float(value)
        case uuid.UUID() | datetime.time():
            return str(value)
    return value


def _function(rule: Rule, functions: Mapping[str, Function]) -> Function:
    found = functions.get((rule.expr or "").strip())
    if found is None:
        known = ", ".join(sorted(functions)) or "none"
        raise InvalidRule(
            f"rule {rule.name} needs the function {rule.expr}, which is missing in"
            f" functions={{...}}; given: {known}"
        )
    return found
