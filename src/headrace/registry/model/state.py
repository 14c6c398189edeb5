"""The state of a registry, replayed from the records of `_schemas`, and queries on it.

Only `State.replay` changes it, at the start and live. Schemas are parsed only for decisions: most
are returned as they were stored.
"""

import logging
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from headrace.registry.compatibility.levels import Level
from headrace.registry.model.records import (
    Change,
    ConfigKey,
    ConfigValue,
    ContextKey,
    ContextValue,
    Mode,
    ModeKey,
    ModeValue,
)
from headrace.registry.schema_types import SchemaTypes
from headrace.serdes.fingerprints import guid
from headrace.serdes.schema_records import (
    ClearSubjectValue,
    DeleteSubjectValue,
    SchemaKey,
    SchemaValue,
)
from headrace.serdes.subject_names import (
    DEFAULT_CONTEXT,
    GLOBAL_CONTEXT,
    QualifiedSubject,
    SubjectMatch,
    context_of,
    normalized,
    qualified_by,
)

_log = logging.getLogger(__name__)

_GLOBAL_SETTINGS = f":{GLOBAL_CONTEXT}:"


class ContextId(NamedTuple):
    """An id within its context."""

    context: str
    id: int


class Entry(msgspec.Struct, frozen=True):
    """A stored version: its value, time and fingerprint."""

    value: SchemaValue
    timestamp_ms: int
    fingerprint: bytes

    @property
    def guid(self) -> str:
        return guid(self.fingerprint)

    @property
    def key(self) -> SchemaKey:
        return SchemaKey(self.value.subject, self.value.version)


class ContextIndex:
    """The ids of a context, with the versions and the schema of each."""

    def __init__(self) -> None:
        self.versions_by_id: dict[int, dict[str, int]] = {}
        self.id_by_fingerprint: dict[bytes, int] = {}
        self.id_max = 0

    def copy(self) -> "ContextIndex":
        copy = ContextIndex()
        copy.versions_by_id = {id: dict(held) for id, held in self.versions_by_id.items()}
        copy.id_by_fingerprint = dict(self.id_by_fingerprint)
        copy.id_max = self.id_max
        return copy


class State:
    """Subjects, ids, settings and contexts."""

    def __init__(
        self, default_level: Level = Level.BACKWARD, types: SchemaTypes | None = None
    ) -> None:
        self.types = types or SchemaTypes()
        """Parses and compares the schemas; shared by copies."""
        self.default_config = ConfigValue(compatibility_level=default_level)
        self.default_mode = Mode.READWRITE
        self.subjects: dict[str, dict[int, Entry]] = {}
        self.contexts: list[str] = []
        """All but the default context, in the order of their first schemas."""
        self.changes = 0
        """The number of replayed records; caches of answers compare it."""
        self._indexes: dict[str, ContextIndex] = {}
        self._referrers: dict[SchemaKey, dict[ContextId, int]] = {}
        self._configs: dict[str | None, ConfigValue] = {}
        self._modes: dict[str | None, Mode] = {}

    def copy(self) -> "State":
        """Copy the state for a reader that must not see later records.

        Entries and settings are immutable, so they are shared.
        """
        copy = State(types=self.types)
        copy.default_config = self.default_config
        copy.default_mode = self.default_mode
        copy.subjects = {name: dict(versions) for name, versions in self.subjects.items()}
        copy.contexts = list(self.contexts)
        copy.changes = self.changes
        copy._indexes = {context: index.copy() for context, index in self._indexes.items()}
        copy._referrers = {key: dict(counts) for key, counts in self._referrers.items()}
        copy._configs = dict(self._configs)
        copy._modes = dict(self._modes)
        return copy

    # --- replay -------------------------------------------------------------------------------

    def replay(self, change: Change, timestamp_ms: int) -> None:
        """Apply a record."""
        self.changes += 1
        match change.key, change.value:
            case SchemaKey() as key, SchemaValue() as value:
                self._store(key, value, timestamp_ms)
            case SchemaKey() as key, None:
                self._remove(key)
            case ConfigKey(subject), ConfigValue() as value:
                self._configs[subject] = msgspec.structs.replace(value, subject=subject)
            case ConfigKey(subject), None:
                self._configs.pop(subject, None)
            case ModeKey(subject), ModeValue() as value:
                self._modes[subject] = value.mode
            case ModeKey(subject), None:
                self._modes.pop(subject, None)
            case ContextKey() as key, ContextValue():
                if key.context not in self.contexts:
                    self.contexts.append(key.context)
            case ContextKey() as key, None:
                self.contexts = [name for name in self.contexts if name != key.context]
            case _, DeleteSubjectValue() as value:
                self._mark_deleted(value)
            case _, ClearSubjectValue() as value:
                self._clear(value.subject)

    def _store(self, key: SchemaKey, value: SchemaValue, timestamp_ms: int) -> None:
        index = self._index(context_of(key.subject))
        other = self._any_entry(index, value.id)
        if other is not None and other.value.schema != value.schema:
            fields = {"id": value.id, "subject": key.subject, "version": key.version}
            fields |= {"other_subject": other.value.subject}
            _log.error("record with the id of another schema skipped", extra=fields)
            return
        old = self.subjects.get(key.subject, {}).get(key.version)
        if old is not None and old.value.id != value.id:
            self._forget_id(index, key, old.value.id)
        if old is not None:
            self._count_references(old.value, -1)
        entry = Entry(value, timestamp_ms, value.fingerprint())
        self.subjects.setdefault(key.subject, {})[key.version] = entry
        index.versions_by_id.setdefault(value.id, {})[key.subject] = key.version
        index.id_by_fingerprint[entry.fingerprint] = value.id
        index.id_max = max(index.id_max, value.id)
        self._count_references(value, 1)

    def _remove(self, key: SchemaKey) -> None:
        versions = self.subjects.get(key.subject, {})
        entry = versions.pop(key.version, None)
        if entry is None:
            return
        if not versions:
            del self.subjects[key.subject]
        self._forget_id(self._index(context_of(key.subject)), key, entry.value.id)
        self._count_references(entry.value, -1)

    def _forget_id(self, index: ContextIndex, key: SchemaKey, id: int) -> None:
        holders = index.versions_by_id.get(id, {})
        if holders.get(key.subject) == key.version:
            del holders[key.subject]
        if not holders:
            index.versions_by_id.pop(id, None)

    def _count_references(self, value: SchemaValue, difference: int) -> None:
        referrer = ContextId(context_of(value.subject), value.id)
        for reference in value.references or ():
            subject = str(qualified_by(value.subject, reference.subject or ""))
            key = SchemaKey(subject, reference.version or 0)
            counts = self._referrers.setdefault(key, {})
            counts[referrer] = counts.get(referrer, 0) + difference
            if counts[referrer] <= 0:
                del counts[referrer]
            if not counts:
                del self._referrers[key]

    def _mark_deleted(self, upto: DeleteSubjectValue) -> None:
        versions = self.subjects.get(upto.subject, {})
        for version, entry in versions.items():
            if version <= upto.version and not entry.value.deleted:
                value = msgspec.structs.replace(entry.value, deleted=True)
                versions[version] = msgspec.structs.replace(entry, value=value)

    def _clear(self, subject: str | None) -> None:
        match = SubjectMatch(subject)
        for name in [name for name in self.subjects if match.covers(name)]:
            for entry in list(self.subjects[name].values()):
                if entry.value.deleted:
                    self._remove(entry.key)

    def _index(self, context: str) -> ContextIndex:
        return self._indexes.setdefault(context, ContextIndex())

    # --- versions of a subject ----------------------------------------------------------------

    def versions(self, subject: str, *, with_deleted: bool = False) -> list[Entry]:
        """Return the versions in ascending order."""
        found = sorted(self.subjects.get(subject, {}).items())
        return [entry for _, entry in found if with_deleted or not entry.value.deleted]

    def version(self, subject: str, version: int, *, with_deleted: bool = False) -> Entry | None:
        """Return a version; -1 is the latest that is not deleted."""
        if version == -1:
            return self.latest(subject)
        entry = self.subjects.get(subject, {}).get(version)
        if entry is None or (entry.value.deleted and not with_deleted):
            return None
        return entry

    def latest(self, subject: str) -> Entry | None:
        found = self.versions(subject)
        return found[-1] if found else None

    def version_anywhere(
        self, subject: str, version: int, *, with_deleted: bool = False
    ) -> Entry | None:
        """Return a version; without a context in the subject, search all contexts."""
        for candidate in self.spellings(subject):
            entry = self.version(candidate, version, with_deleted=with_deleted)
            if entry is not None:
                return entry
        return None

    def spellings(self, subject: str) -> Iterator[str]:
        """Yield a subject as it is and, if it names no context, in each context."""
        yield subject
        if context_of(subject) == DEFAULT_CONTEXT:
            for context in sorted(self.contexts):
                yield str(QualifiedSubject(context, subject))

    def has_subject(self, subject: str | None, *, with_deleted: bool = False) -> bool:
        """Return whether a subject, or any of a context, has a version."""
        return next(self.matching(subject, with_deleted=with_deleted), None) is not None

    def matching(self, subject: str | None, *, with_deleted: bool = False) -> Iterator[str]:
        """Yield the subject of a name, or all subjects of a context."""
        match = SubjectMatch(subject)
        names = [subject] if subject is not None and match.is_one else self.subjects
        for name in names:
            entries = self.subjects.get(name, {}).values()
            is_there = with_deleted or any(not entry.value.deleted for entry in entries)
            if entries and is_there and match.covers(name):
                yield name

    # --- ids ----------------------------------------------------------------------------------

    def id_of(self, context: str, fingerprint: bytes) -> int | None:
        """Return the id of a schema that a subject of the context has."""
        index = self._indexes.get(context)
        if index is None:
            return None
        found = index.id_by_fingerprint.get(fingerprint)
        return found if found in index.versions_by_id else None

    def holders(self, context: str, id: int) -> dict[str, int]:
        """Return the subjects that have a schema, each with its version."""
        index = self._indexes.get(context)
        return {} if index is None else index.versions_by_id.get(id, {})

    def by_id(self, id: int, subject: str = "") -> Entry | None:
        """Return the schema with an id, in the context or under the subject."""
        found = self._held(id, subject)
        wanted = QualifiedSubject.parse(subject)
        if found is not None or not wanted.subject or wanted.context != DEFAULT_CONTEXT:
            return found
        for candidate in self.spellings(subject):
            found = self._held(id, candidate)
            if found is not None:
                return found
        return self._held(id, wanted.context_prefix)

    def by_guid(self, fingerprint: bytes) -> list[tuple[ContextId, Entry]]:
        """Return the schema with a fingerprint in each context, the default context first."""
        found = []
        for context in (DEFAULT_CONTEXT, *sorted(self.contexts)):
            id = self.id_of(context, fingerprint)
            index = self._indexes.get(context)
            entry = None if id is None or index is None else self._any_entry(index, id)
            if id is not None and entry is not None:
                found.append((ContextId(context, id), entry))
        return found

    def id_max(self, context: str) -> int:
        index = self._indexes.get(context)
        return 0 if index is None else index.id_max

    def _held(self, id: int, subject: str) -> Entry | None:
        wanted = QualifiedSubject.parse(subject)
        index = self._indexes.get(wanted.context)
        if index is None:
            return None
        if not wanted.subject:
            return self._any_entry(index, id)
        version = index.versions_by_id.get(id, {}).get(str(wanted))
        return None if version is None else self.subjects[str(wanted)][version]

    def _any_entry(self, index: ContextIndex, id: int) -> Entry | None:
        for subject, version in index.versions_by_id.get(id, {}).items():
            return self.subjects[subject][version]
        return None

    # --- references ---------------------------------------------------------------------------

    def referrers(self, key: SchemaKey, *, with_deleted: bool = False) -> list[ContextId]:
        """Return the schemas that refer to a version."""
        found = self._referrers.get(key, {})
        return sorted(one for one in found if with_deleted or self._is_in_use(one))

    def referring_subjects(self, key: SchemaKey, *, with_deleted: bool = False) -> set[str]:
        return {
            subject
            for referrer in self._referrers.get(key, {})
            for subject, version in self.holders(referrer.context, referrer.id).items()
            if self.version(subject, version, with_deleted=with_deleted) is not None
        }

    def _is_in_use(self, one: ContextId) -> bool:
        holders = self.holders(one.context, one.id)
        return any(self.version(subject, version) for subject, version in holders.items())

    # --- settings -----------------------------------------------------------------------------

    def config(self, subject: str | None) -> ConfigValue | None:
        """Return the settings of exactly this subject or context; the global ones always exist."""
        found = self._configs.get(subject)
        if found is not None:
            return self._with_level(found)
        return self.default_config if _is_top(subject) else None

    def own_config(self, subject: str | None) -> ConfigValue | None:
        """Return the stored settings of exactly this subject or context, without defaults."""
        return self._configs.get(subject)

    def config_in_scope(self, subject: str | None) -> ConfigValue:
        """Return the effective settings: the subject's, the context's or the global ones."""
        if subject is None:
            return self._wider_config(None)
        own = self.config(subject)
        if own is None:
            return self._wider_config(subject)
        return _merged(self.config(None) or self.default_config, own)

    def mode(self, subject: str | None) -> Mode | None:
        found = self._modes.get(subject)
        return found or (self.default_mode if _is_top(subject) else None)

    def mode_in_scope(self, subject: str | None) -> Mode:
        for scope in _scopes(subject):
            if scope in self._modes:
                return self._modes[scope]
        return self.default_mode

    def modes_under(self, prefix: str) -> list[str]:
        """Return the subjects of a context that have their own mode."""
        context = context_of(prefix)
        return sorted(
            name for name in self._modes if name and name != prefix and context_of(name) == context
        )

    def aliases(self) -> dict[str, list[str]]:
        """Return the aliases of subjects."""
        found: dict[str, list[str]] = {}
        for name, config in self._configs.items():
            if name and config.alias:
                found.setdefault(str(qualified_by(name, config.alias)), []).append(name)
        return found

    def unaliased(self, subject: str) -> str:
        """Return the subject of an alias; other names as they are."""
        config = self._configs.get(normalized(subject))
        return (
            subject if not config or not config.alias else str(qualified_by(subject, config.alias))
        )

    def _wider_config(self, subject: str | None) -> ConfigValue:
        for scope in _scopes(subject):
            if scope in self._configs:
                return self._with_level(self._configs[scope])
        return self.default_config

    def _with_level(self, config: ConfigValue) -> ConfigValue:
        if config.compatibility_level is not None:
            return config
        level = self.default_config.compatibility_level
        return msgspec.structs.replace(config, compatibility_level=level)


def _is_top(subject: str | None) -> bool:
    return subject is None or context_of(subject) == GLOBAL_CONTEXT


def _scopes(subject: str | None) -> Iterable[str | None]:
    """Yield the scopes of settings, the narrowest first."""
    yield subject
    prefix = "" if subject is None else QualifiedSubject.parse(subject).context_prefix
    yield prefix or None
    yield _GLOBAL_SETTINGS


def _merged(wide: ConfigValue, own: ConfigValue) -> ConfigValue:
    """Merge a subject's settings with those global ones that apply to all subjects."""

    def first(name: str) -> object:
        value = getattr(own, name)
        return getattr(wide, name) if value is None else value

    shared = (
        *("normalize", "validate_fields", "validate_new_schemas", "validate_rules"),
        *("compatibility_policy", "compatibility_group"),
    )
    return msgspec.structs.replace(own, **{name: first(name) for name in shared})
