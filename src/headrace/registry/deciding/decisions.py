"""The decision of a write: records for `_schemas`, and the answer sent once they are written."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from headrace.registry.errors import NotPermitted
from headrace.registry.model.records import Change
from headrace.registry.model.state import State
from headrace.serdes.subject_names import QualifiedSubject

Reply = TypeVar("Reply", covariant=True)


@dataclass(frozen=True, slots=True)
class Decision(Generic[Reply]):
    """Made on the newest state and written before the next one is made."""

    reply: Reply
    changes: Sequence[Change] = ()


def check_writable(state: State, subject: str | None) -> None:
    """Refuse a change in a read-only mode."""
    if state.mode_in_scope(subject).is_read_only:
        raise NotPermitted(f"{placed(subject)} is in read-only mode")


def placed(subject: str | None) -> str:
    """Return a subject and its context in the words of Confluent's messages."""
    prefix = "" if subject is None else QualifiedSubject.parse(subject).context_prefix
    return f"Subject {subject} in context {prefix}"
