"""Whether a new schema may follow the versions of a subject, by the subject's level."""

from collections.abc import Sequence

from headrace.registry.deciding.candidates import Candidate, parsed_entry
from headrace.registry.model.contracts import Metadata
from headrace.registry.model.records import CompatibilityLevel, ConfigValue
from headrace.registry.model.state import Entry, State
from headrace.registry.schema_types import SchemaTypes
from headrace.serdes.schemas import ParsedSchema

_TRANSITIVE = (
    CompatibilityLevel.BACKWARD_TRANSITIVE,
    CompatibilityLevel.FORWARD_TRANSITIVE,
    CompatibilityLevel.FULL_TRANSITIVE,
)
_READS_OLDER = (
    *(CompatibilityLevel.BACKWARD, CompatibilityLevel.BACKWARD_TRANSITIVE),
    *(CompatibilityLevel.FULL, CompatibilityLevel.FULL_TRANSITIVE),
)
_READ_BY_OLDER = (
    *(CompatibilityLevel.FORWARD, CompatibilityLevel.FORWARD_TRANSITIVE),
    *(CompatibilityLevel.FULL, CompatibilityLevel.FULL_TRANSITIVE),
)


def complaints(
    state: State,
    types: SchemaTypes,
    config: ConfigValue,
    candidate: Candidate,
    parsed: ParsedSchema,
    previous: Sequence[Entry],
) -> list[str]:
    """What breaks, and with which version; nothing if the candidate may follow.

    Of the older versions, given in ascending order, the last one counts, or all of them.
    """
    level = config.compatibility_level or CompatibilityLevel.BACKWARD
    if level is CompatibilityLevel.NONE:
        return []
    if config.compatibility_group is not None:
        group = config.compatibility_group
        wanted = _property(candidate.metadata, group)
        previous = [one for one in previous if _property(one.value.metadata, group) == wanted]
    for entry in reversed(previous if level in _TRANSITIVE else previous[-1:]):
        found = _incompatibilities(state, types, level, candidate, parsed, entry)
        if found:
            is_checked = str(bool(config.validate_fields)).lower()
            return [
                *found,
                f"{{oldSchemaVersion: {entry.value.version}}}",
                f"{{oldSchema: '{entry.value.schema}'}}",
                f"{{validateFields: '{is_checked}', compatibility: '{level}'}}",
            ]
    return []


def _incompatibilities(
    state: State,
    types: SchemaTypes,
    level: CompatibilityLevel,
    candidate: Candidate,
    parsed: ParsedSchema,
    entry: Entry,
) -> list[str]:
    if entry.value.schema_type != candidate.type:
        return [
            f"Incompatible because of different schema type: {candidate.type} after"
            f" {entry.value.schema_type}"
        ]
    older = parsed_entry(state, types, entry)
    found: list[str] = []
    if level in _READS_OLDER:
        found += types.incompatibilities(candidate.type, parsed, older)
    if level in _READ_BY_OLDER:
        found += types.incompatibilities(candidate.type, older, parsed)
    return found


def _property(metadata: Metadata | None, name: str) -> str | None:
    return ((metadata.properties if metadata else None) or {}).get(name)
