"""The preparation of a run: analyse every query, report all problems, create the tables."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from headrace.lake.applied_changes import history_name
from headrace.lake.catalog import Lake, MergedViewEntry
from headrace.lake.merged_views import COMMIT_VERSION
from headrace.lake.quarantine import QUARANTINE_SCHEMA
from headrace.lake.tables import Table
from headrace.pipelines import model
from headrace.pipelines.analysing import promotion
from headrace.pipelines.analysing.analysis import Analysis
from headrace.pipelines.analysing.existing_tables import existing
from headrace.pipelines.analysing.fingerprints import fingerprint
from headrace.pipelines.analysing.graph import problems as graph_problems
from headrace.pipelines.analysing.plans import is_repeatable, keeps_state, plan_text
from headrace.pipelines.analysing.schema_checks import check_declared
from headrace.pipelines.analysing.spark_errors import quiet
from headrace.pipelines.declaring.names import is_source, quarantine_of
from headrace.pipelines.problems import PipelineError, raise_if_any
from headrace.pipelines.running.flows.used_columns import used_columns
from headrace.pipelines.running.tables.creation import TableMaking, WantedTable
from headrace.pipelines.running.tables.layers import tables_of
from headrace.spark.tables.schemas import arrow_schema_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Preparation:
    """Creates the tables of a pipeline in one generation, and has the inputs of each dataset."""

    def __init__(
        self,
        spark: "SparkSession",
        pipeline: model.Pipeline,
        lake: Lake,
        generation_of: Callable[[str], int],
    ) -> None:
        self.pipeline = pipeline
        self.lake = lake
        self.generation_of = generation_of
        self.inputs: dict[str, set[str]] = {}
        """For each dataset the tables and topics (`sources.x`) that it reads."""
        self.reads: dict[str, set[str]] = {}
        """For each flow its own inputs: several flows may feed one table."""
        self.made: list[str] = []
        """The tables of this pipeline, quarantines and histories included."""
        self.layered: dict[str, MergedViewEntry] = {}
        """The merged views of this pipeline that are kept as two layers."""
        self.unseen: Collection[str] = ()
        """Tables built for another architecture, which readers must not see yet."""
        self._making = TableMaking(lake, pipeline.settings.name)
        self._is_rebuilt: Callable[[str], bool] = lambda _: False
        self._analysis = Analysis(spark, pipeline, self._existing)
        self._order: list[str] = []
        self._repeatable: dict[str, bool] = {}
        self._fingerprints: dict[str, str] = {}
        self._used: dict[str, dict[str, tuple[str, ...]]] = {}

    def prepare(self, is_rebuilt: Callable[[str], bool] | None = None) -> None:
        """Analyse every query, then create each table, or add new columns.

        A table for which `is_rebuilt` is true may be missing.
        """
        self._is_rebuilt = is_rebuilt or self._is_rebuilt
        with quiet():
            self._analysis.run()
            check_declared(self._analysis)
        graph = self._analysis.graph()
        raise_if_any([*graph_problems(graph), *promotion.problems(graph), *self._analysis.problems])
        self._order = [name for name in graph.order() if name in self.pipeline.datasets]
        for name in self._order:
            edges = graph.inputs(name)
            self.inputs[name] = self._behind(edge.source for edge in edges)
            for flow in self.pipeline.flows_into(name):
                own = (edge.source for edge in edges if edge.consumer == flow.name)
                self.reads[flow.name] = self._behind(own)
        for name in self._order:
            self._make(name)

    def as_run(self, flow: model.Flow) -> model.Flow:
        """Return a flow with the columns added to its query: bytes of records, and their day."""
        return self._analysis.flow(flow.name)

    def adds_day_to(self, table: str) -> bool:
        """Return whether all days in a table are added by the runner, not by queries."""
        return self._analysis.adds_day_to(table)

    def keeps_state(self, flow: model.Flow) -> bool:
        """Return whether a flow's rows come from several records each."""
        return keeps_state(self._analysis.frames[flow.name])

    def sources_with_side_outputs(self, name: str) -> frozenset[str]:
        """Return the sources whose unreadable records bypass a flow or view."""
        return self._analysis.side_outputs(name)

    def is_repeatable(self, name: str) -> bool:
        """Return whether a view's query uses neither the time nor random numbers."""
        if name not in self._repeatable:
            self._repeatable[name] = is_repeatable(self._analysis.frames[name])
        return self._repeatable[name]

    def fingerprint(self, view: model.MaterializedView | model.MergedView) -> str:
        """Return the fingerprint of a view's definition; it changes with the definition."""
        if view.name not in self._fingerprints:
            plan = plan_text(self._analysis.frames[view.name])
            found = fingerprint(view, self.pipeline, self._analysis.reads, plan)
            self._fingerprints[view.name] = found
        return self._fingerprints[view.name]

    def levels(self) -> list[list[str]]:
        """Return the datasets in levels, so that one pass moves all rows to the end."""
        depth: dict[str, int] = {}
        for name in self._order:
            above = (depth[read] + 1 for read in self.inputs[name] if read in depth)
            depth[name] = max(above, default=0)
        levels: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
        for name, level in depth.items():
            levels[level].append(name)
        return levels

    def tables_behind(self, name: str) -> set[str]:
        """Return the tables that a dataset reads."""
        return {read for read in self.inputs[name] if not is_source(read)}

    def used_columns(self, flow: model.Flow) -> dict[str, tuple[str, ...]]:
        """Return the used columns of each topic that a flow reads, if these are not all."""
        if flow.name not in self._used:
            reads_topic = any(map(is_source, self.inputs.get(flow.target, ())))
            found = used_columns(self._analysis, flow.query) if reads_topic else {}
            self._used[flow.name] = found
        return self._used[flow.name]

    def _behind(self, names: Iterable[str]) -> set[str]:
        """Return the stored inputs, through temporary views."""
        found: set[str] = set()
        for name in names:
            is_view = isinstance(self.pipeline.datasets.get(name), model.TemporaryView)
            found |= self.inputs[name] if is_view else {name}
        return found

    def _make(self, name: str) -> None:
        match self.pipeline.datasets[name]:
            case model.StreamingTable() if not self.pipeline.flows_into(name):
                return  # A replay keeps and only reads it.
            case model.StreamingTable() as table:
                self._create(self._wanted(table))
                self._create_quarantine(name)
                if (history := self._analysis.history(name)) is not None:
                    self._create(WantedTable(history_name(name), history))
            case model.MaterializedView() as view:
                self._create(replace(self._wanted(view), is_made_again=True))
                self._create_quarantine(name)
            case model.MergedView() as view:
                self._make_merged(view)
            case model.Sink():
                self._create_quarantine(name)
            case _:
                return

    def _wanted(self, declared: model.StreamingTable | model.MaterializedView) -> WantedTable:
        return WantedTable(
            name=declared.name,
            columns=self._columns(declared.name),
            partition_by=self._analysis.partition_by(declared),
            comment=declared.comment,
            properties=declared.properties,
            location=declared.location,
        )

    def _existing(self, name: str) -> Table | None:
        return existing(self.lake, name, self.generation_of(name))

    def _columns(self, name: str) -> pa.Schema:
        return arrow_schema_of(self._analysis.columns[name])

    def _create_quarantine(self, name: str) -> None:
        if self._analysis.may_refuse(name):
            self._create(WantedTable(quarantine_of(name), QUARANTINE_SCHEMA))

    def _make_merged(self, view: model.MergedView) -> None:
        columns = self._columns(view.name)
        read = self.inputs[view.name]
        if len(read) != 1 or is_source(next(iter(read))):
            raise PipelineError(
                f"{view.location}: {view.name} reads {', '.join(sorted(read))}; a merged view reads"
                " exactly one table, so that its layers meet at one version. Write topics to a"
                " raw table, or join tables in a streaming table, and read that"
            )
        whole = self.lake.catalog().tables.get(view.name)
        for made in () if whole is None else whole.generations.values():
            self._making.check_own(view.name, made)
        if self.pipeline.settings.architecture is model.Architecture.KAPPA:
            wanted = WantedTable(view.name, columns, comment=view.comment, location=view.location)
            self._create(wanted)
            return
        batch, speed = tables_of(view.name, model.Architecture.LAMBDA)
        self._create(WantedTable(batch, columns, comment=view.comment))
        parts = columns.append(pa.field(COMMIT_VERSION, pa.int64()))
        self._create(WantedTable(speed, parts))
        self.layered[view.name] = MergedViewEntry(
            name=view.name,
            keys=tuple(name for name in columns.names if name not in view.merge),
            merge=dict(view.merge),
            batch=batch,
            speed=speed,
            pipeline=self.pipeline.settings.name,
        )
        if speed not in self.unseen:
            self.lake.put_view(view.name, self.layered[view.name])

    def _create(self, wanted: WantedTable) -> None:
        """Create a table; a table that is rebuilt later may be missing."""
        name = wanted.name
        if self._is_rebuilt(name):
            wanted = replace(wanted, is_made_again=True)
        self._making.make(wanted, self.generation_of(name), is_seen=name not in self.unseen)
        self.made.append(name)
