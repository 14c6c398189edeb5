"""Refresh the visible tables to the lake's newest versions.

An unused unit is only listed. Its first query loads its tables, or scans their files if they are
too large. From then on the unit is refreshed: appended rows are added to the loaded table; after
any other change the table is loaded again next to the old one.
"""

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from time import monotonic

import duckdb
import pyarrow as pa

from headrace.errors import HeadraceError
from headrace.lake.catalog import Catalog, Lake
from headrace.serving.catalogue import UnitPlan, planned_units, spellings, zone_of, zones_of
from headrace.serving.database import Change, Database, Publication
from headrace.serving.errors import TableNotFound, TableUnavailable
from headrace.serving.metrics import ServingMetrics
from headrace.serving.settings import ServingSettings
from headrace.serving.unit_refresh import UnitRefresh
from headrace.serving.units import Unit, opened, was_recreated

_log = logging.getLogger(__name__)

_FAILURES = (HeadraceError, OSError, duckdb.Error, pa.ArrowException, MemoryError)
"""Errors of one table that do not affect others."""
_QUICK_BYTES = 64 << 20
"""Larger tables are scanned for the first queries, while they are loaded in the background."""
_REST_FACTOR = 4.0
"""The pause after loading a table, or failing to, as a multiple of the time it took."""


class Refresher:
    """All units; queries load them from any thread, rounds refresh them in one thread."""

    def __init__(
        self,
        settings: ServingSettings,
        database: Database,
        metrics: ServingMetrics,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._settings = settings
        self._lake = Lake(settings.lake)
        self._database = database
        self._metrics = metrics
        self._clock = clock
        self._refresh = UnitRefresh(database, metrics, settings.tables_bytes_max)
        self._catalog = Catalog()
        self._plans: dict[str, UnitPlan] = {}
        self._unreadable: dict[str, str] = {}
        self._units: dict[str, Unit] = {}
        self._unit_of: dict[str, str] = {}
        self._spellings: Mapping[str, str] = {}
        self._closed_zones: frozenset[str] = frozenset()
        self._sync_failure = ""
        self._sync_due_at = 0.0
        self._syncing = threading.Lock()
        self._submitting = threading.Lock()
        self._warming: dict[str, Future[None]] = {}
        self._warmer = ThreadPoolExecutor(1, thread_name_prefix="serving-warm")

    @property
    def spellings(self) -> Mapping[str, str]:
        """Served names by each of their spellings, in lower case."""
        return self._spellings

    @property
    def closed_zones(self) -> Collection[str]:
        """Zones that exist but are not served."""
        return self._closed_zones

    @property
    def catalog(self) -> Catalog:
        return self._catalog

    def unit(self, name: str) -> Unit | None:
        found = self._unit_of.get(name)
        return None if found is None else self._units.get(found)

    def resolve(self, written: str) -> str:
        """Return the name of a served table or view, in any spelling."""
        name = self._spellings.get(written.lower())
        if name is None:
            raise TableNotFound(written, sorted(set(self._spellings.values())), self._closed_zones)
        return name

    def column_types(self, name: str) -> dict[str, str]:
        """Return the columns of a table or view with their types, without reading rows."""
        unit = self.unit(name)
        assert unit is not None
        for one in unit.tables:
            if one.name == name:
                return self._database.types_of(one.shown.schema)
        assert unit.view is not None
        batch = next(one for one in unit.tables if one.name == unit.view.batch)
        types = self._database.types_of(batch.shown.schema)
        return {column: types[column] for column in (*unit.view.keys, *unit.view.merge)}

    def units(self) -> list[Unit]:
        return list(self._units.values())

    def publications(self) -> list[Publication]:
        return [one.shown for unit in self.units() for one in unit.tables]

    def sync(self) -> None:
        """Adopt the present catalog of the lake."""
        with self._syncing:
            catalog = self._lake.catalog()
            plans = planned_units(catalog, self._settings.zones)
            recreated = self._recreated()
            if plans == self._plans and catalog == self._catalog and not recreated:
                return
            for name in self._plans.keys() - plans.keys():
                self._forget(name)
            before = self._shown()
            self._catalog = catalog
            try:
                self._take_over(
                    [
                        plan
                        for plan in plans.values()
                        if self._plans.get(plan.name) != plan or plan.name in recreated
                    ]
                )
            finally:  # An unreadable generation keeps the old one visible.
                self._index_names()
            if gone := before - self._shown():  # The layers of a view that became a table.
                self._database.publish(Change(forgotten=sorted(gone)))

    def warm(self, names: Iterable[str], seconds: float) -> None:
        """Load these tables and views for a query, within a time."""
        ends_at = self._clock() + seconds
        for name in {self._unit_of[name] for name in names if name in self._unit_of}:
            unit = self._units.get(name)
            if unit is None:
                continue
            self.touch(unit)
            if not unit.is_warm:
                self._wait_for(unit, max(ends_at - self._clock(), 0.0))

    def touch(self, unit: Unit) -> None:
        """Record the use of a unit: the least recently used is evicted first."""
        unit.used_at = self._clock()

    def note_lookup(self, name: str, column: str) -> None:
        """Count the columns of lookups; frequent ones get an index."""
        for one in unit.tables if (unit := self.unit(name)) else ():
            if one.name == name:
                one.count_lookup(column)

    def round(self) -> None:
        """Check the catalog and every unit in use once."""
        if self._clock() >= self._sync_due_at:
            self._sync_in_round()
        for unit in self.units():
            if unit.is_warm and self._clock() >= unit.due_at:
                self._refresh_in_round(unit)

    def close(self) -> None:
        self._warmer.shutdown(wait=True, cancel_futures=True)

    def _wait_for(self, unit: Unit, seconds: float) -> None:
        """Load a unit once for all queries that wait for it."""
        with self._submitting:
            future = self._warming.get(unit.name)
            if future is None or future.done():
                future = self._warmer.submit(self._warm_now, unit)
                self._warming[unit.name] = future
        try:
            future.result(seconds)
        except TimeoutError as error:
            raise TableUnavailable(
                f"{unit.name} is not loaded yet; retry soon", retry_after_s=2
            ) from error

    def _warm_now(self, unit: Unit) -> None:
        try:
            with unit.lock:
                if unit.is_warm or not self._is_current(unit):
                    return
                self._refresh.refresh([unit], self.units(), quick_bytes_max=_QUICK_BYTES)
                unit.is_warm = True
        except _FAILURES as error:
            self._note_failure(unit, error)
            raise TableUnavailable(f"{unit.name} cannot be read: {unit.failure}") from error

    def _sync_in_round(self) -> None:
        """Adopt the catalog; log an error once and keep the present state."""
        began = self._clock()
        reason = ""
        try:
            self.sync()
        except _FAILURES as error:
            self._metrics.load_failures += 1
            self._sync_due_at = self._rested(began)
            reason = _reason(error)
            if reason != self._sync_failure:
                _log.warning("catalog not refreshed, keeping the old one", extra={"error": reason})
        self._sync_failure = reason

    def _refresh_in_round(self, unit: Unit) -> None:
        began = self._clock()
        loads = self._metrics.loads
        try:
            with unit.lock:
                if self._is_current(unit):
                    self._refresh.refresh([unit], self.units())
                    self._refresh.index(unit, self.units())
            unit.failure = ""
        except _FAILURES as error:
            self._note_failure(unit, error)
        if self._metrics.loads > loads or unit.failure:
            unit.due_at = self._rested(began)

    def _rested(self, began: float) -> float:
        """Return the time for the next attempt."""
        return self._clock() + _REST_FACTOR * (self._clock() - began)

    def _is_current(self, unit: Unit) -> bool:
        """Return whether the unit was not replaced while its lock was awaited."""
        return self._units.get(unit.name) is unit

    def _note_failure(self, unit: Unit, error: Exception) -> None:
        """Log an error once; the visible version stays."""
        self._metrics.load_failures += 1
        reason = _reason(error)
        if reason != unit.failure:
            fields = {"table": unit.name, "error": reason}
            _log.warning("table not refreshed, keeping the old version", extra=fields)
        unit.failure = reason

    def _recreated(self) -> set[str]:
        """Return units whose tables were removed and created again in the same place."""
        return {unit.name for unit in self.units() if any(map(was_recreated, unit.tables))}

    def _take_over(self, plans: Sequence[UnitPlan]) -> None:
        """Publish new units, and all new generations of units in use at the same moment."""
        units = [(plan, unit) for plan in plans if (unit := self._opened(plan)) is not None]
        old = {unit.name: self._units.get(unit.name) for _, unit in units}
        in_use = {name for name, unit in old.items() if unit is not None and unit.is_warm}
        replacing = [(plan, unit) for plan, unit in units if unit.name in in_use]
        listed = [(plan, unit) for plan, unit in units if unit.name not in in_use]

        def install() -> None:
            for plan, unit in replacing:
                self._install(plan, unit)

        with ExitStack() as locked:
            for before in filter(None, old.values()):
                locked.enter_context(before.lock)
            self._refresh.list(unit for _, unit in listed)
            for plan, unit in listed:
                self._install(plan, unit)
            if replacing:
                new = [unit for _, unit in replacing]
                self._refresh.refresh(new, self.units(), on_published=install)
            for before in filter(None, old.values()):
                self._drop_stored(before)

    def _install(self, plan: UnitPlan, unit: Unit) -> None:
        """Replace the unit of this name."""
        before = self._units.get(unit.name)
        if before is not None:
            unit.is_warm, unit.used_at = before.is_warm, before.used_at
        self._units[unit.name] = unit
        self._plans[unit.name] = plan

    def _opened(self, plan: UnitPlan) -> Unit | None:
        keys = plan.view.keys if plan.view else ()
        try:
            tables = tuple(
                opened(self._lake.table(name, generation), keys) for name, generation in plan.tables
            )
            unit = Unit(plan.name, tables, plan.view)
            self._refresh.check(unit)
        except (HeadraceError, OSError) as error:
            if self._unreadable.get(plan.name) != str(error):
                fields = {"table": plan.name, "error": str(error)}
                _log.warning("table not served", extra=fields)
            self._unreadable[plan.name] = str(error)
            return None
        self._unreadable.pop(plan.name, None)
        for name in plan.shown:
            self._database.add_zone(zone_of(name))
        return unit

    def _forget(self, name: str) -> None:
        """Remove a unit that is gone from the catalog."""
        unit = self._units.pop(name)
        with unit.lock:
            unit.is_warm = False
            self._database.publish(Change(forgotten=self._plans.pop(name).shown))
            self._drop_stored(unit)

    def _drop_stored(self, unit: Unit) -> None:
        for stored_as in [one.shown.stored_as for one in unit.tables]:
            if stored_as is not None:
                self._database.drop(stored_as)

    def _shown(self) -> set[str]:
        return {name for plan in self._plans.values() for name in plan.shown}

    def _index_names(self) -> None:
        self._unit_of = {name: plan.name for plan in self._plans.values() for name in plan.shown}
        zones = self._settings.zones
        self._spellings = spellings(self._unit_of, zones, zones[0])
        self._closed_zones = frozenset(zones_of(self._catalog)).difference(zones)


def _reason(error: Exception) -> str:
    """Return an error as one line, without the traceback that DuckDB appends for readers."""
    first = str(error).partition("\n")[0].partition(" Detail: Python exception")[0]
    return first or type(error).__name__
