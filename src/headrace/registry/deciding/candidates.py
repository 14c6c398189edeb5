"""Schemas in requests: parsed, with references resolved, and brought into their stored form.

References are resolved by subject and version; `-1` becomes the present latest version, so that
the meaning of a stored schema never changes.
"""

from collections.abc import Sequence

import msgspec

from headrace.registry.errors import InvalidSchemaGiven
from headrace.registry.model.state import Entry, State
from headrace.serdes.contracts import Metadata, Reference, RuleSet
from headrace.serdes.fingerprints import fingerprint
from headrace.serdes.schema_records import AVRO, SchemaValue
from headrace.serdes.schemas import Dependency, InvalidSchema, ParsedSchema
from headrace.serdes.subject_names import qualified_by

LATEST = -1
_REFERENCES_MAX = 1_000
"""The maximum of schemas that a schema refers to, directly and indirectly."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A schema in a request."""

    subject: str
    text: str = ""
    type: str = AVRO
    references: tuple[Reference, ...] = ()
    metadata: Metadata | None = None
    rules: RuleSet | None = None
    version: int = 0
    """0 is unspecified, -1 the next version."""
    id: int = LATEST

    @property
    def is_empty(self) -> bool:
        return not self.text.strip()

    def fingerprint(self) -> bytes:
        return fingerprint(self.text, self.references, self.metadata, self.rules)

    def stored(self, version: int, id: int) -> SchemaValue:
        return SchemaValue(
            subject=self.subject,
            version=version,
            id=id,
            schema_type=self.type,
            references=list(self.references) or None,
            metadata=None if self.metadata is None else self.metadata.sorted(),
            rules=None if self.rules is None else self.rules.sorted(),
            schema=self.text,
        )


def candidate_of(value: SchemaValue) -> Candidate:
    """Return a stored version in the form of a request."""
    return Candidate(
        subject=value.subject,
        text=value.schema,
        type=value.schema_type,
        references=tuple(value.references or ()),
        metadata=value.metadata,
        rules=value.rules,
        version=value.version,
        id=value.id,
    )


def canonical(
    state: State, candidate: Candidate, *, is_new: bool, normalize: bool
) -> tuple[Candidate, ParsedSchema]:
    """Return the candidate in its stored form, and the parsed schema."""
    if candidate.type not in state.types.names:
        raise InvalidSchemaGiven(f"Invalid schema type {candidate.type}")
    references = tuple(
        _resolved(state, candidate.subject, reference, is_new=is_new)
        for reference in candidate.references
    )
    parsed = parsed_of(
        state, msgspec.structs.replace(candidate, references=references), is_new=is_new
    )
    normalize = normalize and not state.mode_in_scope(candidate.subject).takes_ids
    try:
        text = parsed.normalized() if normalize else parsed.canonical()
    except InvalidSchema as error:
        raise _invalid(candidate.type, error) from error
    if normalize:
        references = _ordered(references)
    return msgspec.structs.replace(candidate, references=references, text=text), parsed


def parsed_of(state: State, candidate: Candidate, *, is_new: bool = False) -> ParsedSchema:
    """Parse a schema with all that it refers to."""
    dependencies = dependencies_of(state, candidate.subject, candidate.references, is_new=is_new)
    try:
        return state.types.parse(candidate.type, candidate.text, dependencies, is_new=is_new)
    except InvalidSchema as error:
        raise _invalid(candidate.type, error) from error


def parsed_entry(state: State, entry: Entry) -> ParsedSchema:
    return parsed_of(state, candidate_of(entry.value))


def dependencies_of(
    state: State, subject: str, references: Sequence[Reference], *, is_new: bool
) -> list[Dependency]:
    """Return the referenced schemas without duplicates, each after its own references."""
    found: dict[str, Dependency] = {}
    seen: set[str] = set()

    def visit(parent: str, references: Sequence[Reference]) -> None:
        for reference in references:
            name = reference.name or ""
            if name in seen:
                continue
            seen.add(name)
            if len(seen) > _REFERENCES_MAX:
                raise InvalidSchemaGiven(f"more than {_REFERENCES_MAX} schemas are referenced")
            entry = _referenced(state, parent, reference, is_new=is_new)
            visit(entry.value.subject, entry.value.references or ())
            found[name] = Dependency(name, entry.value.schema)

    visit(subject, references)
    return list(found.values())


def _ordered(references: Sequence[Reference]) -> tuple[Reference, ...]:
    """Sort references as Confluent's registry normalizes them: fingerprints depend on the order."""
    found = sorted(references, key=lambda one: (one.subject or "", one.version or 0))
    return tuple(dict.fromkeys(found))


def _resolved(state: State, subject: str, reference: Reference, *, is_new: bool) -> Reference:
    entry = _referenced(state, subject, reference, is_new=is_new)
    if reference.version != LATEST:
        return reference
    return Reference(reference.name, reference.subject, entry.value.version)


def _referenced(state: State, subject: str, reference: Reference, *, is_new: bool) -> Entry:
    if reference.name is None or reference.subject is None or reference.version is None:
        raise InvalidSchemaGiven(
            f"Invalid reference: name {reference.name!r}, subject {reference.subject!r}, version"
            f" {reference.version!r}; give all three"
        )
    found = str(qualified_by(subject, reference.subject))
    entry = state.version(found, reference.version, with_deleted=not is_new)
    if entry is None:
        raise InvalidSchemaGiven(
            f'No schema reference found for subject "{found}" and version {reference.version}'
        )
    return entry


def _invalid(type: str, error: InvalidSchema) -> InvalidSchemaGiven:
    return InvalidSchemaGiven(f"Invalid schema of type {type}, details: {error}")
