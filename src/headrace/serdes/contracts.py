"""Data contracts: the metadata and rules of a schema.

The fields, their order and the omission of empty ones are Confluent's: fingerprints and the records
of `_schemas` depend on them.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any

import msgspec

CONFLUENT_VERSION = "confluent:version"
CONFLUENT_RESERVED = "confluent:reserved"

_NAME_LENGTH_MAX = 256


class RuleKind(StrEnum):
    TRANSFORM = "TRANSFORM"
    CONDITION = "CONDITION"


class RuleMode(StrEnum):
    UPGRADE = "UPGRADE"
    DOWNGRADE = "DOWNGRADE"
    UPDOWN = "UPDOWN"
    WRITE = "WRITE"
    READ = "READ"
    WRITEREAD = "WRITEREAD"


_MIGRATION_MODES = (RuleMode.UPGRADE, RuleMode.DOWNGRADE, RuleMode.UPDOWN)
_TWOFOLD_MODES = (RuleMode.UPDOWN, RuleMode.WRITEREAD)


class InvalidRules(ValueError):
    """An invalid set of rules; the message has the rule and the reason."""


class Reference(msgspec.Struct, frozen=True, omit_defaults=True):
    """Another schema that a schema needs, with its name there."""

    name: str | None = None
    subject: str | None = None
    version: int | None = None


class Metadata(msgspec.Struct, frozen=True, omit_defaults=True):
    """Metadata of a schema: tags by path, properties, and the sensitive properties."""

    tags: dict[str, list[str]] | None = None
    properties: dict[str, str] | None = None
    sensitive: list[str] | None = None

    def sorted(self) -> "Metadata":
        """Return the metadata in the canonical order of storage and comparison."""
        tags = {path: _sorted_set(names) for path, names in sorted((self.tags or {}).items())}
        properties = dict(sorted((self.properties or {}).items()))
        return Metadata(tags or None, properties or None, _sorted_set(self.sensitive) or None)

    @property
    def confluent_version(self) -> str | None:
        return (self.properties or {}).get(CONFLUENT_VERSION)

    def with_confluent_version(self, version: int) -> "Metadata":
        properties = {**(self.properties or {}), CONFLUENT_VERSION: str(version)}
        return Metadata(self.tags, properties, self.sensitive).sorted()

    def without_confluent_version(self) -> "Metadata":
        properties = {
            name: value
            for name, value in (self.properties or {}).items()
            if name != CONFLUENT_VERSION
        }
        return Metadata(self.tags, properties or None, self.sensitive)


class Rule(msgspec.Struct, frozen=True, omit_defaults=True):
    """A condition on values, or a change of values."""

    name: str | None = None
    doc: str | None = None
    kind: RuleKind | None = None
    mode: RuleMode | None = None
    type: str | None = None
    tags: list[str] | None = None
    params: dict[str, str] | None = None
    expr: str | None = None
    on_success: str | None = msgspec.field(default=None, name="onSuccess")
    on_failure: str | None = msgspec.field(default=None, name="onFailure")
    # A factory, since values equal to a plain default would be omitted.
    disabled: bool = msgspec.field(default_factory=bool)

    def sorted(self) -> "Rule":
        return msgspec.structs.replace(
            self,
            kind=self.kind or RuleKind.TRANSFORM,
            mode=self.mode or RuleMode.WRITEREAD,
            tags=_sorted_set(self.tags) or None,
            params=dict(sorted((self.params or {}).items())) or None,
        )


class RuleSet(msgspec.Struct, frozen=True, omit_defaults=True):
    """The rules of a schema, by the time of their application."""

    migration_rules: list[Rule] | None = msgspec.field(default=None, name="migrationRules")
    domain_rules: list[Rule] | None = msgspec.field(default=None, name="domainRules")
    encoding_rules: list[Rule] | None = msgspec.field(default=None, name="encodingRules")
    enable_at: str | None = msgspec.field(default=None, name="enableAt")

    def sorted(self) -> "RuleSet":
        return RuleSet(
            _sorted_rules(self.migration_rules),
            _sorted_rules(self.domain_rules),
            _sorted_rules(self.encoding_rules),
            self.enable_at,
        )

    @property
    def rules(self) -> list[Rule]:
        """All rules, in their order in a fingerprint."""
        groups = (self.migration_rules, self.domain_rules, self.encoding_rules)
        return [rule for group in groups for rule in group or ()]

    def has_type(self, type: str) -> bool:
        return any(rule.type == type for rule in self.rules)


def check_rules(rules: RuleSet) -> None:
    """Raise `InvalidRules` unless every rule has a unique name, a type and a valid mode."""
    names: set[str] = set()
    groups = (
        ("Migration", rules.migration_rules, True),
        ("Domain", rules.domain_rules, False),
        ("Encoding", rules.encoding_rules, False),
    )
    for kind, group, is_migration in groups:
        for rule in group or ():
            _check_rule(rule)
            assert rule.name is not None
            if rule.name in names:
                raise InvalidRules(f"Found rule with duplicate name '{rule.name}'")
            names.add(rule.name)
            if ((rule.mode or RuleMode.WRITEREAD) in _MIGRATION_MODES) != is_migration:
                allowed = "UPGRADE, DOWNGRADE, UPDOWN" if is_migration else "WRITE, READ, WRITEREAD"
                raise InvalidRules(f"{kind} rules can only be {allowed}")


def merged_metadata(old: Metadata | None, new: Metadata | None) -> Metadata | None:
    """Merge both; the newer value wins."""
    if old is None or new is None:
        return new or old
    return Metadata(
        {**(old.tags or {}), **(new.tags or {})},
        {**(old.properties or {}), **(new.properties or {})},
        [*(old.sensitive or ()), *(new.sensitive or ())],
    ).sorted()


def merged_rules(old: RuleSet | None, new: RuleSet | None) -> RuleSet | None:
    """Merge both; a newer rule replaces an older one of the same name."""
    if old is None or new is None:
        return new or old
    return RuleSet(
        _merged(old.migration_rules, new.migration_rules),
        _merged(old.domain_rules, new.domain_rules),
        _merged(old.encoding_rules, new.encoding_rules),
        new.enable_at or old.enable_at,
    )


def is_same_contract(one: Any, other: Any) -> bool:
    """Return whether metadata or rules are equal; missing ones differ from empty ones."""
    if one is None or other is None:
        return one is other
    return bool(one.sorted() == other.sorted())


def _check_rule(rule: Rule) -> None:
    if rule.name is None:
        raise InvalidRules("Missing rule name")
    if not rule.name:
        raise InvalidRules("Empty rule name")
    if len(rule.name) > _NAME_LENGTH_MAX:
        raise InvalidRules("Rule name too long")
    if not (rule.name[0].isalpha() or rule.name[0] == "_"):
        raise InvalidRules(f"Illegal initial character in rule name: {rule.name}")
    if not all(letter.isalnum() or letter in "_-" for letter in rule.name[1:]):
        raise InvalidRules(f"Illegal character in rule name: {rule.name}")
    if rule.type is None:
        raise InvalidRules(f"Missing rule type of rule '{rule.name}'")
    actions = (rule.on_success or "", rule.on_failure or "")
    is_twofold = (rule.mode or RuleMode.WRITEREAD) in _TWOFOLD_MODES
    if not is_twofold and any("," in action for action in actions):
        raise InvalidRules("Multiple actions only valid with WRITEREAD and UPDOWN")


def _merged(old: Sequence[Rule] | None, new: Sequence[Rule] | None) -> list[Rule] | None:
    names = {rule.name for rule in new or ()}
    kept = [rule for rule in old or () if rule.name not in names]
    return [*kept, *(new or ())] or None


def _sorted_rules(rules: Sequence[Rule] | None) -> list[Rule] | None:
    return [rule.sorted() for rule in rules] if rules else None


def _sorted_set(names: Iterable[str] | None) -> list[str]:
    return sorted(set(names or ()))
