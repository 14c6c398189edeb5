"""Where a reader stands in the partitions of a topic, as text: `0:15,1:20`.

The numbers are the offsets that come next. It is the `id:` of events, so that a client that
comes back says exactly what it has not seen.
"""

from collections.abc import Mapping

from headrace.rest.errors import bad_request
from headrace.rest.numbers import INT32_MAX
from headrace.rest.numbers import whole as number_of

_TEXT_MAX = 1 << 16
_INT64_MAX = (1 << 63) - 1


def written(positions: Mapping[int, int]) -> str:
    """The text of positions, by the order of the partitions."""
    if len(positions) == 1:
        ((partition, offset),) = positions.items()
        return f"{partition}:{offset}"
    return ",".join(f"{one}:{positions[one]}" for one in sorted(positions))


def parsed(text: str, what: str) -> dict[int, int]:
    """The positions of a text; `what` names it in the error."""
    if len(text) > _TEXT_MAX:
        raise bad_request(f"{what} is longer than {_TEXT_MAX} letters")
    found: dict[int, int] = {}
    for part in text.split(","):
        partition, separator, offset = part.strip().partition(":")
        if not separator:
            raise bad_request(f"{what} has {part[:40]!r}; write PARTITION:OFFSET, as 0:15,1:20")
        number = whole(partition, f"a partition of {what}", INT32_MAX)
        if number in found:
            raise bad_request(f"{what} names partition {number} twice")
        found[number] = whole(offset, f"an offset of {what}", _INT64_MAX - 1)
    return found


def partitions(text: str, what: str) -> tuple[int, ...]:
    """A list of partitions as `0,2`, in order."""
    if len(text) > _TEXT_MAX:
        raise bad_request(f"{what} is longer than {_TEXT_MAX} letters")
    return tuple(sorted({whole(one.strip(), f"a number of {what}") for one in text.split(",")}))


def whole(text: str, what: str, most: int = INT32_MAX) -> int:
    """A number of digits alone, bounded."""
    found = number_of(text, 0, most)
    if found is None:
        raise bad_request(f"{text[:40]!r} is not {what}: a number from 0 to {most}")
    return found
