"""Delete versions, subjects and contexts: first softly, so that ids still work, then for good."""

import msgspec

from headrace.registry import errors
from headrace.registry.deciding.decisions import Decision, check_writable
from headrace.registry.model.records import Change, ConfigKey, ContextKey, ModeKey
from headrace.registry.model.state import State
from headrace.serdes.schema_records import DeleteSubjectKey, DeleteSubjectValue, SchemaKey
from headrace.serdes.subject_names import context_of


def delete_version(state: State, subject: str, version: int, *, permanent: bool) -> Decision[int]:
    """Delete a version; the reply is its number."""
    entry = state.version(subject, version, with_deleted=True)
    if entry is None:
        if not state.has_subject(subject, with_deleted=True):
            raise errors.SubjectNotFound(subject)
        raise errors.VersionNotFound(version)
    if entry.value.deleted and not permanent:
        raise errors.VersionSoftDeleted(subject, version)
    check_writable(state, subject)
    key = entry.key
    if state.referrers(key, with_deleted=permanent):
        raise errors.ReferenceExists(key)
    if not permanent:
        return Decision(key.version, [_deleted(state, key)])
    if not entry.value.deleted:
        raise errors.VersionNotSoftDeleted(subject, key.version)
    changes = [Change(key)]
    if len(state.versions(subject, with_deleted=True)) == 1:
        changes += _settings_of(state, subject)
    return Decision(key.version, changes)


def delete_subject(state: State, subject: str, *, permanent: bool) -> Decision[list[int]]:
    """Delete all versions; the reply is their numbers."""
    if not state.has_subject(subject, with_deleted=True):
        raise errors.SubjectNotFound(subject)
    if not permanent and not state.has_subject(subject):
        raise errors.SubjectSoftDeleted(subject)
    check_writable(state, subject)
    entries = state.versions(subject, with_deleted=permanent)
    for entry in entries:
        others = state.referring_subjects(entry.key, with_deleted=permanent) - {subject}
        if others:
            raise errors.ReferenceExists(entry.key)
        if permanent and not entry.value.deleted:
            raise errors.SubjectNotSoftDeleted(subject)
    versions = [entry.value.version for entry in entries]
    if not permanent:
        upto = DeleteSubjectValue(subject, max(versions, default=0))
        return Decision(versions, [Change(DeleteSubjectKey(subject), upto)])
    # Newest first: a version may refer to an older one of its own subject.
    changes = [Change(entry.key) for entry in reversed(entries)]
    return Decision(versions, [*changes, *_settings_of(state, subject)])


def delete_context(state: State, context: str) -> Decision[None]:
    """Delete an empty context; `context` is its prefix, such as `:.staging:`."""
    if state.has_subject(context, with_deleted=True):
        raise errors.ContextNotEmpty(context)
    return Decision(None, [Change(ContextKey(context=context_of(context)))])


def _deleted(state: State, key: SchemaKey) -> Change:
    value = state.subjects[key.subject][key.version].value
    return Change(key, msgspec.structs.replace(value, deleted=True))


def _settings_of(state: State, subject: str) -> list[Change]:
    changes = []
    if state.mode(subject) is not None:
        changes.append(Change(ModeKey(subject)))
    if state.config(subject) is not None:
        changes.append(Change(ConfigKey(subject)))
    return changes
