"""Refresh units to the newest versions of their tables, visible at the same moment.

Whole tables are loaded before the publication. Appended rows are inserted within the publication,
because they go into the visible table. Files of tables that do not fit into memory are scanned.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableSequence, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import duckdb
import pyarrow as pa

from headrace.lake.commit_log import AddedFile
from headrace.lake.merged_views import check_columns, covered_version, merged_select
from headrace.lake.reading import table_path
from headrace.serving import loading
from headrace.serving.database import Change, Database, Publication
from headrace.serving.loading import Rows
from headrace.serving.metrics import ServingMetrics
from headrace.serving.units import ServedTable, Unit, commit_identity

_log = logging.getLogger(__name__)

_ATTEMPTS = 3
_RETRY_BELOW = 0.8
"""A table that did not fit is loaded again once its files have shrunk to this fraction."""


@dataclass(slots=True)
class Step:
    """The refresh of one table: its new publication, and the rows to append."""

    served: ServedTable
    shown: Publication
    appended: Rows | None = None
    file_bytes: int = 0

    def published(self) -> Publication:
        """Return the publication after the rows are inserted."""
        if self.appended is None:
            return self.shown
        rows = self.served.shown.rows + self.appended.rows
        size_bytes = self.served.shown.size_bytes + self.appended.size_bytes
        return replace(self.shown, rows=rows, size_bytes=size_bytes)


class UnitRefresh:
    """Refreshes units whose locks the caller holds."""

    def __init__(self, database: Database, metrics: ServingMetrics, bytes_max: int) -> None:
        self._database = database
        self._metrics = metrics
        self._bytes_max = bytes_max

    def check(self, unit: Unit) -> None:
        """Refuse a merged view that does not fit its tables."""
        self._view(unit, [one.shown for one in unit.tables])

    def list(self, units: Iterable[Unit]) -> None:
        """Publish the columns of unused units."""
        publications: list[Publication] = []
        views: dict[str, str] = {}
        for unit in units:
            publications += [one.shown for one in unit.tables]
            views |= self._view(unit, [one.shown for one in unit.tables])
        self._database.publish(Change(publications, views=views))

    def refresh(
        self,
        units: Sequence[Unit],
        all_units: Iterable[Unit],
        *,
        quick_bytes_max: int | None = None,
        on_published: Callable[[], None] = lambda: None,
    ) -> None:
        """Publish the newest versions of these units' tables, all at the same moment."""
        others = [unit for unit in all_units if unit not in units]
        for attempt in range(1, _ATTEMPTS + 1):
            with _unpublished_dropped(self._database) as steps:
                views: dict[str, str] = {}
                for unit in units:
                    views |= self._prepare(unit, others, quick_bytes_max, steps)
                if not steps:
                    return
                try:
                    self._publish(steps, views, on_published)
                    return
                except duckdb.Error as error:
                    if attempt == _ATTEMPTS or not _note_too_large(steps, error):
                        raise

    def index(self, unit: Unit, all_units: Iterable[Unit]) -> None:
        """Index loaded tables by the columns of frequent lookups.

        One more index per table and round, and only if memory is left.
        """
        room = self._bytes_max - sum(one.size_bytes for one in all_units)
        for one in unit.tables:
            column, stored_as = one.column_to_index(), one.shown.stored_as
            more = one.shown.rows * loading.INDEX_BYTES_PER_ROW
            if column is None or stored_as is None or more > room:
                continue
            self._database.index(stored_as, column)
            one.indexes += (column,)
            one.shown = replace(one.shown, size_bytes=one.shown.size_bytes + more)
            room -= more

    def evict(self, unit: Unit) -> None:
        """Evict the loaded tables of a unit; only its columns stay visible."""
        stored = [one.shown.stored_as for one in unit.tables]
        bare = [Publication(one.name, -1, one.shown.schema) for one in unit.tables]

        def take_over() -> None:
            unit.is_warm = False
            for served, shown in zip(unit.tables, bare, strict=True):
                served.shown = shown

        self._database.publish(Change(bare, views=self._view(unit, bare)), take_over)
        for name in filter(None, stored):
            self._database.drop(name)
        self._metrics.evictions += 1

    def _prepare(
        self,
        unit: Unit,
        others: Sequence[Unit],
        quick_bytes_max: int | None,
        steps: MutableSequence[Step],
    ) -> dict[str, str]:
        """Append the steps of a unit, each when it is ready, and return the unit's views.

        `lake.merged_views` requires the versions to be read in the order of the tables.
        """
        versions = [one.table.version for one in unit.tables]
        changed: dict[str, Publication] = {}
        for served, version in zip(unit.tables, versions, strict=True):
            step = self._step(served, version, others, quick_bytes_max)
            if step is not None:
                steps.append(step)
                changed[served.name] = step.shown
        shown = [changed.get(one.name, one.shown) for one in unit.tables]
        return self._view(unit, shown) if changed else {}

    def _step(
        self,
        served: ServedTable,
        version: int,
        others: Sequence[Unit],
        quick_bytes_max: int | None,
    ) -> Step | None:
        shown = served.shown
        if shown.is_loaded and shown.version == version:
            return None
        if shown.is_loaded and not served.refused_bytes:
            added = loading.files_added(served.table, shown.version, version)
            if added is not None:
                return self._append(served, version, added)
        files = served.table.files(version)
        file_bytes = sum(file.size_bytes for file in files)
        if file_bytes > self._bytes_max:
            served.refused_bytes = file_bytes
        is_refused = file_bytes > served.refused_bytes * _RETRY_BELOW > 0
        if is_refused or (quick_bytes_max is not None and file_bytes > quick_bytes_max):
            return self._scan(served, version, file_bytes)
        rows = sum(file.rows for file in files) if all(f.rows >= 0 for f in files) else -1
        return self._load(served, version, file_bytes, rows, others)

    def _append(self, served: ServedTable, version: int, files: Sequence[AddedFile]) -> Step:
        shown = replace(served.shown, version=version)
        if not files:
            return Step(served, shown)
        room = self._bytes_max - served.shown.size_bytes
        indexes = len(served.indexes)
        rows = loading.appended(served.table, files, shown.schema, room, indexes=indexes)
        size = sum(file.size_bytes for file in served.table.files(version))
        return Step(served, shown, rows, size)

    def _scan(self, served: ServedTable, version: int, file_bytes: int) -> Step | None:
        if served.shown.dataset is not None and served.shown.version == version:
            return None
        dataset = served.table.dataset(version)
        shown = Publication(served.name, version, dataset.schema, dataset=dataset)
        return Step(served, shown, file_bytes=file_bytes)

    def _load(
        self,
        served: ServedTable,
        version: int,
        file_bytes: int,
        rows_expected: int,
        others: Sequence[Unit],
    ) -> Step | None:
        """Load a version into a new table if it fits into memory."""
        dataset = served.table.dataset(version)
        indexes = len(served.indexes)
        needed = loading.estimated_bytes(dataset, rows_expected, indexes=indexes)
        room = self._make_room(max(needed, file_bytes), others)
        rows = loading.whole(dataset, room, indexes=indexes)
        try:
            stored_as = self._database.load(rows.reader, served.indexes)
        except (duckdb.Error, pa.ArrowException) as error:
            if not (rows.is_too_large or isinstance(error, duckdb.OutOfMemoryException)):
                raise
            _log.info("table too large to load, scanning its files", extra={"table": served.name})
            served.refused_bytes = max(file_bytes, 1)
            return self._scan(served, version, file_bytes)
        self._metrics.loads += 1
        served.refused_bytes = 0
        shown = Publication(
            served.name, version, dataset.schema, stored_as, None, rows.rows, rows.size_bytes
        )
        return Step(served, shown, file_bytes=file_bytes)

    def _make_room(self, needed_bytes: int, others: Sequence[Unit]) -> int:
        """Evict the least recently used tables; return the free memory.

        Nothing is evicted for a table that would never fit.
        """
        loaded = {one.name: one for one in others if one.size_bytes}
        for name in to_evict(needed_bytes, loaded.values(), self._bytes_max):
            # A unit that is being refreshed is in use and stays.
            if loaded[name].lock.acquire(blocking=False):
                try:
                    self.evict(loaded[name])
                finally:
                    loaded[name].lock.release()
        return self._bytes_max - sum(one.size_bytes for one in loaded.values())

    def _publish(
        self,
        steps: Sequence[Step],
        views: Mapping[str, str],
        on_published: Callable[[], None],
    ) -> None:
        appended = {
            step.shown.stored_as: step.appended.reader
            for step in steps
            if step.shown.stored_as is not None and step.appended is not None
        }
        change = Change([step.shown for step in steps], appended, views)
        old = [step.served.shown for step in steps]

        def take_over() -> None:
            for step in steps:
                step.served.shown = step.published()
            on_published()

        self._database.publish(change, take_over)
        self._metrics.appends += len(appended)
        # Before reading the commits' files, which may be gone by now.
        for before, step in zip(old, steps, strict=True):
            if before.stored_as is not None and before.stored_as != step.shown.stored_as:
                self._database.drop(before.stored_as)
        for step in steps:
            step.served.identity = commit_identity(step.served.table, step.shown.version)

    def _view(self, unit: Unit, shown: Sequence[Publication]) -> dict[str, str]:
        """Return the unit's merged view over these publications, if it has one.

        The view contains the version that the batch layer covers. It is replaced in the transaction
        that publishes the batch table, so that every answer is consistent.
        """
        if unit.view is None:
            return {}
        tables = {one.name: one.table for one in unit.tables}
        by_name = {one.name: one for one in shown}
        batch, speed = by_name[unit.view.batch], by_name[unit.view.speed]
        check_columns(unit.view, batch.schema.names, speed.schema.names)
        is_listed_only = batch.version < 0
        covered = -1 if is_listed_only else covered_version(tables[batch.name], batch.version)
        types = self._database.types_of(batch.schema)
        paths = table_path(batch.name), table_path(speed.name)
        return {unit.view.name: merged_select(unit.view, covered, *paths, types)}


@contextmanager
def _unpublished_dropped(database: Database) -> Iterator[list[Step]]:
    """Collect steps; at the end drop tables that were loaded but not published."""
    steps: list[Step] = []
    try:
        yield steps
    finally:
        for step in steps:
            stored_as = step.shown.stored_as
            if stored_as is not None and stored_as != step.served.shown.stored_as:
                database.drop(stored_as)


def _note_too_large(steps: Iterable[Step], error: duckdb.Error) -> bool:
    """Return whether appended rows did not fit; scan their tables' files from now on."""
    culprits = [step for step in steps if step.appended is not None]
    if not isinstance(error, duckdb.OutOfMemoryException):
        culprits = [step for step in culprits if step.appended and step.appended.is_too_large]
    for step in culprits:
        _log.info("table grew too large, scanning its files", extra={"table": step.served.name})
        step.served.refused_bytes = max(step.file_bytes, 1)
    return bool(culprits)


def to_evict(needed_bytes: int, loaded: Iterable[Unit], bytes_max: int) -> list[str]:
    """Return the units to evict, least recently used first; none if the need exceeds all memory."""
    if needed_bytes > bytes_max:
        return []
    by_age = sorted(loaded, key=lambda one: one.used_at)
    free = bytes_max - sum(one.size_bytes for one in by_age)
    leaving: list[str] = []
    for one in by_age:
        if free >= needed_bytes:
            break
        leaving.append(one.name)
        free += one.size_bytes
    return leaving
