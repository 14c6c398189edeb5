"""Change and remove the settings and modes of a subject, a context, or all."""

import msgspec
from msgspec import UNSET, UnsetType

from headrace.registry import errors
from headrace.registry.compatibility.levels import Level, Policy
from headrace.registry.deciding.decisions import Decision, check_writable
from headrace.registry.model import records
from headrace.registry.model.state import State
from headrace.serdes.contracts import InvalidRules, Metadata, RuleSet, check_rules
from headrace.serdes.schema_records import ClearSubjectKey, ClearSubjectValue, SchemaKey
from headrace.serdes.subject_names import GLOBAL_CONTEXT, QualifiedSubject


class ConfigUpdate(msgspec.Struct, frozen=True, omit_defaults=True, rename=records.config_name):
    """Settings in a request: null removes a setting, missing ones stay."""

    alias: str | UnsetType | None = UNSET
    alias_for_deks: str | UnsetType | None = UNSET
    normalize: bool | UnsetType | None = UNSET
    validate_fields: bool | UnsetType | None = UNSET
    validate_new_schemas: bool | UnsetType | None = UNSET
    validate_rules: bool | UnsetType | None = UNSET
    compatibility: str | UnsetType | None = UNSET
    compatibility_level: str | UnsetType | None = UNSET
    """The name in answers; `compatibility` is the name in requests."""
    compatibility_policy: str | UnsetType | None = UNSET
    compatibility_group: str | UnsetType | None = UNSET
    default_metadata: Metadata | UnsetType | None = UNSET
    override_metadata: Metadata | UnsetType | None = UNSET
    default_rules: RuleSet | UnsetType | None = UNSET
    override_rules: RuleSet | UnsetType | None = UNSET


def check_config(update: ConfigUpdate) -> None:
    """Refuse unknown levels and policies, and invalid rules."""
    for level in (update.compatibility, update.compatibility_level):
        if isinstance(level, str) and level.upper() not in Level.__members__:
            raise errors.InvalidCompatibilityLevel
    policy = update.compatibility_policy
    if isinstance(policy, str) and policy.upper() not in Policy.__members__:
        raise errors.InvalidCompatibilityPolicy(policy)
    for rules in (update.default_rules, update.override_rules):
        if isinstance(rules, RuleSet):
            check_rule_set(rules)


def check_rule_set(rules: RuleSet) -> None:
    try:
        check_rules(rules)
    except InvalidRules as error:
        raise errors.InvalidRuleSet(str(error)) from error


def update_config(
    state: State, subject: str | None, update: ConfigUpdate
) -> Decision[records.ConfigValue]:
    check_writable(state, subject)
    old = state.own_config(subject) or records.ConfigValue()
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
    return Decision(new, [records.Change(records.ConfigKey(subject), new)])


def delete_config(state: State, subject: str | None) -> Decision[records.ConfigValue]:
    """The reply is what counted until now."""
    old = state.config(subject)
    if old is None:
        raise errors.SubjectNotFound(subject)
    check_writable(state, subject)
    return Decision(old, [records.Change(records.ConfigKey(subject))])


def parsed_mode(text: str, subject: str | None) -> records.Mode:
    try:
        mode = records.Mode(text.upper())
    except ValueError as error:
        raise errors.InvalidMode from error
    wanted = None if subject is None else QualifiedSubject.parse(subject)
    if mode is records.Mode.FORWARD and wanted != (GLOBAL_CONTEXT, ""):
        raise errors.InvalidModeScope
    return mode


def set_mode(
    state: State, subject: str | None, mode: records.Mode | None, *, force: bool = False
) -> Decision[None]:
    """Set a mode; import mode needs an empty subject or context, unless forced."""
    changes: list[records.Change] = []
    if (
        mode is records.Mode.IMPORT
        and state.mode_in_scope(subject) is not records.Mode.IMPORT
        and not force
    ):
        if state.has_subject(subject):
            raise errors.NotPermitted("Cannot import since found existing subjects")
        keys = _left_over(state, subject)
        changes += [records.Change(key) for key in keys]
        changes.append(records.Change(ClearSubjectKey(subject), ClearSubjectValue(subject)))
    value = None if mode is None else records.ModeValue(subject, mode)
    return Decision(None, [*changes, records.Change(records.ModeKey(subject), value)])


def delete_mode(
    state: State, subject: str | None, *, recursive: bool = False
) -> Decision[records.Mode | None]:
    """The reply is what counted until now."""
    old = state.mode(subject)
    if old is None and not recursive:
        raise errors.SubjectNotFound(subject)
    changes = [records.Change(records.ModeKey(subject))]
    if recursive and (subject is None or not QualifiedSubject.parse(subject).subject):
        changes += [
            records.Change(records.ModeKey(name)) for name in state.modes_under(subject or "")
        ]
    return Decision(old, changes)


def _left_over(state: State, subject: str | None) -> list[SchemaKey]:
    """Return the deleted versions, whose ids would otherwise stay taken."""
    keys = [
        entry.key
        for name in state.matching(subject, with_deleted=True)
        for entry in state.versions(name, with_deleted=True)
    ]
    for key in keys:
        if state.referrers(key, with_deleted=True):
            raise errors.ReferenceExists(key)
    return keys
