"""Choose the media type of an answer by the Accept header."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class MediaRange(NamedTuple):
    """A part of an Accept header: a type, possibly with wildcards, and its quality."""

    type: str
    quality: float

    @property
    def stars(self) -> int:
        return self.type.split("/").count("*")

    def covers(self, offered: str) -> bool:
        kind, _, rest = self.type.partition("/")
        other_kind, _, other_rest = offered.partition("/")
        return kind in ("*", other_kind) and rest in ("*", other_rest)


def choose(accept: str, offered: Sequence[str]) -> str | None:
    """Return the preferred type, the earlier of two equals; None if the client accepts none.

    For each type the most specific part counts: `text/csv;q=0` overrides `*/*`.
    """
    if accept in ("", "*/*"):  # Sent by most programs.
        return offered[0] if offered else None
    ranges = list(_ranges(accept)) or [MediaRange("*/*", 1.0)]
    best, best_quality = None, 0.0
    for one in offered:
        fitting = [range for range in ranges if range.covers(one)]
        quality = min(fitting, key=lambda range: range.stars).quality if fitting else 0.0
        if quality > best_quality:
            best, best_quality = one, quality
    return best


def _ranges(accept: str) -> Iterator[MediaRange]:
    for part in accept.split(","):
        type, *parameters = (piece.strip().lower() for piece in part.split(";"))
        if "/" in type:
            yield MediaRange(type, _quality(parameters))


def _quality(parameters: Sequence[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return min(max(float(value), 0.0), 1.0)
            except ValueError:
                return 0.0
    return 1.0
