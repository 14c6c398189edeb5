"""A schema on its way into the registry, or to be found there: read, brought into its stored form.

References are looked up by subject and version; `-1` becomes the version that is the latest now,
so that a stored schema always means the same.
"""

from collections.abc import Sequence

import msgspec

from headrace.registry.errors import InvalidSchemaGiven
from headrace.registry.model.state import Entry, State
from headrace.registry.schema_types import SchemaTypes
from headrace.serdes.contracts import Metadata, Reference, RuleSet
from headrace.serdes.fingerprints import fingerprint
from headrace.serdes.schema_records import AVRO, SchemaValue
from headrace.serdes.schemas import Dependency, InvalidSchema, ParsedSchema
from headrace.serdes.subject_names import qualified_by

LATEST = -1
_REFERENCES_MAX = 1_000
"""How many schemas one may need, those of its references counted as well."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """What a client has sent as a schema."""

    subject: str
    text: str = ""
    type: str = AVRO
    references: tuple[Reference, ...] = ()
    metadata: Metadata | None = None
    rules: RuleSet | None = None
    version: int = 0
    """0 is none, -1 the next one."""
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
    """A stored version as if it were sent again."""
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
    state: State, types: SchemaTypes, candidate: Candidate, *, is_new: bool, normalize: bool
) -> tuple[Candidate, ParsedSchema]:
    """The candidate with the text and the references that are stored of it, and what was read."""
    if candidate.type not in types.names:
        raise InvalidSchemaGiven(f"Invalid schema type {candidate.type}")
    references = tuple(
        _resolved(state, candidate.subject, reference, is_new=is_new)
        for reference in candidate.references
    )
    parsed = parsed_of(
        state, types, msgspec.structs.replace(candidate, references=references), is_new=is_new
    )
    normalize = normalize and not state.mode_in_scope(candidate.subject).takes_ids
    try:
        text = parsed.normalized() if normalize else parsed.canonical()
    except InvalidSchema as error:
        raise _invalid(candidate.type, error) from error
    if normalize:
        references = _ordered(references)
    return msgspec.structs.replace(candidate, references=references, text=text), parsed


def parsed_of(
    state: State, types: SchemaTypes, candidate: Candidate, *, is_new: bool = False
) -> ParsedSchema:
    """The schema read, with all that it needs."""
    dependencies = dependencies_of(state, candidate.subject, candidate.references, is_new=is_new)
    try:
        return types.parse(candidate.type, candidate.text, dependencies, is_new=is_new)
    except InvalidSchema as error:
        raise _invalid(candidate.type, error) from error


def parsed_entry(state: State, types: SchemaTypes, entry: Entry) -> ParsedSchema:
    return parsed_of(state, types, candidate_of(entry.value))


def dependencies_of(
    state: State, subject: str, references: Sequence[Reference], *, is_new: bool
) -> list[Dependency]:
    """What the references lead to, each after what it needs itself; no name twice."""
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
    """In the order that Confluent's registry normalizes to, none twice: fingerprints cover it."""
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
