"""Applies the contract of a schema to values that a serializer writes or reads."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from headrace.schema_clients.formats import Format
from headrace.schema_clients.registry_client import RegistryUnavailable, SubjectVersion
from headrace.schema_clients.rules.execution import Direction, RuleEngine
from headrace.schema_clients.rules.executors import Subject
from headrace.schema_clients.rules.fields import Visit, VisitFields
from headrace.serdes.contracts import Metadata, RuleSet

Parsed = TypeVar("Parsed")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PlainSubject(Generic[Parsed]):
    """Values that are already dicts, lists and scalars."""

    schema: Parsed
    tags: Mapping[str, list[str]]
    visit_fields: VisitFields[Parsed]

    def message(self, value: Any) -> Any:
        return value

    def visit(self, value: Any, visit: Visit) -> Any:
        return self.visit_fields(self.schema, value, visit)

    def replaced(self, value: Any, by: Any) -> Any:
        return by


@dataclass(frozen=True, slots=True)
class Contract:
    """The rules of one schema and the values that they apply to."""

    rules: RuleSet
    subject: Subject
    engine: RuleEngine

    def on_write(self, value: Any) -> Any:
        return self.engine.apply(self.rules, Direction.WRITE, self.subject, value)

    def on_read(self, value: Any) -> Any:
        return self.engine.apply(self.rules, Direction.READ, self.subject, value)


def contract_of(
    version: SubjectVersion | None, format: Format[Parsed], schema: Parsed, engine: RuleEngine
) -> Contract | None:
    """Return the contract of a version; None without rules for single values."""
    if version is None or not version.rule_set:
        return None
    rules, metadata = rules_of(version), _converted(version.metadata, Metadata)
    if not rules.domain_rules:
        return None
    return Contract(rules, format.ruled(schema, metadata.tags or {}), engine)


def rules_of(version: SubjectVersion) -> RuleSet:
    return _converted(version.rule_set, RuleSet)


def _converted(given: dict[str, Any] | None, type: type[T]) -> T:
    try:
        return msgspec.convert(given or {}, type)
    except msgspec.ValidationError as error:
        raise RegistryUnavailable(f"the registry returned invalid rules: {error}") from error
