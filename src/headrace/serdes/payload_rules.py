"""Rules of a topic for payloads: their schema must be registered, and for this topic.

A payload names its schema by a first byte of 0 and a four-byte id, or by a header with a byte of 1
and a sixteen-byte GUID. Subjects are Confluent's: by topic, by record, or by both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from headrace.serdes.subject_strategies import topic_subject
from headrace.serdes.wire_format import SchemaId, id_at_front, id_in_header, schema_header
from headrace.settings.subject_strategies import SubjectNameStrategy

_SHOWN_SUBJECTS_MAX = 3


class Registered(Protocol):
    """A source of registered schemas."""

    def subjects_of(self, id_: SchemaId) -> frozenset[str]: ...


@dataclass(frozen=True, slots=True)
class PayloadRule:
    """The schema that keys or values of one topic must name."""

    part: str
    """`key` or `value`, as in the subject and in the header."""

    topic: str
    strategy: SubjectNameStrategy
    registered: Registered

    def complaint(
        self, payload: bytes | None, headers: Sequence[tuple[str, bytes | None]]
    ) -> str | None:
        """Return the reason to reject a payload; None if it is valid or null."""
        if payload is None:
            return None
        header = schema_header(headers, self.part)
        id_ = None if header is None else id_in_header(header)
        if id_ is None:
            id_ = id_at_front(payload)
        if id_ is None:
            return f"its {self.part} does not begin with a schema id (a byte of 0 and four of id)"
        subjects = self.registered.subjects_of(id_)
        if not subjects:
            return f"its {self.part} names schema id {id_}, which is not registered"
        if not self._allows(subjects):
            shown = ", ".join(sorted(subjects)[:_SHOWN_SUBJECTS_MAX])
            return (
                f"its {self.part} names schema id {id_}, which is registered under {shown}"
                f" and not under {self._expected()}"
            )
        return None

    def _allows(self, subjects: frozenset[str]) -> bool:
        match self.strategy:
            case SubjectNameStrategy.TOPIC:
                return self._expected() in subjects
            case SubjectNameStrategy.TOPIC_RECORD:
                return any(subject.startswith(f"{self.topic}-") for subject in subjects)
            case SubjectNameStrategy.RECORD:
                return True  # The subject is the record's name, for any topic.

    def _expected(self) -> str:
        suffix = "RECORD" if self.strategy is SubjectNameStrategy.TOPIC_RECORD else self.part
        return topic_subject(self.topic, suffix, None)
