"""Positions in the partitions of a topic as text: `0:15,1:20`.

The numbers are the next offsets. Positions are the `id:` of events, so that a client resumes
exactly after its last record.
"""

from collections.abc import Mapping

from headrace.rest import numbers
from headrace.rest.errors import bad_request
from headrace.rest.numbers import INT32_MAX, INT64_MAX

_TEXT_MAX = 1 << 16


def written(positions: Mapping[int, int]) -> str:
    """Format positions in the order of partitions."""
    if len(positions) == 1:
        ((partition, offset),) = positions.items()
        return f"{partition}:{offset}"
    return ",".join(f"{one}:{positions[one]}" for one in sorted(positions))


def parsed(text: str, what: str) -> dict[int, int]:
    """Parse positions; `what` names the text in errors."""
    if len(text) > _TEXT_MAX:
        raise bad_request(f"{what} is longer than {_TEXT_MAX} characters")
    found: dict[int, int] = {}
    for part in text.split(","):
        partition, separator, offset = part.strip().partition(":")
        if not separator:
            raise bad_request(f"{what} has {part[:40]!r}; write PARTITION:OFFSET, as in 0:15,1:20")
        number = whole(partition, f"a partition of {what}", INT32_MAX)
        if number in found:
            raise bad_request(f"{what} names partition {number} twice")
        found[number] = whole(offset, f"an offset of {what}", INT64_MAX - 1)
    return found


def partitions(text: str, what: str) -> tuple[int, ...]:
    """Parse a list of partitions such as `0,2`."""
    if len(text) > _TEXT_MAX:
        raise bad_request(f"{what} is longer than {_TEXT_MAX} characters")
    return tuple(sorted({whole(one.strip(), f"a number of {what}") for one in text.split(",")}))


def whole(text: str, what: str, most: int = INT32_MAX) -> int:
    """Parse a number up to a bound."""
    found = numbers.whole(text, 0, most)
    if found is None:
        raise bad_request(f"{text[:40]!r} is not {what}: a number from 0 to {most}")
    return found
