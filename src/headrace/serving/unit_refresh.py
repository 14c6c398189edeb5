"""One step of units to the newest versions of their tables: prepared beside, shown at one moment.

Whole tables are loaded before anything is shown; appended rows go in with the publication itself,
since they go into the table that is shown. What turns out not to fit is shown by its files.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableSequence, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import duckdb
import pyarrow as pa

from headrace.lake.commits import AddedFile
from headrace.lake.merging import check_columns, covered_version, merged_select
from headrace.lake.reading import table_path
from headrace.serving import loading
from headrace.serving.database import Change, Database, Publication
from headrace.serving.loading import Rows
from headrace.serving.metrics import ServingMetrics
from headrace.serving.residency import Resident, room_for
from headrace.serving.units import ServedTable, Unit, commit_identity

_log = logging.getLogger(__name__)

_ATTEMPTS = 3
_RETRY_BELOW = 0.8
"""A table that did not fit is tried again when its files have shrunk to this part."""


@dataclass(slots=True)
class Step:
    """What becomes of one table: the new publication, and how it comes about."""

    served: ServedTable
    shown: Publication
    appended: Rows | None = None
    file_bytes: int = 0

    def published(self) -> Publication:
        """As it is once the rows are in."""
        if self.appended is None:
            return self.shown
        rows = self.served.shown.rows + self.appended.rows
        size_bytes = self.served.shown.size_bytes + self.appended.size_bytes
        return replace(self.shown, rows=rows, size_bytes=size_bytes)


class UnitRefresh:
    """Carries units over to new versions; callers hold their locks."""

    def __init__(self, database: Database, metrics: ServingMetrics, bytes_max: int) -> None:
        self._database = database
        self._metrics = metrics
        self._bytes_max = bytes_max

    def check(self, unit: Unit) -> None:
        """Refuse a merged view that does not fit its tables."""
        self._view(unit, [one.shown for one in unit.tables])

    def list(self, units: Iterable[Unit]) -> None:
        """Show the columns of units that nobody has asked for."""
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
        """Show the newest versions of these units' tables, all at the same moment."""
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
        """Index loaded tables by the columns that they have proved to be looked up by.

        One more in each round, and only where loaded tables leave room for it.
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
        """Give up what is loaded of a unit; only its columns are shown from now on."""
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
        """Add a unit's steps, each once it is made, and return the views over its tables.

        The order of the versions' look-up is the seam's: see `merging`.
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
        """Load a version whole into a table of its own, if there is room for it."""
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
            _log.info("%s is too large to load; its files are scanned instead", served.name)
            served.refused_bytes = max(file_bytes, 1)
            return self._scan(served, version, file_bytes)
        self._metrics.loads += 1
        served.refused_bytes = 0
        shown = Publication(
            served.name, version, dataset.schema, stored_as, None, rows.rows, rows.size_bytes
        )
        return Step(served, shown, file_bytes=file_bytes)

    def _make_room(self, needed_bytes: int, others: Sequence[Unit]) -> int:
        """Give up tables that were not used for longest; how much one may then have.

        For a table that would not fit into all of it nothing is given up.
        """
        loaded = {one.name: one for one in others if one.size_bytes}
        residents = [Resident(one.name, one.size_bytes, one.used_at) for one in loaded.values()]
        for name in room_for(needed_bytes, residents, self._bytes_max) or ():
            # A unit that is being refreshed at this moment is in use: it stays.
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
        # Before the commits' files are looked at: one of them may be gone by now.
        for before, step in zip(old, steps, strict=True):
            if before.stored_as is not None and before.stored_as != step.shown.stored_as:
                self._database.drop(before.stored_as)
        for step in steps:
            step.served.identity = commit_identity(step.served.table, step.shown.version)

    def _view(self, unit: Unit, shown: Sequence[Publication]) -> dict[str, str]:
        """The unit's merged view over these publications, if it has one.

        What the batch layer covers stands in the view, which is replaced in the transaction that
        shows the batch table: so any answer is the truth of some moment.
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
    """Steps as they are made; however that ends, what was loaded and is not shown is dropped."""
    steps: list[Step] = []
    try:
        yield steps
    finally:
        for step in steps:
            stored_as = step.shown.stored_as
            if stored_as is not None and stored_as != step.served.shown.stored_as:
                database.drop(stored_as)


def _note_too_large(steps: Iterable[Step], error: duckdb.Error) -> bool:
    """Whether appended rows did not fit; their tables are then shown by their files."""
    culprits = [step for step in steps if step.appended is not None]
    if not isinstance(error, duckdb.OutOfMemoryException):
        culprits = [step for step in culprits if step.appended and step.appended.is_too_large]
    for step in culprits:
        _log.info("%s has become too large; its files are scanned from now on", step.served.name)
        step.served.refused_bytes = max(step.file_bytes, 1)
    return bool(culprits)
