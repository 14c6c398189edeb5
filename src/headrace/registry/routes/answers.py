"""Bodies of answers, in the shapes of Confluent's registry."""

from typing import Any

import msgspec

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
    """A schema and one of its versions; an answer by guid has no version."""

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
    """The id of a registered schema; the schema too if it differs from the request.

    Confluent's clients cache the schema of this answer in place of their own, which may have
    another form, such as Protobuf's descriptors as bytes.
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
    """Attributes of the deployment; Confluent's registry has none by default either."""

    attributes: list[str]


class ContextIdAnswer(msgspec.Struct, frozen=True):
    context: str
    id: int


def schema_answer(entry: Entry, text: str | None = None) -> SchemaAnswer:
    value = entry.value
    return SchemaAnswer(version=value.version, id=value.id, aliases=None, **_shared(entry, text))


def schema_by_id(entry: Entry, text: str | None = None, max_id: int | None = None) -> SchemaById:
    return SchemaById(version=entry.value.version, max_id=max_id, **_shared(entry, text))


def _shared(entry: Entry, text: str | None) -> dict[str, Any]:
    value = entry.value
    return {
        "subject": value.subject,
        "guid": entry.guid,
        "schema_type": value.schema_type,
        "references": value.references,
        "metadata": value.metadata,
        "rules": value.rules,
        "schema": value.schema if text is None else text,
        "ts": entry.timestamp_ms,
        "deleted": value.deleted,
    }


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


def config_answer(config: ConfigValue) -> ConfigValue:
    """Return the settings without their subject, as GET and DELETE answer."""
    return msgspec.structs.replace(config, subject=None)


def config_echo(config: ConfigValue) -> dict[str, object]:
    """Return the settings as PUT answers: the level has the name that it has in requests."""
    shown = msgspec.to_builtins(config_answer(config))
    if "compatibilityLevel" in shown:
        shown["compatibility"] = shown.pop("compatibilityLevel")
    found: dict[str, object] = shown
    return found


def qualified_references(entry: Entry) -> list[Reference] | None:
    """Return references whose subjects name their context."""
    value = entry.value
    if context_of(value.subject) == DEFAULT_CONTEXT:
        return value.references
    return [
        Reference(one.name, str(qualified_by(value.subject, one.subject or "")), one.version)
        for one in value.references or ()
    ] or None
