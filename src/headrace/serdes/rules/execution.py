"""Which rules of a contract apply to a value, in which order, and what follows if one fails."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from headrace.errors import HeadraceError
from headrace.serdes.contracts import Rule, RuleMode, RuleSet
from headrace.serdes.rules.executors import Function, Subject, run_rule


class Direction(Enum):
    """On its way out, or up to a newer version, a value meets rules first to last; else back."""

    WRITE = (RuleMode.WRITE, RuleMode.WRITEREAD)
    READ = (RuleMode.READ, RuleMode.WRITEREAD)
    UPGRADE = (RuleMode.UPGRADE, RuleMode.UPDOWN)
    DOWNGRADE = (RuleMode.DOWNGRADE, RuleMode.UPDOWN)

    @property
    def is_migration(self) -> bool:
        """From one version of a schema to another."""
        return self in (Direction.UPGRADE, Direction.DOWNGRADE)

    @property
    def goes_back(self) -> bool:
        """Rules undo what those after them did, so the last one is first."""
        return self in (Direction.READ, Direction.DOWNGRADE)


class RuleFailed(HeadraceError):
    """A value that a rule of its schema does not let pass."""

    def __init__(self, rule: Rule, reason: BaseException) -> None:
        super().__init__(f"rule {rule.name}: {reason}")
        self.rule = rule


@dataclass(frozen=True, slots=True)
class Failure:
    """What an action is told: the rule, the value, and why it did not pass."""

    rule: Rule
    value: Any
    error: RuleFailed


Action = Callable[[Failure], None]
"""What a rule's `onFailure` names, as `DLQ`; the value is refused when it has returned."""


@dataclass(frozen=True, slots=True)
class RuleEngine:
    """Applies rules; functions and actions are what the program gives names to."""

    functions: Mapping[str, Function]
    actions: Mapping[str, Action]

    def apply(self, rules: RuleSet, direction: Direction, subject: Subject, value: Any) -> Any:
        """The value as the rules leave it."""
        listed = (rules.migration_rules if direction.is_migration else rules.domain_rules) or []
        for rule in reversed(listed) if direction.goes_back else listed:
            if not rule.disabled and (rule.mode or RuleMode.WRITEREAD) in direction.value:
                value = self._after(rule, direction, subject, value)
        return value

    def _after(self, rule: Rule, direction: Direction, subject: Subject, value: Any) -> Any:
        try:
            return run_rule(rule, subject, value, self.functions)
        except Exception as error:  # Functions may raise what they like: the rule has failed.
            failed = RuleFailed(rule, error)
            self._fail(rule, direction, value, failed)
            return value

    def _fail(self, rule: Rule, direction: Direction, value: Any, failed: RuleFailed) -> None:
        """Raises, unless the rule says that nothing shall come of it."""
        name = action_of(rule.on_failure, rule.mode, direction)
        if name == "NONE":
            return
        action = self.actions.get(name)
        if action is not None:
            action(Failure(rule, value, failed))
        elif name != "ERROR":
            failed.add_note(f"there is no action {name} (actions={{...}}), so it is an error")
        raise failed from failed.__context__


def action_of(text: str | None, mode: RuleMode | None, direction: Direction) -> str:
    """Rules for both ways may name an action for each: `ERROR,NONE` for writing and for reading."""
    names = (text or "ERROR").split(",")
    if len(names) > 1 and (mode or RuleMode.WRITEREAD) in (RuleMode.WRITEREAD, RuleMode.UPDOWN):
        return names[1 if direction.goes_back else 0].strip() or "ERROR"
    return names[0].strip() or "ERROR"
