"""Which flows of a lake may go on with the tables that they read, and how far each has come.

A flow follows a table commit by commit, by the files that each has brought, so these must not be
joined before it has read them. All pipelines of the lake count, as one may read what another
writes. Of each those flows count that its last run had, in the generations that count, that can be
switched back to, or that are being built. So a flow that was taken out of its pipeline's files
holds nothing up after the next run, and a generation nothing once it is dropped.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from headrace.lake.catalog import Catalog, Lake
from headrace.lake.errors import TableRewritten, VersionGone
from headrace.lake.tables import Table
from headrace.pipelines.model import Architecture
from headrace.pipelines.running.layers import tables_of
from headrace.pipelines.running.state import FlowState, PipelineState, safe_name
from headrace.spark import checkpoints

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Follower:
    """A flow, and up to which version it has read each table."""

    state: FlowState
    read: Mapping[str, int]
    """By the table's id, as its checkpoint has it."""
    begins_after: Mapping[str, int]
    """By name, of tables of the flow's own generation that it has not read yet."""

    @classmethod
    def of(cls, state: FlowState) -> "Follower":
        return cls(state, checkpoints.tables_read(state.checkpoint), state.started_after())

    def has_read(self, table: Table) -> int | None:
        """Up to which version; None if it does not follow the table, or will read it whole."""
        found = self.read.get(table.table_id)
        if found is None and table.generation == self.state.generation:
            return self.begins_after.get(table.name)
        return found

    def __str__(self) -> str:
        """Its folder in that of all pipelines, as `shop/flows/staging.orders/g1`."""
        return "/".join(self.state.directory.parts[-4:])


class Slowest(NamedTuple):
    """The flow that is behind all others in a table."""

    version: int
    follower: Follower


def slowest(table: Table, followers: Iterable[Follower]) -> Slowest | None:
    """Up to which version all have read who follow a table; None if nobody does."""
    found = [Slowest(read, one) for one in followers if (read := one.has_read(table)) is not None]
    return min(found, key=lambda one: one.version, default=None)


def has_unread(table: Table, version: int) -> bool:
    """Whether files came after a version; commits that bring none leave a flow where it is."""
    if version < 0:
        return True
    later = range(version + 1, table.version + 1)
    try:
        return any(table.added(one - 1, one) for one in later)
    except (TableRewritten, VersionGone):
        return True  # The flow meets the same, and says so.


def followers(lake: Lake, own: Iterable[FlowState] = ()) -> list[Follower]:
    """All flows of a lake that may go on; `own` do in any case."""
    pipelines = PipelineState.all_of(lake.root)
    generations = counting(lake.catalog(), pipelines)
    others = (state for pipeline in pipelines for state in going_on(pipeline, generations))
    return list(_readable(dict.fromkeys([*own, *others])))


def counting(catalog: Catalog, pipelines: Iterable[PipelineState]) -> set[int]:
    """The numbers of generations that count, may count again, or are being built.

    They are asked for in the whole lake: a flow to a topic has the number of what it reads, which
    may be another pipeline's.
    """
    entries = catalog.tables.values()
    found = {entry.current or max(entry.generations) for entry in entries}
    for pipeline in pipelines:
        found |= pipeline.ways_back() | set(pipeline.building().values())
        if pipeline.is_held("replay"):
            found.update(number for entry in entries for number in entry.generations)
    return found


def going_on(pipeline: PipelineState, generations: set[int]) -> list[FlowState]:
    """The flows of a pipeline that may go on, by what was declared when it last ran."""
    declared = _declared(pipeline)
    return [
        state
        for state in pipeline.flows()
        if state.generation in generations
        and (declared is None or state.directory.parent.name in declared)
    ]


def _declared(pipeline: PipelineState) -> set[str] | None:
    """The folders of the flows of its last run; None if that is not known, or changes just now."""
    status = pipeline.read_status()
    if status is None or pipeline.is_held("replay"):
        return None
    names = {flow.flow for flow in status.flows}
    # That of a merged view has the name of a table, and the status does not say which is one.
    merged = {tables_of(name, kept)[-1] for name in names for kept in Architecture}
    return {safe_name(name) for name in names | merged}


def _readable(states: Iterable[FlowState]) -> Iterator[Follower]:
    for state in states:
        try:
            yield Follower.of(state)
        except checkpoints.CheckpointDamaged as error:
            # Spark cannot go on from it either: what it had yet to read is of no use to it.
            _log.warning("the flow in %s is not waited for: %s", state.directory, error)
