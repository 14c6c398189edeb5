"""Which zones are served: those that are asked for, if there are such."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from headrace.errors import HeadraceError
from headrace.lake.catalog import Catalog
from headrace.serving.catalogue import zone_of

USUAL_ZONES = ("refined", "trusted", "staging", "raw", "quarantine")
"""What every lake may have, although it has no table there yet."""


class NoSuchZone(HeadraceError):
    """A zone that no lake has by itself, and this one has no table in."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        near = get_close_matches(name, known, n=1, cutoff=0.6)
        hint = f"; did you mean {near[0]}?" if near else ""
        super().__init__(f"there is no zone {name} (there are {', '.join(known)}){hint}")


def zones_of(catalog: Catalog) -> tuple[str, ...]:
    """The usual zones, and then those that pipelines have added, by name."""
    there = {zone_of(name) for name in (*catalog.tables, *catalog.views)}
    return (*USUAL_ZONES, *sorted(there.difference(USUAL_ZONES)))


def check_zones(asked: Iterable[str], known: Sequence[str]) -> None:
    """Refuse a name that would only ever serve nothing."""
    for name in asked:
        if name not in known:
            raise NoSuchZone(name, known)
