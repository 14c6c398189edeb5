"""Find a schema among the versions of a subject: by fingerprint, then by meaning."""

import msgspec

from headrace.registry.deciding.candidates import Candidate, canonical, parsed_entry
from headrace.registry.errors import InvalidSchemaGiven, SchemaNotFound, SubjectNotFound
from headrace.registry.model.records import ConfigValue
from headrace.registry.model.state import Entry, State
from headrace.serdes import contracts
from headrace.serdes.schema_records import SchemaValue
from headrace.serdes.schemas import ParsedSchema
from headrace.serdes.subject_names import context_of, qualified_by


def look_up(state: State, candidate: Candidate, *, normalize: bool, with_deleted: bool) -> Entry:
    """Return the version of a schema, for `POST /subjects/{subject}`."""
    for subject in state.spellings(candidate.subject):
        elsewhere = msgspec.structs.replace(candidate, subject=subject)
        try:
            found = _looked_up(state, elsewhere, normalize, with_deleted)
        except InvalidSchemaGiven:
            if subject == candidate.subject:
                raise
            continue
        if found is not None:
            return found
    if not state.has_subject(candidate.subject, with_deleted=with_deleted):
        raise SubjectNotFound(candidate.subject)
    raise SchemaNotFound


def find(
    state: State,
    candidate: Candidate,
    *,
    normalize: bool,
    with_deleted: bool = False,
    latest_only: bool = False,
) -> Entry | None:
    """Return the version equal to the candidate; the newest of several."""
    if candidate.is_empty:
        return None
    given, parsed = canonical(state, candidate, is_new=False, normalize=normalize)
    if not latest_only:
        entry = by_fingerprint(state, given, with_deleted=with_deleted)
        if entry is not None:
            return entry
    entries = state.versions(candidate.subject, with_deleted=with_deleted)
    for entry in reversed(entries[-1:] if latest_only else entries):
        if is_equivalent(state, given, parsed, entry):
            return entry
    return None


def by_fingerprint(
    state: State, candidate: Candidate, *, with_deleted: bool = False
) -> Entry | None:
    context = context_of(candidate.subject)
    id = state.id_of(context, candidate.fingerprint())
    version = None if id is None else state.holders(context, id).get(candidate.subject)
    if version is None:
        return None
    return state.version(candidate.subject, version, with_deleted=with_deleted)


def is_equivalent(state: State, candidate: Candidate, parsed: ParsedSchema, entry: Entry) -> bool:
    """Return whether a stored version has the meaning of the candidate, in any layout.

    The candidate may contain its references inline, or lack the version in its metadata.
    """
    value = entry.value
    if value.schema_type != candidate.type or not _is_same_contract(candidate, value):
        return False
    has_same_references = _names(state, candidate.subject, candidate.references) == _names(
        state, value.subject, tuple(value.references or ())
    )
    if has_same_references and value.schema == candidate.text:
        return True
    if not has_same_references and (candidate.references or not value.references):
        return False
    is_normalized = candidate.text != parsed.canonical()
    return parsed_entry(state, entry).meaning() == parsed.meaning(normalized=is_normalized)


def with_contract(
    config: ConfigValue,
    candidate: Candidate,
    previous: SchemaValue | None,
    next_version: int | None,
) -> Candidate:
    """Return the candidate with the contract inherited from the previous version and settings."""
    metadata, rules = candidate.metadata, candidate.rules
    if previous is not None:
        metadata = previous.metadata if metadata is None else metadata
        rules = previous.rules if rules is None else rules
    metadata = contracts.merged_metadata(
        contracts.merged_metadata(config.default_metadata, metadata), config.override_metadata
    )
    rules = contracts.merged_rules(
        contracts.merged_rules(config.default_rules, rules), config.override_rules
    )
    is_numbered = candidate.version != 0 or (metadata is not None and metadata.confluent_version)
    if next_version is not None and is_numbered:
        metadata = (metadata or contracts.Metadata()).with_confluent_version(next_version)
    return msgspec.structs.replace(candidate, metadata=metadata, rules=rules)


def _looked_up(
    state: State, candidate: Candidate, normalize: bool, with_deleted: bool
) -> Entry | None:
    found = find(state, candidate, normalize=normalize, with_deleted=with_deleted)
    latest = state.latest(candidate.subject)
    if found is not None or latest is None:
        return found
    # Registering adds the contract of the latest version, so search for that too.
    config = state.config_in_scope(candidate.subject)
    inherited = with_contract(config, candidate, latest.value, None)
    if inherited == candidate:
        return None
    return find(state, inherited, normalize=normalize, with_deleted=with_deleted)


def _is_same_contract(candidate: Candidate, value: SchemaValue) -> bool:
    if not contracts.is_same_contract(candidate.rules, value.rules):
        return False
    given, stored = candidate.metadata, value.metadata
    given_version = None if given is None else given.confluent_version
    stored_version = None if stored is None else stored.confluent_version
    if given_version is None and stored_version is not None:
        return contracts.is_same_contract(given or contracts.Metadata(), _unnumbered(stored))
    if given_version is not None and stored_version is None:
        is_this_version = given_version == str(value.version)
        return is_this_version and contracts.is_same_contract(
            _unnumbered(given), stored or contracts.Metadata()
        )
    return contracts.is_same_contract(given, stored)


def _unnumbered(metadata: contracts.Metadata | None) -> contracts.Metadata:
    return (metadata or contracts.Metadata()).without_confluent_version()


def _names(
    state: State, subject: str, references: tuple[contracts.Reference, ...]
) -> list[tuple[str | None, str, int | None]]:
    """Return references with their present versions."""
    found = []
    for reference in references:
        name = str(qualified_by(subject, reference.subject or ""))
        version = reference.version
        if version == -1:
            latest = state.latest(name)
            version = None if latest is None else latest.value.version
        found.append((reference.name, name, version))
    return found
