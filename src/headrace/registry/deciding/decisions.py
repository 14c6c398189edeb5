"""What a write comes to: records for `_schemas`, and the answer that leaves once they are there."""

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
    """Made on the newest state and carried out before the next one is made."""

    reply: Reply
    changes: Sequence[Change] = ()


def check_writable(state: State, subject: str | None) -> None:
    """Refuse where the mode says that nothing may change."""
    if state.mode_in_scope(subject).is_read_only:
        raise NotPermitted(f"{placed(subject)} is in read-only mode")


def placed(subject: str | None) -> str:
    """A subject and its context, as messages name them."""
    prefix = "" if subject is None else QualifiedSubject.parse(subject).context_prefix
    return f"Subject {subject} in context {prefix}"
