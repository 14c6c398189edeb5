"""Which names a topic may have.

A name becomes part of a directory name and of metric names, which sets the characters and the
length; metrics write `.` as `_`, so two topics may not differ in just that.
"""

from collections.abc import Iterable

from headrace.errors import InvalidRequest, InvalidTopicException
from headrace.protocol.metadata_topic import METADATA_TOPIC

LENGTH_MAX = 249

_LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def check_topic_name(name: str) -> None:
    """Raise unless a topic could have this name."""
    if name == METADATA_TOPIC:
        raise InvalidRequest(f"{METADATA_TOPIC} is the cluster's own log and cannot be created")
    if not name:
        raise InvalidTopicException("a topic name must not be empty")
    if name in (".", ".."):
        raise InvalidTopicException(f"a topic cannot be named '{name}', which is a directory")
    if len(name) > LENGTH_MAX:
        raise InvalidTopicException(
            f"a topic name has at most {LENGTH_MAX} characters, and this one has {len(name)}"
        )
    illegal = sorted(set(name) - _LEGAL)
    if illegal:
        raise InvalidTopicException(
            f"topic name {name!r} contains {illegal[0]!r}; "
            "letters, digits, '.', '_' and '-' are allowed"
        )


def can_collide(name: str) -> bool:
    return "." in name or "_" in name


def unified(name: str) -> str:
    """The form in which two colliding names are the same."""
    return name.replace(".", "_")


def colliding(name: str, others: Iterable[str]) -> str | None:
    """The other topic that could not be told from this one by its metrics."""
    wanted = unified(name)
    return next((other for other in others if unified(other) == wanted and other != name), None)
