"""What is answered, in the shapes that Confluent's clients read."""

from typing import Any

import msgspec

from headrace.registry.compatibility.levels import Level
from headrace.registry.deciding.registration import Registered
from headrace.registry.model.records import ConfigValue
from headrace.registry.model.state import Entry
from headrace.serdes.contracts import Metadata, Reference, RuleSet
from headrace.serdes.subject_names import DEFAULT_CONTEXT, context_of, qualified_by


class SubjectVersion(msgspec.Struct, frozen=True):
    subject: str
    version: int


class SchemaAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A version of a subject."""

    subject: str
    version: int
    id: int
    guid: str
    schema_type: str = msgspec.field(name="schemaType")
    references: list[Reference] | None = None
    metadata: Metadata | None = None
    rules: RuleSet | None = msgspec.field(default=None, name="ruleSet")
    schema: str = msgspec.field(default_factory=str)
    ts: int | None = None
    deleted: bool = msgspec.field(default_factory=bool)
    aliases: list[str] | None = None


class SchemaById(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A schema, and one of the versions that it is; a guid stands for no version."""

    subject: str | None = None
    version: int | None = None
    guid: str
    schema_type: str = msgspec.field(name="schemaType")
    schema: str
    references: list[Reference] | None = None
    metadata: Metadata | None = None
    rules: RuleSet | None = msgspec.field(default=None, name="ruleSet")
    max_id: int | None = msgspec.field(default=None, name="maxId")
    ts: int | None = None
    deleted: bool = msgspec.field(default_factory=bool)


class RegisteredAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The id that a schema has now; the schema itself if it is not what the client has sent.

    Confluent's clients keep what is answered here in the place of what they sent, and that may
    have been in another form: Protobuf's descriptors as bytes, for one.
    """

    id: int
    version: int
    guid: str
    schema_type: str | None = msgspec.field(default=None, name="schemaType")
    references: list[Reference] | None = None
    metadata: Metadata | None = None
    rules: RuleSet | None = msgspec.field(default=None, name="ruleSet")
    schema: str | None = None


class CompatibilityAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    is_compatible: bool
    messages: list[str] | None = None


class ConfigAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """Settings as GET and DELETE show them."""

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


class ModeBody(msgspec.Struct, frozen=True):
    """A mode, in requests and answers."""

    mode: str | None = None


class ServerId(msgspec.Struct, frozen=True):
    scope: dict[str, list[str] | dict[str, str]]
    id: str


class ServerVersion(msgspec.Struct, frozen=True):
    version: str
    commit_id: str = msgspec.field(name="commitId")


class Deployment(msgspec.Struct, frozen=True):
    """What whoever runs a registry says of it; Confluent's own says nothing unless told to."""

    attributes: list[str]


class ContextIdAnswer(msgspec.Struct, frozen=True):
    context: str
    id: int


def schema_answer(entry: Entry, text: str | None = None) -> SchemaAnswer:
    value = entry.value
    return SchemaAnswer(
        subject=value.subject,
        version=value.version,
        id=value.id,
        guid=entry.guid,
        schema_type=value.schema_type,
        references=value.references,
        metadata=value.metadata,
        rules=value.rules,
        schema=value.schema if text is None else text,
        ts=entry.timestamp_ms,
        deleted=value.deleted,
    )


def schema_by_id(entry: Entry, text: str | None = None, max_id: int | None = None) -> SchemaById:
    value = entry.value
    return SchemaById(
        subject=value.subject,
        version=value.version,
        guid=entry.guid,
        schema_type=value.schema_type,
        schema=value.schema if text is None else text,
        references=value.references,
        metadata=value.metadata,
        rules=value.rules,
        max_id=max_id,
        ts=entry.timestamp_ms,
        deleted=value.deleted,
    )


def registered_answer(registered: Registered, text: str | None = None) -> RegisteredAnswer:
    value = registered.value
    if text is None and not registered.is_completed:
        return RegisteredAnswer(value.id, value.version, registered.guid)
    return RegisteredAnswer(
        id=value.id,
        version=value.version,
        guid=registered.guid,
        schema_type=value.schema_type,
        references=value.references,
        metadata=value.metadata,
        rules=value.rules,
        schema=value.schema if text is None else text,
    )


def config_answer(config: ConfigValue) -> ConfigAnswer:
    return ConfigAnswer(**_settings(config))


def config_echo(config: ConfigValue) -> dict[str, object]:
    """What PUT answers: the same, with the level under the name that requests have for it."""
    shown = msgspec.to_builtins(config_answer(config))
    if "compatibilityLevel" in shown:
        shown["compatibility"] = shown.pop("compatibilityLevel")
    found: dict[str, object] = shown
    return found


def qualified_references(entry: Entry) -> list[Reference] | None:
    """References whose subjects name the context that they are in."""
    value = entry.value
    if context_of(value.subject) == DEFAULT_CONTEXT:
        return value.references
    return [
        Reference(one.name, str(qualified_by(value.subject, one.subject or "")), one.version)
        for one in value.references or ()
    ] or None


def _settings(config: ConfigValue) -> dict[str, Any]:
    shown = msgspec.structs.asdict(config)
    del shown["subject"]
    return shown
