"""The served tables and views: zones and units of the lake's catalog, with their names."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from headrace.errors import HeadraceError
from headrace.lake.catalog import Catalog, MergedViewEntry
from headrace.lake.merged_views import layers_of

USUAL_ZONES = ("refined", "trusted", "staging", "raw", "quarantine")
"""Zones of every lake, even without tables."""


@dataclass(frozen=True, slots=True)
class UnitPlan:
    """A unit before its tables are opened."""

    name: str
    tables: tuple[tuple[str, int], ...]
    view: MergedViewEntry | None = None

    @property
    def shown(self) -> tuple[str, ...]:
        """The names of the DuckDB views of this unit."""
        names = tuple(name for name, _ in self.tables)
        return (*names, self.view.name) if self.view else names


def planned_units(catalog: Catalog, zones: Iterable[str]) -> dict[str, UnitPlan]:
    """Return the served units by name; tables of other zones are served only within views."""
    served = set(zones)
    current = {
        entry.name: entry.current for entry in catalog.tables.values() if entry.current is not None
    }
    plans: dict[str, UnitPlan] = {}
    taken: set[str] = set()
    for view in catalog.views.values():
        names = layers_of(view)
        if zone_of(view.name) in served and all(name in current for name in names):
            tables = tuple((name, current[name]) for name in names)
            plans[view.name] = UnitPlan(view.name, tables, view)
            taken.update(names)
    for name, generation in current.items():
        if zone_of(name) in served and name not in taken:
            plans[name] = UnitPlan(name, ((name, generation),))
    return plans


def spellings(names: Iterable[str], zones: Iterable[str], default_zone: str) -> Mapping[str, str]:
    """Return served names by each of their spellings, in lower case."""
    served = set(zones)
    known: dict[str, str] = {}
    for name in names:
        if zone_of(name) not in served:
            continue
        known[name.lower()] = name
        if zone_of(name) == default_zone:
            known.setdefault(name.partition(".")[2].lower(), name)
    return known


def zone_of(name: str) -> str:
    return name.partition(".")[0]


class NoSuchZone(HeadraceError):
    """An unknown zone."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        near = get_close_matches(name, known, n=1, cutoff=0.6)
        hint = f"; did you mean {near[0]}?" if near else ""
        super().__init__(f"unknown zone {name}; known are {', '.join(known)}{hint}")


def zones_of(catalog: Catalog) -> tuple[str, ...]:
    """Return the usual zones, then those added by pipelines, by name."""
    there = {zone_of(name) for name in (*catalog.tables, *catalog.views)}
    return (*USUAL_ZONES, *sorted(there.difference(USUAL_ZONES)))


def check_zones(asked: Iterable[str], known: Sequence[str]) -> None:
    """Reject unknown zones, which would serve nothing."""
    for name in asked:
        if name not in known:
            raise NoSuchZone(name, known)
