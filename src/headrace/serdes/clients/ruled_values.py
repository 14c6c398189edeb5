"""The contract of a schema, applied to values on their way through a serializer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from headrace.serdes.contracts import Metadata, RuleSet
from headrace.serdes.registry_client import RegistryUnavailable, SubjectVersion
from headrace.serdes.rules.execution import Action, Direction, RuleEngine
from headrace.serdes.rules.executors import Function, Subject
from headrace.serdes.rules.fields import Visit, VisitFields

Parsed = TypeVar("Parsed")


@dataclass(frozen=True, slots=True)
class PlainSubject(Generic[Parsed]):
    """Values that are dicts, lists and scalars already."""

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
    """The rules of one schema and the values that they are for."""

    rules: RuleSet
    subject: Subject
    engine: RuleEngine

    def on_write(self, value: Any) -> Any:
        return self.engine.apply(self.rules, Direction.WRITE, self.subject, value)

    def on_read(self, value: Any) -> Any:
        return self.engine.apply(self.rules, Direction.READ, self.subject, value)


@dataclass(frozen=True, slots=True)
class Told:
    """What a registry tells of a schema's contract."""

    rules: RuleSet
    metadata: Metadata = field(default_factory=Metadata)

    @property
    def tags(self) -> Mapping[str, list[str]]:
        return self.metadata.tags or {}


def contract_told(version: SubjectVersion) -> Told | None:
    """None where there are no rules for single values."""
    if not version.rule_set:
        return None
    try:
        rules = msgspec.convert(version.rule_set, RuleSet)
        metadata = msgspec.convert(version.metadata or {}, Metadata)
    except msgspec.ValidationError as error:
        raise RegistryUnavailable(
            f"the registry tells rules that make no sense: {error}"
        ) from error
    return Told(rules, metadata) if rules.domain_rules else None


def engine_of(
    functions: Mapping[str, Function] | None, actions: Mapping[str, Action] | None
) -> RuleEngine:
    return RuleEngine(functions or {}, actions or {})
