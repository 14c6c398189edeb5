"""The folders of a run's flows, and the check that tables and checkpoints agree."""

from dataclasses import dataclass

from headrace.lake.applied_changes import history_name
from headrace.lake.tables import Table
from headrace.pipelines.model import Flow, MergedView, Pipeline, Sink
from headrace.pipelines.running.errors import StateDisagrees
from headrace.pipelines.running.flows.renamed_flows import (
    changed_input,
    check_not_renamed,
    topics_and_tables,
)
from headrace.pipelines.running.state.folders import FlowState, PipelineState
from headrace.pipelines.running.state.reports import Report
from headrace.pipelines.running.tables.generations import FIRST_GENERATION
from headrace.pipelines.running.tables.layers import tables_of
from headrace.pipelines.running.tables.preparation import Preparation
from headrace.pipelines.running.tables.run_generations import RunGenerations

_COMMITS_LOOKED_AT = 50


@dataclass(frozen=True, slots=True)
class FlowFolders:
    """The folders of the flows in one run."""

    pipeline: Pipeline
    state: PipelineState
    generations: RunGenerations
    preparation: Preparation

    def of(self, flow: Flow) -> FlowState:
        """Return the folder of a flow, by the generation that it writes, or reads for a topic."""
        target = self.pipeline.datasets[flow.target]
        if isinstance(target, Sink):
            return self.state.flow(flow.name, self._generation_read(flow))
        written = self.written(flow)
        # The two ways to keep a merged view have separate checkpoints.
        name = written if isinstance(target, MergedView) else flow.name
        return self.state.flow(name, self.generations.of(written))

    def written(self, flow: Flow) -> str:
        """Return the table that a flow's batches are committed to."""
        if isinstance(self.pipeline.datasets[flow.target], MergedView):
            return tables_of(flow.target, self.pipeline.settings.architecture)[-1]
        return flow.target

    def tables_behind_sink(self, flow: Flow) -> set[str]:
        """Return the tables that a flow to a topic reads incrementally.

        Merged views are left out. They are only looked up, and a change of architecture renumbers
        them, which must not send anything again.
        """
        datasets = self.pipeline.datasets
        behind = self.preparation.tables_behind(flow.target)
        return {name for name in behind if not isinstance(datasets.get(name), MergedView)}

    def has_written(self, flow: Flow, table: Table) -> bool:
        """Return whether one of the latest commits is by this flow."""
        found = (commit.lineage for commit in table.history.commits(_COMMITS_LOOKED_AT))
        own = (self.pipeline.settings.name, flow.name)
        return any(one and (one.pipeline, one.flow) == own for one in found)

    def check(self, flow: Flow, declared: list[str]) -> None:
        """Reject a checkpoint without its table, and a table without its checkpoint."""
        state = self.of(flow)
        reads = self.preparation.reads.get(flow.name)
        if reads is not None and (problem := changed_input(flow.name, state, reads)):
            raise StateDisagrees(problem)
        if isinstance(self.pipeline.datasets[flow.target], Sink):
            self.state.check_sink(state, flow.name, Report.read(state.report).batch)
            return
        written = self.written(flow)
        names = [written] if flow.changes is None else [written, history_name(written)]
        tables = [self.generations.table(name) for name in names]
        # Before all others: the name used by the second check makes the flow a known one.
        if not state.is_known:
            for table in tables:
                self._check_unwritten(flow, state, table, declared)
        for table in tables:
            state.check(flow.name, table.name, table.last_batch(state.writer()))

    def _generation_read(self, flow: Flow) -> int:
        """Return the newest generation among the tables that a flow to a topic reads."""
        behind = self.tables_behind_sink(flow)
        return max(map(self.generations.of, behind), default=FIRST_GENERATION)

    def _check_unwritten(
        self, flow: Flow, state: FlowState, table: Table, declared: list[str]
    ) -> None:
        """Reject a flow without a checkpoint whose table has its rows, also under a former name."""
        if self.has_written(flow, table):
            raise StateDisagrees(
                f"{table.name} has rows of the flow {flow.name}, but its checkpoint is gone:"
                f" {state.directory}. Beginning again would write them twice. Restore the folder,"
                " or rebuild the tables: remove them too, or `headrace pipelines replay FOLDER`"
            )
        if (read := self.preparation.reads.get(flow.name)) is not None:
            reads = topics_and_tables(read, self.pipeline.sources.values())
            former = self.state.former_flows(table.generation, declared)
            check_not_renamed(flow.name, state, table, former, reads)
