"""Which of the media types that we have a client likes best, from its Accept header."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Wish(NamedTuple):
    """One part of an Accept header: a type that may have stars, and how much it is wanted."""

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
    """The offered type that is wanted most, the earlier of two equals; None if none is wanted.

    For each type the most specific wish counts, as `text/csv;q=0` beside `*/*` means.
    """
    if accept in ("", "*/*"):  # What most programs send.
        return offered[0] if offered else None
    wishes = list(_wishes(accept)) or [Wish("*/*", 1.0)]
    best, best_quality = None, 0.0
    for one in offered:
        fitting = [wish for wish in wishes if wish.covers(one)]
        quality = min(fitting, key=lambda wish: wish.stars).quality if fitting else 0.0
        if quality > best_quality:
            best, best_quality = one, quality
    return best


def _wishes(accept: str) -> Iterator[Wish]:
    for part in accept.split(","):
        type, *parameters = (piece.strip().lower() for piece in part.split(";"))
        if "/" in type:
            yield Wish(type, _quality(parameters))


def _quality(parameters: Sequence[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return min(max(float(value), 0.0), 1.0)
            except ValueError:
                return 0.0
    return 1.0
