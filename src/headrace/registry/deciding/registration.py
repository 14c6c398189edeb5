"""Register a schema: find an existing version, check compatibility, assign id and version."""

import msgspec

from headrace.registry import errors
from headrace.registry.compatibility.messages import messages_of
from headrace.registry.deciding.candidates import Candidate, canonical
from headrace.registry.deciding.checking import conflict
from headrace.registry.deciding.decisions import Decision, check_writable, placed
from headrace.registry.deciding.lookups import by_fingerprint, find, is_equivalent, with_contract
from headrace.registry.model.records import Change, ContextKey, ContextValue, Mode
from headrace.registry.model.state import Entry, State
from headrace.serdes.contracts import is_same_contract
from headrace.serdes.fingerprints import guid
from headrace.serdes.schema_records import SchemaKey, SchemaValue
from headrace.serdes.subject_names import DEFAULT_CONTEXT, QualifiedSubject, context_of

ID_MAX = (1 << 31) - 1


class Registered(msgspec.Struct, frozen=True):
    """A new or existing version."""

    value: SchemaValue
    guid: str
    is_completed: bool = False
    """True if the previous version or the settings added to the request."""


def already_registered(state: State, candidate: Candidate, *, normalize: bool) -> Registered | None:
    """Return the existing version that `register` would find; needs no leader."""
    if state.config_in_scope(candidate.subject).has_defaults_or_overrides:
        return None
    is_next = candidate.version == -1
    entry = find(state, candidate, normalize=normalize, latest_only=is_next)
    if entry is None:
        return None
    if candidate.version == 0 or is_next:
        is_wanted = candidate.id < 0 or candidate.id == entry.value.id
        return _registered(entry) if is_wanted else None
    if entry.value.id != candidate.id:
        return None
    # Several versions of the same schema may have been imported.
    same = state.version(candidate.subject, candidate.version)
    is_same = same is not None and same.fingerprint == entry.fingerprint
    return _registered(same) if same is not None and is_same else None


def register(
    state: State, candidate: Candidate, *, normalize: bool, force: bool = False
) -> Decision[Registered]:
    """Add a schema as the next version of its subject, unless it is one already."""
    subject = candidate.subject
    mode = state.mode_in_scope(subject)
    _check_mode(state, candidate, mode)
    config = state.config_in_scope(subject)
    entries = state.versions(subject, with_deleted=True)
    present = [entry for entry in entries if not entry.value.deleted]
    next_version = entries[-1].value.version + 1 if entries else 1
    sent = candidate
    if not mode.takes_ids:
        previous = present[-1].value if present else None
        candidate = with_contract(config, _filled(candidate, previous), previous, next_version)
    is_completed = candidate != sent
    if candidate.is_empty:
        raise errors.InvalidSchemaGiven("Empty schema")
    is_checked = candidate.id < 0 and config.validate_new_schemas is not False
    given, parsed = canonical(state, candidate, is_new=is_checked, normalize=normalize)

    id = given.id
    known_id = state.id_of(context_of(subject), given.fingerprint())
    if known_id is not None and id in (known_id, -1):
        found = by_fingerprint(state, given)
        if given.version == 0 and found is not None:
            return Decision(_registered(found, is_completed=is_completed))
        id = known_id
    if given.version == 0:
        for entry in reversed(present):
            is_wanted = id < 0 or id == entry.value.id
            if is_wanted and is_equivalent(state, given, parsed, entry):
                return Decision(_registered(entry, is_completed=is_completed))
    if not mode.takes_ids and not force:
        broken = conflict(state, config, given, parsed, present)
        if broken is not None:
            raise errors.Incompatible(subject, ", ".join(messages_of(broken)))
    version = _version(given, next_version, mode)
    value, changes = _stored(state, given, version, id, entries)
    return Decision(Registered(value, guid(given.fingerprint()), is_completed), changes)


def _check_mode(state: State, candidate: Candidate, mode: Mode) -> None:
    check_writable(state, candidate.subject)
    if candidate.id >= 0 and not mode.takes_ids:
        raise errors.NotPermitted(f"{placed(candidate.subject)} is not in import mode")
    if candidate.id < 0 and mode is not Mode.READWRITE:
        raise errors.NotPermitted(f"{placed(candidate.subject)} is not in read-write mode")


def _filled(candidate: Candidate, previous: SchemaValue | None) -> Candidate:
    """Keep the previous schema if the request has none: only its contract changes."""
    if not candidate.is_empty or previous is None:
        return candidate
    return msgspec.structs.replace(
        candidate,
        text=previous.schema,
        type=previous.schema_type,
        references=tuple(previous.references or ()),
    )


def _version(candidate: Candidate, next_version: int, mode: Mode) -> int:
    if candidate.version <= 0:
        return next_version
    if candidate.version != next_version and not mode.takes_ids:
        raise errors.InvalidSchemaGiven("Version is not one more than previous version")
    return candidate.version


def _stored(
    state: State, candidate: Candidate, version: int, id: int, entries: list[Entry]
) -> tuple[SchemaValue, list[Change]]:
    name = QualifiedSubject.parse(candidate.subject)
    if id >= 0:
        _check_id_is_free(state, candidate, id)
    else:
        id = state.id_max(name.context) + 1
    if id > ID_MAX:
        raise errors.NotPermitted(f"the context {name.context} has no ids left")
    changes: list[Change] = []
    if name.context != DEFAULT_CONTEXT and name.context not in state.contexts:
        changes.append(Change(ContextKey(context=name.context), ContextValue(context=name.context)))
    changes += [Change(key) for key in _outdated(state, entries, version, id)]
    value = candidate.stored(version, id)
    changes.append(Change(SchemaKey(candidate.subject, version), value))
    return value, changes


def _outdated(state: State, entries: list[Entry], version: int, id: int) -> list[SchemaKey]:
    """Return deleted versions of the same schema that no version refers to."""
    return [
        entry.key
        for entry in entries
        if entry.value.deleted
        and entry.value.id == id
        and entry.value.version < version
        and not state.referrers(entry.key, with_deleted=True)
    ]


def _check_id_is_free(state: State, candidate: Candidate, id: int) -> None:
    """Check that an id is not that of another schema, in import mode too."""
    prefix = QualifiedSubject.parse(candidate.subject).context_prefix
    entry = state.by_id(id, prefix)
    if entry is None:
        return
    value = entry.value
    is_same = (
        (value.schema, value.schema_type) == (candidate.text, candidate.type)
        and (value.references or []) == list(candidate.references)
        and is_same_contract(value.metadata, candidate.metadata)
        and is_same_contract(value.rules, candidate.rules)
    )
    if not is_same:
        raise errors.NotPermitted(
            f"Overwrite new schema with id {id} in context {prefix} is not permitted."
        )


def _registered(entry: Entry, *, is_completed: bool = False) -> Registered:
    return Registered(entry.value, entry.guid, is_completed)
