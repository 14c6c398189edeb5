"""The way from one version of a subject to another, by the migration rules of those in between.

A version's UPGRADE rules make its values of those of the version before it; its DOWNGRADE rules
lead back. So a reader may have a schema that Avro's own rules cannot bring the values to.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from headrace.serdes.clients.registry import Registry
from headrace.serdes.contracts import Rule, RuleSet
from headrace.serdes.registry_client import RegistryUnavailable, SubjectVersion
from headrace.serdes.rules.execution import Direction, RuleEngine
from headrace.serdes.rules.executors import InvalidRule
from headrace.serdes.rules.fields import Visit


@dataclass(frozen=True, slots=True)
class WholeValue:
    """A value on its way between versions: it has no schema, so its fields are not known."""

    tags: Mapping[str, list[str]] = field(default_factory=dict)

    def message(self, value: Any) -> Any:
        return value

    def visit(self, value: Any, visit: Visit) -> Any:
        raise InvalidRule("migration rules see whole values: their types are CEL and PYTHON")

    def replaced(self, value: Any, by: Any) -> Any:
        return by


@dataclass(frozen=True, slots=True)
class Migration:
    """The rules of each step, in the order in which they are applied."""

    steps: tuple[RuleSet, ...]
    direction: Direction
    engine: RuleEngine

    def of(self, message: Any) -> Any:
        """The value as the rules leave it, in dicts, lists and scalars."""
        for rules in self.steps:
            message = self.engine.apply(rules, self.direction, WholeValue(), message)
        return message


def migration_between(
    registry: Registry, subject: str, writer_id: int, reader: SubjectVersion, engine: RuleEngine
) -> Migration | None:
    """How values of a writer's schema become those of the reader's version; None if as they are.

    The writer is looked for from the reader backwards first, as most data are older than their
    readers. One that is no version of the subject has no way, and is projected.
    """
    if writer_id == reader.id:
        return None
    numbers = registry.versions(subject)
    older = [number for number in reversed(numbers) if number < reader.version]
    passed = _until(registry, subject, older, writer_id)
    if passed is not None:
        return _migration(reversed([reader, *passed[:-1]]), Direction.UPGRADE, engine)
    newer = [number for number in numbers if number > reader.version]
    passed = _until(registry, subject, newer, writer_id)
    if passed is not None:
        return _migration(reversed(passed), Direction.DOWNGRADE, engine)
    return None


def _until(
    registry: Registry, subject: str, numbers: Iterable[int], id_: int
) -> list[SubjectVersion] | None:
    """The versions on the way to the one with an id; None if there is none on this way."""
    passed: list[SubjectVersion] = []
    for number in numbers:
        told = registry.version(subject, number).told
        assert told is not None, "a version of a subject is told whole"
        passed.append(told)
        if told.id == id_:
            return passed
    return None


def _migration(
    versions: Iterable[SubjectVersion], direction: Direction, engine: RuleEngine
) -> Migration | None:
    """Of each version the rules that lead to it, or from it to the one before."""
    sets = [_rules_of(version) for version in versions]
    steps = [rules for rules in sets if any(_leads(one, direction) for one in _listed(rules))]
    return Migration(tuple(steps), direction, engine) if steps else None


def _rules_of(version: SubjectVersion) -> RuleSet:
    try:
        return msgspec.convert(version.rule_set or {}, RuleSet)
    except msgspec.ValidationError as error:
        raise RegistryUnavailable(
            f"the registry tells rules that make no sense: {error}"
        ) from error


def _listed(rules: RuleSet) -> Iterable[Rule]:
    return rules.migration_rules or ()


def _leads(rule: Rule, direction: Direction) -> bool:
    return not rule.disabled and rule.mode in direction.value
