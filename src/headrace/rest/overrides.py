"""Client properties that a caller may set, and their bounds; all others are the owner's.

Unrestricted properties would let a caller point a client at another cluster, read files of this
machine by `ssl.*.location`, or exhaust memory and time.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headrace.errors import HeadraceError
from headrace.http.operations import Parameter
from headrace.rest.numbers import whole

Check = Callable[[str], str | None]
"""Returns the fault of a value, or None."""


def _one_of(*values: str) -> Check:
    def check(text: str) -> str | None:
        return None if text in values else f"it must be one of {', '.join(values)}"

    return check


def _number(low: int, high: int) -> Check:
    def check(text: str) -> str | None:
        is_right = whole(text, low, high) is not None
        return None if is_right else f"it must be a number from {low} to {high}"

    return check


def _name(text: str) -> str | None:
    is_name = 0 < len(text.strip()) <= 255 and text.isprintable()
    return None if is_name else "it must be a name of 1 to 255 printable characters"


PRODUCER: Mapping[str, Check] = {
    "acks": _one_of("all", "-1", "0", "1"),
    "compression.type": _one_of("none", "gzip", "snappy", "lz4", "zstd"),
    "delivery.timeout.ms": _number(1, 30_000),
    "linger.ms": _number(0, 1_000),
}
CONSUMER: Mapping[str, Check] = {
    "auto.commit.interval.ms": _number(1, 3_600_000),
    "client.id": _name,
    "client.rack": _name,
    "enable.auto.commit": _one_of("true", "false"),
    "fetch.max.bytes": _number(1_000, 64 << 20),
    "fetch.max.wait.ms": _number(0, 30_000),
    "group.instance.id": _name,
    "group.protocol": _one_of("classic", "consumer"),
    "isolation.level": _one_of("read_committed", "read_uncommitted"),
    "max.partition.fetch.bytes": _number(1, 64 << 20),
    "max.poll.interval.ms": _number(1, 3_600_000),
    "max.poll.records": _number(1, 10_000),
    "partition.assignment.strategy": _one_of("range", "roundrobin", "cooperative-sticky"),
    "session.timeout.ms": _number(1, 3_600_000),
}


INSTANCE = (
    "auto.commit.enable",
    "auto.offset.reset",
    "consumer.request.timeout.ms",
    "fetch.min.bytes",
)
"""Settings of a consumer instance that are not properties of librdkafka."""
PARAMETERS = tuple(
    Parameter(name, "A property of the producer for this request.") for name in sorted(PRODUCER)
)


def checked(
    given: Mapping[str, Any],
    allowed: Mapping[str, Check],
    error: Callable[[str], HeadraceError],
    *,
    besides: Sequence[str] = (),
) -> dict[str, str]:
    """Return properties as text if a caller may set all of them to these values.

    The error lists the allowed names, including `besides`, which the caller has checked.
    """
    found = {}
    for name, value in given.items():
        if name not in allowed:
            names = ", ".join(sorted([*allowed, *besides]))
            raise error(f"{name[:80]} cannot be set by a request; allowed are {names}")
        text = str(value).lower() if isinstance(value, bool) else str(value)
        wrong = allowed[name](text)
        if wrong is not None:
            raise error(f"{name} is {text[:40]!r}; {wrong}")
        found[name] = text
    return found
