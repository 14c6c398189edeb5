"""The records of `_schemas`: keys and values as JSON, field by field and in the order of Confluent.

So a topic that Confluent's registry has written is taken over as it is, and the other way round.
Compaction compares the bytes of keys, which is why even their order counts.
"""

from enum import StrEnum
from typing import Any

import msgspec

from headrace.errors import HeadraceError
from headrace.registry.compatibility.levels import Level
from headrace.serdes.contracts import Metadata, Reference, RuleSet
from headrace.serdes.fingerprints import fingerprint, stored_fingerprint

AVRO = "AVRO"


class UnknownRecord(HeadraceError):
    """A record of the topic that this registry has no use for, or cannot read."""


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


class Key(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="keytype"):
    """What a record is about; the kind comes first."""


class SchemaKey(Key, frozen=True, tag="SCHEMA"):
    subject: str = ""
    version: int = msgspec.field(default_factory=int)
    magic: int = msgspec.field(default_factory=lambda: 1)

    def __str__(self) -> str:
        """As Confluent's messages write it."""
        return f"{{magic=1,keytype=SCHEMA,subject={self.subject},version={self.version}}}"


class ConfigKey(Key, frozen=True, tag="CONFIG"):
    subject: str | None = None
    magic: int = msgspec.field(default_factory=int)


class ModeKey(Key, frozen=True, tag="MODE"):
    subject: str | None = None
    magic: int = msgspec.field(default_factory=int)


class DeleteSubjectKey(Key, frozen=True, tag="DELETE_SUBJECT"):
    subject: str = ""
    magic: int = msgspec.field(default_factory=int)


class ClearSubjectKey(Key, frozen=True, tag="CLEAR_SUBJECT"):
    subject: str | None = None
    magic: int = msgspec.field(default_factory=int)


class ContextKey(Key, frozen=True, tag="CONTEXT"):
    tenant: str = msgspec.field(default_factory=lambda: "default")
    context: str = ""
    magic: int = msgspec.field(default_factory=int)


class NoopKey(Key, frozen=True, tag="NOOP"):
    magic: int = msgspec.field(default_factory=int)


class SchemaValue(msgspec.Struct, frozen=True, omit_defaults=True):
    """One version of a subject."""

    subject: str = ""
    version: int = msgspec.field(default_factory=int)
    id: int = msgspec.field(default_factory=int)
    md5: str | None = None
    schema_type: str = msgspec.field(default_factory=lambda: AVRO, name="schemaType")
    references: list[Reference] | None = None
    metadata: Metadata | None = None
    rules: RuleSet | None = msgspec.field(default=None, name="ruleSet")
    schema: str = ""
    deleted: bool = msgspec.field(default_factory=bool)

    def fingerprint(self) -> bytes:
        stored = stored_fingerprint(self.md5)
        if stored is not None:
            return stored
        return fingerprint(self.schema, self.references or (), self.metadata, self.rules)


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


class DeleteSubjectValue(msgspec.Struct, frozen=True, omit_defaults=True):
    """All versions of a subject up to this one are deleted."""

    subject: str = ""
    version: int = msgspec.field(default_factory=int)


class ClearSubjectValue(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is deleted of a subject or context is forgotten."""

    subject: str | None = None


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


_keys = msgspec.json.Decoder(AnyKey)
_values: dict[type[Key], msgspec.json.Decoder[Any]] = {
    SchemaKey: msgspec.json.Decoder(SchemaValue),
    ConfigKey: msgspec.json.Decoder(ConfigValue),
    ModeKey: msgspec.json.Decoder(ModeValue),
    DeleteSubjectKey: msgspec.json.Decoder(DeleteSubjectValue),
    ClearSubjectKey: msgspec.json.Decoder(ClearSubjectValue),
    ContextKey: msgspec.json.Decoder(ContextValue),
}


def decoded(key: bytes | None, value: bytes | None) -> Change:
    """The change that a record stands for."""
    try:
        found = _keys.decode(key or b"")
        decoder = _values.get(type(found))
        if value is None or decoder is None:
            return Change(found)
        return Change(found, decoder.decode(value))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UnknownRecord(f"key {(key or b'')[:200]!r}: {error}") from error
