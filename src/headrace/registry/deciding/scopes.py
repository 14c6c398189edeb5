"""Settings and modes of a subject, a context, or all: changing them and taking them back."""

import msgspec
from msgspec import UNSET, UnsetType

from headrace.registry.compatibility.levels import Level, Policy
from headrace.registry.deciding.decisions import Decision, check_writable
from headrace.registry.errors import (
    InvalidCompatibilityLevel,
    InvalidCompatibilityPolicy,
    InvalidMode,
    InvalidRuleSet,
    NotPermitted,
    ReferenceExists,
    SubjectNotFound,
)
from headrace.registry.model.records import Change, ConfigKey, ConfigValue, Mode, ModeKey, ModeValue
from headrace.registry.model.state import State
from headrace.serdes.contracts import InvalidRules, Metadata, RuleSet, check_rules
from headrace.serdes.schema_records import ClearSubjectKey, ClearSubjectValue, SchemaKey
from headrace.serdes.subject_names import GLOBAL_CONTEXT, QualifiedSubject


class ConfigUpdate(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a client wants set; null takes a setting back, what is not there stays as it is."""

    alias: str | UnsetType | None = UNSET
    alias_for_deks: str | UnsetType | None = msgspec.field(default=UNSET, name="aliasForDeks")
    normalize: bool | UnsetType | None = UNSET
    validate_fields: bool | UnsetType | None = msgspec.field(default=UNSET, name="validateFields")
    validate_new_schemas: bool | UnsetType | None = msgspec.field(
        default=UNSET, name="validateNewSchemas"
    )
    validate_rules: bool | UnsetType | None = msgspec.field(default=UNSET, name="validateRules")
    compatibility: str | UnsetType | None = UNSET
    compatibility_level: str | UnsetType | None = msgspec.field(
        default=UNSET, name="compatibilityLevel"
    )
    """As answers call it; `compatibility` is the name in requests."""
    compatibility_policy: str | UnsetType | None = msgspec.field(
        default=UNSET, name="compatibilityPolicy"
    )
    compatibility_group: str | UnsetType | None = msgspec.field(
        default=UNSET, name="compatibilityGroup"
    )
    default_metadata: Metadata | UnsetType | None = msgspec.field(
        default=UNSET, name="defaultMetadata"
    )
    override_metadata: Metadata | UnsetType | None = msgspec.field(
        default=UNSET, name="overrideMetadata"
    )
    default_rules: RuleSet | UnsetType | None = msgspec.field(default=UNSET, name="defaultRuleSet")
    override_rules: RuleSet | UnsetType | None = msgspec.field(
        default=UNSET, name="overrideRuleSet"
    )


def check_config(update: ConfigUpdate) -> None:
    """Refuse levels that there are none of, and rules that cannot be."""
    for level in (update.compatibility, update.compatibility_level):
        if isinstance(level, str) and level.upper() not in Level.__members__:
            raise InvalidCompatibilityLevel
    policy = update.compatibility_policy
    if isinstance(policy, str) and policy.upper() not in Policy.__members__:
        raise InvalidCompatibilityPolicy(policy)
    for rules in (update.default_rules, update.override_rules):
        if isinstance(rules, RuleSet):
            check_rule_set(rules)


def check_rule_set(rules: RuleSet) -> None:
    try:
        check_rules(rules)
    except InvalidRules as error:
        raise InvalidRuleSet(str(error)) from error


def update_config(state: State, subject: str | None, update: ConfigUpdate) -> Decision[ConfigValue]:
    check_writable(state, subject)
    old = state.own_config(subject) or ConfigValue()
    given = {
        name: value for name, value in msgspec.structs.asdict(update).items() if value is not UNSET
    }
    named = [given.pop(name) for name in ("compatibility_level", "compatibility") if name in given]
    if named:
        given["compatibility_level"] = Level(named[-1].upper()) if named[-1] else None
    for name in ("default_metadata", "override_metadata", "default_rules", "override_rules"):
        if given.get(name) is not None:
            given[name] = given[name].sorted()
    new = msgspec.structs.replace(old, **given, subject=subject)
    return Decision(new, [Change(ConfigKey(subject), new)])


def delete_config(state: State, subject: str | None) -> Decision[ConfigValue]:
    """The reply is what counted until now."""
    old = state.config(subject)
    if old is None:
        raise SubjectNotFound(subject)
    check_writable(state, subject)
    return Decision(old, [Change(ConfigKey(subject))])


def parsed_mode(text: str, subject: str | None) -> Mode:
    try:
        mode = Mode(text.upper())
    except ValueError as error:
        raise InvalidMode from error
    wanted = None if subject is None else QualifiedSubject.parse(subject)
    if mode is Mode.FORWARD and wanted != (GLOBAL_CONTEXT, ""):
        raise InvalidMode("Forward mode only supported on global level")
    return mode


def set_mode(
    state: State, subject: str | None, mode: Mode | None, *, force: bool = False
) -> Decision[None]:
    """Import mode wants an empty place, as foreign ids might meet ours; `force` trusts the user."""
    changes: list[Change] = []
    if mode is Mode.IMPORT and state.mode_in_scope(subject) is not Mode.IMPORT and not force:
        if state.has_subject(subject):
            raise NotPermitted("Cannot import since found existing subjects")
        keys = _left_over(state, subject)
        changes += [Change(key) for key in keys]
        changes.append(Change(ClearSubjectKey(subject), ClearSubjectValue(subject)))
    value = None if mode is None else ModeValue(subject, mode)
    return Decision(None, [*changes, Change(ModeKey(subject), value)])


def delete_mode(
    state: State, subject: str | None, *, recursive: bool = False
) -> Decision[Mode | None]:
    """The reply is what counted until now."""
    old = state.mode(subject)
    if old is None and not recursive:
        raise SubjectNotFound(subject)
    changes = [Change(ModeKey(subject))]
    if recursive and (subject is None or not QualifiedSubject.parse(subject).subject):
        changes += [Change(ModeKey(name)) for name in state.modes_under(subject or "")]
    return Decision(old, changes)


def _left_over(state: State, subject: str | None) -> list[SchemaKey]:
    """The deleted versions that would else still hold their ids."""
    keys = [
        entry.key
        for name in state.matching(subject, with_deleted=True)
        for entry in state.versions(name, with_deleted=True)
    ]
    for key in keys:
        if state.referrers(key, with_deleted=True):
            raise ReferenceExists(key)
    return keys
