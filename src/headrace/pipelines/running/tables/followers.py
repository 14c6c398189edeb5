"""The flows of a lake that may continue on a table, and their positions in it.

A flow follows a table commit by commit, by the files that each has added, so these must not be
joined before it has read them. The flows of all pipelines count, since a pipeline may read tables
of another. A pipeline's flows are those of its last run, in generations that are current, can be
switched back to, or are under construction. So a flow that was removed from the files delays no
joining after the next run, and a dropped generation delays none.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from headrace.lake.catalog import Catalog, Lake
from headrace.lake.errors import TableRewritten, VersionGone
from headrace.lake.tables import Table
from headrace.pipelines.model import Architecture
from headrace.pipelines.running.state.folders import FlowState, PipelineState, safe_name
from headrace.pipelines.running.tables.layers import tables_of
from headrace.spark import checkpoints

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Follower:
    """A flow, and the versions up to which it has read each table."""

    state: FlowState
    read: Mapping[str, int]
    """By the table's id, as in its checkpoint."""
    begins_after: Mapping[str, int]
    """By name, for tables of the flow's own generation that it has not read yet."""

    @classmethod
    def of(cls, state: FlowState) -> "Follower":
        return cls(state, checkpoints.tables_read(state.checkpoint), state.started_after())

    def has_read(self, table: Table) -> int | None:
        """Return the version read; None if it does not follow the table, or will read it whole."""
        found = self.read.get(table.table_id)
        if found is None and table.generation == self.state.generation:
            return self.begins_after.get(table.name)
        return found

    def __str__(self) -> str:
        """Return its folder within all pipelines, such as `shop/flows/staging.orders/g1`."""
        return "/".join(self.state.directory.parts[-4:])


class Slowest(NamedTuple):
    """The flow that is behind all others in a table."""

    version: int
    follower: Follower


def slowest(table: Table, followers: Iterable[Follower]) -> Slowest | None:
    """Return the version that all followers of a table have read; None without followers."""
    found = [Slowest(read, one) for one in followers if (read := one.has_read(table)) is not None]
    return min(found, key=lambda one: one.version, default=None)


def has_unread(table: Table, version: int) -> bool:
    """Return whether files were added after a version; other commits do not matter to a flow."""
    if version < 0:
        return True
    later = range(version + 1, table.version + 1)
    try:
        return any(table.added(one - 1, one) for one in later)
    except (TableRewritten, VersionGone):
        return True  # The flow reports the same error.


def followers(lake: Lake, own: Iterable[FlowState] = ()) -> list[Follower]:
    """Return all flows of a lake that may continue, including `own`."""
    pipelines = PipelineState.all_of(lake.root)
    generations = counting(lake.catalog(), pipelines)
    others = (state for pipeline in pipelines for state in going_on(pipeline, generations))
    return list(_readable(dict.fromkeys([*own, *others])))


def counting(catalog: Catalog, pipelines: Iterable[PipelineState]) -> set[int]:
    """Return the generations of the lake that are current, may be again, or are being built.

    The whole lake counts: a flow to a topic has the number of its input, which may be another
    pipeline's.
    """
    entries = catalog.tables.values()
    found = {entry.current or max(entry.generations) for entry in entries}
    for pipeline in pipelines:
        found |= pipeline.ways_back() | set(pipeline.building().values())
        if pipeline.is_held("replay"):
            found.update(number for entry in entries for number in entry.generations)
    return found


def going_on(pipeline: PipelineState, generations: set[int]) -> list[FlowState]:
    """Return the flows of a pipeline that may continue, by the declarations of its last run."""
    declared = _declared(pipeline)
    return [
        state
        for state in pipeline.flows()
        if state.generation in generations
        and (declared is None or state.directory.parent.name in declared)
    ]


def _declared(pipeline: PipelineState) -> set[str] | None:
    """Return the folders of the last run's flows; None if unknown, or changing now."""
    status = pipeline.read_status()
    if status is None or pipeline.is_held("replay"):
        return None
    names = {flow.flow for flow in status.flows}
    # The flow of a merged view is named after a table, and the status has only the view.
    merged = {tables_of(name, kept)[-1] for name in names for kept in Architecture}
    return {safe_name(name) for name in names | merged}


def _readable(states: Iterable[FlowState]) -> Iterator[Follower]:
    for state in states:
        try:
            yield Follower.of(state)
        except checkpoints.CheckpointDamaged as error:
            # Spark cannot continue from it either, so its unread files are useless.
            _log.warning(
                "damaged checkpoint ignored",
                extra={"folder": str(state.directory), "error": str(error)},
            )
