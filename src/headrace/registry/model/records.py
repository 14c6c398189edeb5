"""The records of `_schemas`: JSON keys and values with Confluent's fields in Confluent's order.

A topic of Confluent's registry works here unchanged, and the other way round. The records of
schemas are in `serdes/schema_records.py`, because brokers read them too.
"""

from enum import StrEnum

import msgspec

from headrace.registry.compatibility.levels import Level, Policy
from headrace.serdes.contracts import Metadata, RuleSet
from headrace.serdes.schema_records import (
    ClearSubjectKey,
    ClearSubjectValue,
    DeleteSubjectKey,
    DeleteSubjectValue,
    Key,
    SchemaKey,
    SchemaValue,
    decoder_of,
)


class Mode(StrEnum):
    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    IMPORT = "IMPORT"
    FORWARD = "FORWARD"

    @property
    def is_read_only(self) -> bool:
        return self in (Mode.READONLY, Mode.READONLY_OVERRIDE)

    @property
    def takes_ids(self) -> bool:
        """True if schemas are registered with the ids of another registry."""
        return self in (Mode.IMPORT, Mode.FORWARD)


class ConfigKey(Key, frozen=True, tag="CONFIG"):
    subject: str | None = None
    magic: int = msgspec.field(default_factory=int)


class ModeKey(Key, frozen=True, tag="MODE"):
    subject: str | None = None
    magic: int = msgspec.field(default_factory=int)


class ContextKey(Key, frozen=True, tag="CONTEXT"):
    tenant: str = msgspec.field(default_factory=lambda: "default")
    context: str = ""
    magic: int = msgspec.field(default_factory=int)


class NoopKey(Key, frozen=True, tag="NOOP"):
    magic: int = msgspec.field(default_factory=int)


def config_name(field: str) -> str:
    """Return Confluent's name of a setting."""
    first, *others = field.split("_")
    name = first + "".join(map(str.capitalize, others))
    return {"defaultRules": "defaultRuleSet", "overrideRules": "overrideRuleSet"}.get(name, name)


class ConfigValue(msgspec.Struct, frozen=True, omit_defaults=True, rename=config_name):
    """Settings of a subject, a context, or all; unset ones have the value of the wider scope."""

    subject: str | None = None
    alias: str | None = None
    alias_for_deks: str | None = None
    normalize: bool | None = None
    validate_fields: bool | None = None
    validate_new_schemas: bool | None = None
    validate_rules: bool | None = None
    compatibility_level: Level | None = None
    compatibility_policy: str | None = None
    compatibility_group: str | None = None
    default_metadata: Metadata | None = None
    override_metadata: Metadata | None = None
    default_rules: RuleSet | None = None
    override_rules: RuleSet | None = None

    @property
    def policy(self) -> Policy:
        """The policy; the default if another registry stored an unknown one."""
        name = (self.compatibility_policy or "").upper()
        return Policy(name) if name in Policy.__members__ else Policy.STRICT

    @property
    def has_defaults_or_overrides(self) -> bool:
        return any(
            part is not None
            for part in (
                self.default_metadata,
                self.override_metadata,
                self.default_rules,
                self.override_rules,
            )
        )


class ModeValue(msgspec.Struct, frozen=True, omit_defaults=True):
    subject: str | None = None
    mode: Mode = msgspec.field(default_factory=lambda: Mode.READWRITE)


class ContextValue(msgspec.Struct, frozen=True, omit_defaults=True):
    tenant: str = msgspec.field(default_factory=lambda: "default")
    context: str = ""


AnyKey = SchemaKey | ConfigKey | ModeKey | DeleteSubjectKey | ClearSubjectKey | ContextKey | NoopKey
AnyValue = (
    SchemaValue | ConfigValue | ModeValue | DeleteSubjectValue | ClearSubjectValue | ContextValue
)


class Change(msgspec.Struct, frozen=True):
    """A record to write or replay; without a value it deletes its key."""

    key: AnyKey
    value: AnyValue | None = None

    def encoded(self) -> tuple[bytes, bytes | None]:
        value = None if self.value is None else msgspec.json.encode(self.value)
        return msgspec.json.encode(self.key), value


_decode = decoder_of(
    {
        SchemaKey: SchemaValue,
        ConfigKey: ConfigValue,
        ModeKey: ModeValue,
        DeleteSubjectKey: DeleteSubjectValue,
        ClearSubjectKey: ClearSubjectValue,
        ContextKey: ContextValue,
        NoopKey: None,
    }
)


def decoded(key: bytes | None, value: bytes | None) -> Change:
    """Decode a record."""
    return Change(*_decode(key, value))
