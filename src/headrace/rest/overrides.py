"""Which properties of clients a caller may choose; all others are the owner's of the proxy.

A caller who could set any property could, for example, point a client at another cluster, read
files of this machine by `ssl.*.location`, or take all of its memory.
"""

from collections.abc import Callable, Mapping
from typing import Any

from headrace.errors import HeadraceError

PRODUCER = frozenset(
    {"acks", "compression.type", "delivery.timeout.ms", "linger.ms", "message.timeout.ms"}
)
CONSUMER = frozenset(
    {
        "auto.commit.interval.ms",
        "client.id",
        "client.rack",
        "enable.auto.commit",
        "fetch.max.bytes",
        "fetch.max.wait.ms",
        "group.instance.id",
        "group.protocol",
        "isolation.level",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "max.poll.records",
        "partition.assignment.strategy",
        "session.timeout.ms",
    }
)


def checked(
    given: Mapping[str, Any],
    allowed: frozenset[str],
    refuse: Callable[[str], HeadraceError],
) -> dict[str, str]:
    """The properties as text, if all of them may be set by a caller."""
    for name, value in given.items():
        if name not in allowed:
            names = ", ".join(sorted(allowed))
            raise refuse(f"{name} may not be set by a request; these may: {names}")
        if isinstance(value, list | dict) or value is None:
            raise refuse(f"{name} must be text, a number or a boolean")
    return {name: _text(value) for name, value in given.items()}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
