"""Selects the rules of a contract for a value, applies them in order, and handles failures."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from headrace.errors import HeadraceError
from headrace.schema_clients.rules.executors import Function, Subject, run_rule
from headrace.serdes.contracts import Rule, RuleMode, RuleSet


class Direction(Enum):
    """The direction of a value; rules run first to last on write and upgrade, reversed
    otherwise."""

    WRITE = (RuleMode.WRITE, RuleMode.WRITEREAD)
    READ = (RuleMode.READ, RuleMode.WRITEREAD)
    UPGRADE = (RuleMode.UPGRADE, RuleMode.UPDOWN)
    DOWNGRADE = (RuleMode.DOWNGRADE, RuleMode.UPDOWN)

    @property
    def is_migration(self) -> bool:
        """Return whether the value moves from one version of a schema to another."""
        return self in (Direction.UPGRADE, Direction.DOWNGRADE)

    @property
    def goes_back(self) -> bool:
        """Return whether rules run last to first, each undoing the effect of its counterpart."""
        return self in (Direction.READ, Direction.DOWNGRADE)


class RuleFailed(HeadraceError):
    """A value was rejected by a rule of its schema."""

    def __init__(self, rule: Rule, reason: BaseException) -> None:
        super().__init__(f"rule {rule.name}: {reason}")
        self.rule = rule


@dataclass(frozen=True, slots=True)
class Failure:
    """Arguments of an action: the rule, the value, and the reason."""

    rule: Rule
    value: Any
    error: RuleFailed


Action = Callable[[Failure], None]
"""Named by a rule's `onFailure`, such as `DLQ`; the value is rejected when the action returns."""


@dataclass(frozen=True, slots=True)
class RuleEngine:
    """Applies rules, with the program's functions and actions by name."""

    functions: Mapping[str, Function]
    actions: Mapping[str, Action]

    def apply(self, rules: RuleSet, direction: Direction, subject: Subject, value: Any) -> Any:
        """Return the value after all rules."""
        listed = (rules.migration_rules if direction.is_migration else rules.domain_rules) or []
        for rule in reversed(listed) if direction.goes_back else listed:
            if not rule.disabled and (rule.mode or RuleMode.WRITEREAD) in direction.value:
                value = self._after(rule, direction, subject, value)
        return value

    def _after(self, rule: Rule, direction: Direction, subject: Subject, value: Any) -> Any:
        try:
            return run_rule(rule, subject, value, self.functions)
        except Exception as error:  # User functions may raise anything.
            failed = RuleFailed(rule, error)
            self._fail(rule, direction, value, failed)
            return value

    def _fail(self, rule: Rule, direction: Direction, value: Any, failed: RuleFailed) -> None:
        """Call the rule's action and raise; NONE ignores the failure."""
        name = action_of(rule.on_failure, rule.mode, direction)
        if name == "NONE":
            return
        action = self.actions.get(name)
        if action is not None:
            action(Failure(rule, value, failed))
        elif name != "ERROR":
            failed.add_note(f"unknown action {name} in actions={{...}}: handled as ERROR")
        raise failed from failed.__context__


def action_of(text: str | None, mode: RuleMode | None, direction: Direction) -> str:
    """Return the action for a direction: `ERROR,NONE` names one to write and one to read."""
    names = (text or "ERROR").split(",")
    if len(names) > 1 and (mode or RuleMode.WRITEREAD) in (RuleMode.WRITEREAD, RuleMode.UPDOWN):
        return names[1 if direction.goes_back else 0].strip() or "ERROR"
    return names[0].strip() or "ERROR"
