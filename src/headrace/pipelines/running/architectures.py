"""A change of architecture: merged views move to other tables, readers when these are whole.

The tables of the other architecture are built anew, as a generation of their own. Those that an
earlier change has left behind are not gone on with: their input may have been replayed since, what
they have yet to read of it may be joined and gone, and the query may be another one. Until the new
ones have all that the input held when the run began, readers stay with the old ones as they were.
"""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from headrace.lake.catalog import Catalog, Lake, MergedViewEntry
from headrace.lake.errors import TableRewritten, VersionGone
from headrace.lake.tables import Table
from headrace.pipelines.model import Architecture, MergedView, Pipeline
from headrace.pipelines.running.layers import tables_of
from headrace.pipelines.running.state import PipelineState

_log = logging.getLogger(__name__)


def changed_views(catalog: Catalog, pipeline: Pipeline) -> list[str]:
    """The merged views that readers do not yet see as the pipeline's architecture asks."""
    chosen = pipeline.settings.architecture
    return [
        view.name
        for view in pipeline.datasets.values()
        if isinstance(view, MergedView) and _is_kept_otherwise(catalog, view.name, chosen)
    ]


def begin(lake: Lake, state: PipelineState, pipeline: Pipeline, next_number: int) -> dict[str, int]:
    """The tables that merged views are to move to, each with the generation that is built of it.

    It is noted, so that a run that was cut off is gone on with by the next one. A note of tables
    that nobody moves to any more is forgotten, and they are left to be dropped.
    """
    catalog, noted = lake.catalog(), state.building()
    chosen = pipeline.settings.architecture
    wanted = [name for view in changed_views(catalog, pipeline) for name in tables_of(view, chosen)]
    found = {name: noted.get(name, next_number) for name in wanted}
    if found != noted:
        state.note_building(found)
    # In lakes of before, layers may count although no view has them.
    lake.switch({}, hidden=[name for name in found if lake.has(name)])
    return found


@dataclass(frozen=True, slots=True)
class Move:
    """One merged view on its way to other tables."""

    view: str
    source: Table
    """What the view is an aggregate of."""
    goal: int
    """The version of the source that the new tables must have reached."""
    stored: tuple[Table, ...]
    """The new tables; the last of them is the one that the stream writes to."""
    layers: MergedViewEntry | None = None
    """How readers put the tables together, where they are two."""

    def is_caught_up(self) -> bool:
        lineage = self.stored[-1].history.lineage()
        reached = -1 if lineage is None else lineage.inputs.get(self.source.name, (0, -1))[1]
        if reached < 0:
            return False
        try:  # Commits without rows may follow, which no batch is made of.
            return not self.source.added(reached, self.goal)
        except (TableRewritten, VersionGone):
            return False  # The stream meets the same, and says so.


class Moving:
    """The merged views of a run that move, until readers have come along."""

    def __init__(self, lake: Lake, state: PipelineState, moves: Sequence[Move]) -> None:
        self._lake = lake
        self._state = state
        self._moves = tuple(moves)

    @property
    def views(self) -> Collection[str]:
        """Those whose new tables may still lack rows."""
        return {move.view for move in self._moves}

    def settle(self) -> None:
        """Let readers see the new tables, all at one moment, if all have caught up."""
        if not self._moves or not all(move.is_caught_up() for move in self._moves):
            return
        self._lake.switch(
            {table.name: table.generation for move in self._moves for table in move.stored},
            hidden=[name for move in self._moves for name in _places(move.view)],
            views={move.view: move.layers for move in self._moves if move.layers is not None},
        )
        self._state.note_building({})
        _log.info("%s are kept in other tables now, and readers see these", ", ".join(self.views))
        self._moves = ()


def is_built(
    catalog: Catalog, state: PipelineState, pipeline: Pipeline, table: str, generation: int
) -> bool:
    """Whether a run builds these tables for a change of architecture, or goes on to."""
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
    """All tables that a merged view may be kept in, whatever the architecture."""
    return [name for architecture in Architecture for name in tables_of(view, architecture)]
