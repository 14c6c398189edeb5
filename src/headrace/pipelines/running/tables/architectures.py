"""A change of architecture: merged views move to other tables, and readers follow later.

The tables of the other architecture are rebuilt as a generation of their own. Tables left behind by
an earlier change are not reused: their input may have been replayed since, files that they have not
read may be gone, and the query may have changed. Until the new tables have all rows that the input
had at the start of the run, readers use the old tables, which no longer change.
"""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from headrace.lake.catalog import Catalog, Lake, MergedViewEntry
from headrace.lake.errors import TableRewritten, VersionGone
from headrace.lake.tables import Table
from headrace.pipelines.model import Architecture, MergedView, Pipeline
from headrace.pipelines.running.state.folders import PipelineState
from headrace.pipelines.running.tables.layers import tables_of

_log = logging.getLogger(__name__)


def changed_views(catalog: Catalog, pipeline: Pipeline) -> list[str]:
    """Return the merged views that readers do not see in the pipeline's architecture yet."""
    chosen = pipeline.settings.architecture
    return [
        view.name
        for view in pipeline.datasets.values()
        if isinstance(view, MergedView) and _is_kept_otherwise(catalog, view.name, chosen)
    ]


def begin(lake: Lake, state: PipelineState, pipeline: Pipeline, next_number: int) -> dict[str, int]:
    """Return the tables that merged views move to, with the generation being built.

    The tables are noted, so that the next run continues an interrupted migration. Notes of tables
    without a migration are removed, and the tables can be dropped.
    """
    catalog, noted = lake.catalog(), state.building()
    chosen = pipeline.settings.architecture
    wanted = [name for view in changed_views(catalog, pipeline) for name in tables_of(view, chosen)]
    found = {name: noted.get(name, next_number) for name in wanted}
    if found != noted:
        state.record_building(found)
    # In old lakes layers may be current although no view has them.
    lake.switch({}, hidden=[name for name in found if lake.has(name)])
    return found


@dataclass(frozen=True, slots=True)
class ViewMigration:
    """One merged view that moves to other tables."""

    view: str
    source: Table
    """The input of the aggregate."""
    goal: int
    """The version of the source that the new tables must reach."""
    stored: tuple[Table, ...]
    """The new tables; the stream writes to the last one."""
    layers: MergedViewEntry | None = None
    """The entry with which readers combine two tables."""

    def is_caught_up(self) -> bool:
        lineage = self.stored[-1].history.lineage()
        reached = -1 if lineage is None else lineage.inputs.get(self.source.name, (0, -1))[1]
        if reached < 0:
            return False
        try:  # Commits without rows may follow, which make no batch.
            return not self.source.added(reached, self.goal)
        except (TableRewritten, VersionGone):
            return False  # The stream reports the same error.


class ViewMigrations:
    """The moving merged views of a run, until readers see the new tables."""

    def __init__(
        self, lake: Lake, state: PipelineState, migrations: Sequence[ViewMigration]
    ) -> None:
        self._lake = lake
        self._state = state
        self._migrations = tuple(migrations)

    @property
    def views(self) -> Collection[str]:
        """The views whose new tables may lack rows."""
        return {migration.view for migration in self._migrations}

    def complete(self) -> None:
        """Switch readers to the new tables, all at once, if all have caught up."""
        if not self._migrations or not all(
            migration.is_caught_up() for migration in self._migrations
        ):
            return
        self._lake.switch(
            {
                table.name: table.generation
                for migration in self._migrations
                for table in migration.stored
            },
            hidden=[name for migration in self._migrations for name in _places(migration.view)],
            views={
                migration.view: migration.layers
                for migration in self._migrations
                if migration.layers is not None
            },
        )
        self._state.record_building({})
        _log.info("merged views moved to other tables", extra={"views": ", ".join(self.views)})
        self._migrations = ()


def is_built(
    catalog: Catalog, state: PipelineState, pipeline: Pipeline, table: str, generation: int
) -> bool:
    """Return whether a run builds these tables for a change of architecture, or will continue."""
    if state.building().get(table) != generation:
        return False
    return state.is_held() or bool(changed_views(catalog, pipeline))


def _is_kept_otherwise(catalog: Catalog, view: str, chosen: Architecture) -> bool:
    entry = catalog.tables.get(view)
    if chosen is Architecture.LAMBDA:
        return view not in catalog.views and entry is not None
    layers = tables_of(view, Architecture.LAMBDA)
    is_whole = entry is not None and entry.current is not None
    is_layered = view in catalog.views or any(name in catalog.tables for name in layers)
    return is_layered and not is_whole


def _places(view: str) -> list[str]:
    """Return all tables that may hold a merged view, in any architecture."""
    return [name for architecture in Architecture for name in tables_of(view, architecture)]
