"""Confluent's text form of incompatibilities, which clients and tools parse: written and read.

Everything inside passes `Conflict` and `Incompatibility` objects. Answers of a registry hold texts:
`{errorType:"FIELD_KIND_CHANGED", description:"..."}`, then the old schema, then the settings.
"""

import re
from typing import Final

from headrace.registry.compatibility.incompatibilities import Incompatibility
from headrace.registry.compatibility.levels import Conflict, Version
from headrace.serdes.schemas import ParsedSchema, SchemaType

SHOWN_MAX: Final = 10 << 10
"""Characters of an old schema that a message shows."""

_INCOMPATIBILITY = re.compile(
    r"""\{errorType:(?P<quote>['"])(?P<name>\w+)(?P=quote), description:(?P=quote)"""
    r"""(?P<text>.*?)(?P=quote)(?:, additionalInfo:'(?P<detail>.*)')?\}""",
    re.DOTALL,
)


def messages_of(conflict: Conflict | None) -> list[str]:
    """Return the messages of a conflict; none if the schemas are compatible."""
    if conflict is None:
        return []
    validated = "true" if conflict.validate_fields else "false"
    return [
        *(_message(found, conflict.type) for found in conflict.incompatibilities),
        *([] if conflict.old is None else _shown(conflict.old)),
        f"{{validateFields: '{validated}', compatibility: '{conflict.level}'}}",
    ]


def plain_text(found: Incompatibility) -> str:
    """Return an incompatibility as a line for people."""
    text = with_detail(found.text, found.detail)
    return f"{found.name}: {text}" if found.name else text


def plain_message(message: str) -> str:
    """Return a registry's message as a line for people; other texts unchanged."""
    found = _INCOMPATIBILITY.fullmatch(message)
    if found is None:
        return message
    return f"{found['name']}: {with_detail(found['text'], found['detail'])}"


def describes_settings(message: str) -> bool:
    """Return whether a message shows the old schema or the settings, not an incompatibility."""
    return message.startswith(("{oldSchema", "{validateFields"))


def with_detail(text: str, detail: str | None) -> str:
    """Return a description and Java's detail, which most descriptions contain already."""
    return f"{text} ({detail})" if detail and detail not in text else text


def _message(found: Incompatibility, type: SchemaType) -> str:
    """Avro's messages are Java's: single quotes, and additional information at the end."""
    if not found.name:
        return found.text
    quote = "'" if type is SchemaType.AVRO else '"'
    more = f", additionalInfo:'{found.detail}'" if found.detail else ""
    return f"{{errorType:{quote}{found.name}{quote}, description:{quote}{found.text}{quote}{more}}}"


def _shown(old: Version[ParsedSchema]) -> list[str]:
    text = old.schema.canonical()
    shown = [] if old.number is None else [f"{{oldSchemaVersion: {old.number}}}"]
    if len(text) <= SHOWN_MAX:
        return [*shown, f"{{oldSchema: '{text}'}}"]
    return [*shown, f"{{oldSchema: <truncated> '{text[:SHOWN_MAX]}...'}}"]
