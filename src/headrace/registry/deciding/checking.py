"""Compatibility of a new schema with the versions of a subject, by the subject's settings."""

from collections.abc import Sequence
from dataclasses import replace

from headrace.registry.compatibility import levels
from headrace.registry.compatibility.incompatibilities import Direction, Incompatibility
from headrace.registry.compatibility.levels import Conflict, Level, Version
from headrace.registry.deciding.candidates import Candidate, parsed_entry
from headrace.registry.model.records import ConfigValue
from headrace.registry.model.state import Entry, State
from headrace.serdes.contracts import CONFLUENT_RESERVED, Metadata
from headrace.serdes.schemas import ParsedSchema


def conflict(
    state: State,
    config: ConfigValue,
    candidate: Candidate,
    parsed: ParsedSchema,
    previous: Sequence[Entry],
) -> Conflict | None:
    """Return why the candidate may not follow the previous versions, or None if it may.

    `previous` is in ascending order. If a compatibility group is set, only versions count that
    have the candidate's value of that property.
    """
    level = config.compatibility_level or Level.BACKWARD
    reserved = _reserved_names(config, candidate, parsed, previous)
    broken = _broken(state, config, level, candidate, parsed, previous)
    if not reserved:
        return broken
    if broken is None:
        return Conflict(level, parsed.type, reserved, validate_fields=True)
    return replace(broken, incompatibilities=reserved + broken.incompatibilities)


def _broken(
    state: State,
    config: ConfigValue,
    level: Level,
    candidate: Candidate,
    parsed: ParsedSchema,
    previous: Sequence[Entry],
) -> Conflict | None:
    if level is Level.NONE:
        return None
    group = config.compatibility_group
    if group is not None:
        wanted = _property(candidate.metadata, group)
        previous = [one for one in previous if _property(one.value.metadata, group) == wanted]
    # Versions that the level ignores are not parsed.
    counting = previous if level.is_transitive else previous[-1:]
    versions = [Version(parsed_entry(state, entry), entry.value.version) for entry in counting]
    return levels.conflict(
        level,
        parsed,
        versions,
        state.types.incompatibilities(candidate.type, config.policy),
        validate_fields=bool(config.validate_fields),
    )


def _reserved_names(
    config: ConfigValue, candidate: Candidate, parsed: ParsedSchema, previous: Sequence[Entry]
) -> tuple[Incompatibility, ...]:
    """Check that no field takes a name that metadata reserves, and that no name is released."""
    if not config.validate_fields:
        return ()
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
    return tuple(Incompatibility("", text, Direction.BACKWARD) for text in removed + taken)


def _reserved(metadata: Metadata | None) -> set[str]:
    names = (_property(metadata, CONFLUENT_RESERVED) or "").split(",")
    return {name.strip() for name in names} - {""}


def _property(metadata: Metadata | None, name: str) -> str | None:
    return ((metadata.properties if metadata else None) or {}).get(name)
