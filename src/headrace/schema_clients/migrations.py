"""Migrates values between versions of a subject by the migration rules of these versions.

The UPGRADE rules of a version convert values of the version before it; its DOWNGRADE rules convert
them back. So a reader may have a schema to which Avro's own rules cannot project the values.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from headrace.schema_clients.registry import Registry
from headrace.schema_clients.registry_client import SubjectVersion
from headrace.schema_clients.ruled_values import PlainSubject, rules_of
from headrace.schema_clients.rules.execution import Direction, RuleEngine
from headrace.schema_clients.rules.executors import InvalidRule
from headrace.schema_clients.rules.fields import Visit
from headrace.serdes.contracts import RuleSet


def _no_fields(schema: None, value: Any, visit: Visit) -> Any:
    raise InvalidRule("migration rules see whole values: their types are CEL and PYTHON")


_WHOLE_VALUE = PlainSubject(None, {}, _no_fields)
"""Values between two versions have no schema, so their fields are unknown."""


@dataclass(frozen=True, slots=True)
class Migration:
    """The rules of each step, in the order in which they are applied."""

    steps: tuple[RuleSet, ...]
    direction: Direction
    engine: RuleEngine

    def of(self, message: Any) -> Any:
        """Return the value after the rules, in dicts, lists and scalars."""
        for rules in self.steps:
            message = self.engine.apply(rules, self.direction, _WHOLE_VALUE, message)
        return message


def migration_between(
    registry: Registry, subject: str, writer_id: int, reader: SubjectVersion, engine: RuleEngine
) -> Migration | None:
    """Return the migration from a writer's schema to the reader's version; None without rules.

    The search for the writer starts at the reader and goes backwards, as most data are older than
    their readers. Values of a writer that is not a version of the subject are projected.
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
    """Return the versions up to the one with an id; None if it is not among these."""
    passed: list[SubjectVersion] = []
    for number in numbers:
        version = registry.version(subject, number).registration
        assert version is not None, "a subject's version is complete"
        passed.append(version)
        if version.id == id_:
            return passed
    return None


def _migration(
    versions: Iterable[SubjectVersion], direction: Direction, engine: RuleEngine
) -> Migration | None:
    """Collect the rules of each version that lead to it, or from it to the version before."""
    steps = tuple(rules for rules in map(rules_of, versions) if _has_step(rules, direction))
    return Migration(steps, direction, engine) if steps else None


def _has_step(rules: RuleSet, direction: Direction) -> bool:
    return any(
        not rule.disabled and rule.mode in direction.value for rule in rules.migration_rules or ()
    )
