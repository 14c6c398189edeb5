"""Valid names of topics.

A name becomes part of a directory name and of metric names, which limits its characters and
length. Metrics write `.` as `_`, so the names of two topics may not differ only in these.
"""

from collections.abc import Iterable

from headrace.errors import InvalidRequest, InvalidTopicException
from headrace.protocol.metadata_topic import METADATA_TOPIC

LENGTH_MAX = 249

_LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def check_topic_name(name: str) -> None:
    """Raise unless the name is valid."""
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
    """Return the form that two colliding names share."""
    return name.replace(".", "_")


def colliding(name: str, others: Iterable[str]) -> str | None:
    """Return another topic whose metrics would have the same names."""
    wanted = unified(name)
    return next((other for other in others if unified(other) == wanted and other != name), None)
