"""Whether a new schema may follow the versions of a subject, by what is set for the subject."""

from collections.abc import Sequence

from headrace.registry.compatibility import levels
from headrace.registry.compatibility.levels import Level, Version
from headrace.registry.deciding.candidates import Candidate, parsed_entry
from headrace.registry.model.records import ConfigValue
from headrace.registry.model.state import Entry, State
from headrace.registry.schema_types import SchemaTypes
from headrace.serdes.contracts import CONFLUENT_RESERVED, Metadata
from headrace.serdes.schemas import ParsedSchema


def complaints(
    state: State,
    types: SchemaTypes,
    config: ConfigValue,
    candidate: Candidate,
    parsed: ParsedSchema,
    previous: Sequence[Entry],
) -> list[str]:
    """What breaks, and with which version; nothing if the candidate may follow.

    Of the older versions, given in ascending order, only those count that share its value of the
    property that groups are made by, if one is set.
    """
    level = config.compatibility_level or Level.BACKWARD
    reserved = _reserved_complaints(config, candidate, parsed, previous)
    broken = _broken(state, types, config, level, candidate, parsed, previous)
    if reserved and not broken:
        broken = [levels.applied(level, validate_fields=True)]
    return reserved + broken


def _broken(
    state: State,
    types: SchemaTypes,
    config: ConfigValue,
    level: Level,
    candidate: Candidate,
    parsed: ParsedSchema,
    previous: Sequence[Entry],
) -> list[str]:
    if level is Level.NONE:
        return []
    group = config.compatibility_group
    if group is not None:
        wanted = _property(candidate.metadata, group)
        previous = [one for one in previous if _property(one.value.metadata, group) == wanted]
    # The others would be read for nothing.
    counting = previous if level.is_transitive else previous[-1:]
    versions = [
        Version(parsed_entry(state, types, entry), entry.value.version) for entry in counting
    ]
    return levels.complaints(
        level,
        parsed,
        versions,
        types.incompatibilities(candidate.type, config.policy),
        validate_fields=bool(config.validate_fields),
    )


def _reserved_complaints(
    config: ConfigValue, candidate: Candidate, parsed: ParsedSchema, previous: Sequence[Entry]
) -> list[str]:
    """Names that metadata keeps free stay free: no field takes one, no version gives one back."""
    if not config.validate_fields:
        return []
    reserved = _reserved(candidate.metadata)
    earlier = _reserved(previous[-1].value.metadata) if previous else set()
    removed = [
        f"The new schema has reserved field {name} removed from its metadata which is present in"
        " the old schema's metadata."
        for name in sorted(earlier - reserved)
    ]
    taken = [
        f"The new schema has field that conflicts with the reserved field {name}."
        for name in sorted(reserved & parsed.field_names())
    ]
    return removed + taken


def _reserved(metadata: Metadata | None) -> set[str]:
    names = (_property(metadata, CONFLUENT_RESERVED) or "").split(",")
    return {name.strip() for name in names} - {""}


def _property(metadata: Metadata | None, name: str) -> str | None:
    return ((metadata.properties if metadata else None) or {}).get(name)
