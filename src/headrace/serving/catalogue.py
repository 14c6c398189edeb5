"""The tables and views that may be asked for: the lake's catalog, as units with their names."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headrace.lake.catalog import Catalog, MergedViewEntry
from headrace.lake.merging import layers_of


@dataclass(frozen=True, slots=True)
class UnitPlan:
    """A unit before its tables are opened: their names, generations and keys."""

    name: str
    tables: tuple[tuple[str, int], ...]
    view: MergedViewEntry | None = None

    @property
    def shown(self) -> tuple[str, ...]:
        """Every name that becomes a view of DuckDB's with this unit."""
        names = tuple(name for name, _ in self.tables)
        return (*names, self.view.name) if self.view else names


def planned_units(catalog: Catalog, zones: Iterable[str]) -> dict[str, UnitPlan]:
    """What to serve, by the names of the units; tables of no served zone only within views."""
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
    """For each way to write a served name, in lower case, the name."""
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
