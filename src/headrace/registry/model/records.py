"""The records of `_schemas`: keys and values as JSON, field by field and in the order of Confluent.

So a topic that Confluent's registry has written is taken over as it is, and the other way round.
Those that tell of schemas are in `serdes/schema_records.py`: brokers read them, too.
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
        """Whether schemas come with the ids that another registry gave them."""
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


class ConfigValue(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is set for a subject, a context, or all; what is not set has a wider scope's value."""

    subject: str | None = None
    alias: str | None = None
    alias_for_deks: str | None = msgspec.field(default=None, name="aliasForDeks")
    normalize: bool | None = None
    validate_fields: bool | None = msgspec.field(default=None, name="validateFields")
    validate_new_schemas: bool | None = msgspec.field(default=None, name="validateNewSchemas")
    validate_rules: bool | None = msgspec.field(default=None, name="validateRules")
    compatibility_level: Level | None = msgspec.field(default=None, name="compatibilityLevel")
    compatibility_policy: str | None = msgspec.field(default=None, name="compatibilityPolicy")
    compatibility_group: str | None = msgspec.field(default=None, name="compatibilityGroup")
    default_metadata: Metadata | None = msgspec.field(default=None, name="defaultMetadata")
    override_metadata: Metadata | None = msgspec.field(default=None, name="overrideMetadata")
    default_rules: RuleSet | None = msgspec.field(default=None, name="defaultRuleSet")
    override_rules: RuleSet | None = msgspec.field(default=None, name="overrideRuleSet")

    @property
    def policy(self) -> Policy:
        """What another registry has stored may be a policy that nobody knows: then the default."""
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
    """A record to be written or replayed; without a value what the key names is gone."""

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
    """The change that a record stands for."""
    return Change(*_decode(key, value))
