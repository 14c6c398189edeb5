"""Before a run: every query is analysed, all that is wrong is told, and the tables are made."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from headrace.lake.catalog import Lake, MergedViewEntry
from headrace.lake.changes import history_name
from headrace.lake.merging import COMMIT_VERSION
from headrace.lake.quarantine import QUARANTINE_SCHEMA
from headrace.lake.tables import Table
from headrace.pipelines.analysing import promotion
from headrace.pipelines.analysing.analysis import Analysis
from headrace.pipelines.analysing.fingerprints import fingerprint
from headrace.pipelines.analysing.gathering import gathers
from headrace.pipelines.analysing.graph import problems as graph_problems
from headrace.pipelines.analysing.plans import is_repeatable, plan_text
from headrace.pipelines.analysing.schema_checks import check_declared
from headrace.pipelines.analysing.spark_errors import quiet
from headrace.pipelines.analysing.standing_tables import standing
from headrace.pipelines.model import (
    Architecture,
    Expectation,
    Flow,
    MaterializedView,
    MergedView,
    Pipeline,
    Sink,
    StreamingTable,
    TemporaryView,
)
from headrace.pipelines.names import is_source, quarantine_of
from headrace.pipelines.problems import PipelineError, raise_if_any
from headrace.pipelines.quarantine import may_refuse
from headrace.pipelines.running.layers import tables_of
from headrace.pipelines.running.making import TableMaking, WantedTable
from headrace.pipelines.running.used_columns import used_columns
from headrace.spark.tables.schemas import arrow_schema_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Preparation:
    """Makes the tables of one pipeline and generation, and knows who reads what."""

    def __init__(
        self,
        spark: "SparkSession",
        pipeline: Pipeline,
        lake: Lake,
        generation_of: Callable[[str], int],
    ) -> None:
        self.pipeline = pipeline
        self.lake = lake
        self.generation_of = generation_of
        self.inputs: dict[str, set[str]] = {}
        """For each dataset the tables and topics (`sources.x`) that it reads."""
        self.reads: dict[str, set[str]] = {}
        """The same for each flow alone: several may feed one table."""
        self.made: list[str] = []
        """The tables of this pipeline, quarantines and histories included."""
        self.layered: dict[str, MergedViewEntry] = {}
        """The merged views of this pipeline that are kept as two layers."""
        self.unseen: Collection[str] = ()
        """Tables that readers are not to see yet: they are built for another architecture."""
        self._making = TableMaking(lake, pipeline.settings.name)
        self._is_rebuilt: Callable[[str], bool] = lambda _: False
        self._analysis = Analysis(spark, pipeline, self._standing)
        self._order: list[str] = []
        self._repeatable: dict[str, bool] = {}
        self._fingerprints: dict[str, str] = {}
        self._used: dict[str, dict[str, tuple[str, ...]]] = {}

    def prepare(self, is_rebuilt: Callable[[str], bool] | None = None) -> None:
        """Analyse every query, then make each table, or give it the columns that are new.

        A table that is built anew after this need not be there any more.
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

    def as_run(self, flow: Flow) -> Flow:
        """A flow with what it brings beyond its query: the bytes of its records, their day."""
        return self._analysis.flows[flow.name]

    def adds_day_to(self, table: str) -> bool:
        """Whether the days in a table are those that its flows get, and none that they bring."""
        days = self._analysis.days.get(table)
        flows = frozenset() if days is None else days.added_to
        return bool(flows) and flows == {flow.name for flow in self.pipeline.flows_into(table)}

    def gathers(self, flow: Flow) -> bool:
        """Whether a flow's rows are made of several records each."""
        return gathers(self._analysis.frames[flow.name])

    def aside(self, name: str) -> frozenset[str]:
        """The sources whose unreadable records are kept away from a flow or a view."""
        return self._analysis.aside.get(name, frozenset())

    def is_repeatable(self, name: str) -> bool:
        """Whether a view's query asks neither for the time nor for chance."""
        if name not in self._repeatable:
            self._repeatable[name] = is_repeatable(self._analysis.frames[name])
        return self._repeatable[name]

    def fingerprint(self, view: MaterializedView | MergedView) -> str:
        """By what a view is computed; it changes when anything about that does."""
        if view.name not in self._fingerprints:
            plan = plan_text(self._analysis.frames[view.name])
            found = fingerprint(view, self.pipeline, self._analysis.reads, plan)
            self._fingerprints[view.name] = found
        return self._fingerprints[view.name]

    def levels(self) -> list[list[str]]:
        """The datasets in the order in which a single pass brings everything through."""
        depth: dict[str, int] = {}
        for name in self._order:
            above = (depth[read] + 1 for read in self.inputs[name] if read in depth)
            depth[name] = max(above, default=0)
        levels: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
        for name, level in depth.items():
            levels[level].append(name)
        return levels

    def tables_behind(self, name: str) -> set[str]:
        """The tables that a dataset reads."""
        return {read for read in self.inputs[name] if not is_source(read)}

    def used_columns(self, flow: Flow) -> dict[str, tuple[str, ...]]:
        """The columns that a flow uses of each topic it reads, where these are not all."""
        if flow.name not in self._used:
            reads_topic = any(map(is_source, self.inputs.get(flow.target, ())))
            found = used_columns(self._analysis, flow.query) if reads_topic else {}
            self._used[flow.name] = found
        return self._used[flow.name]

    def _behind(self, names: Iterable[str]) -> set[str]:
        """What is stored of what is read: for a temporary view, what it reads itself."""
        found: set[str] = set()
        for name in names:
            is_view = isinstance(self.pipeline.datasets.get(name), TemporaryView)
            found |= self.inputs[name] if is_view else {name}
        return found

    def _make(self, name: str) -> None:
        match self.pipeline.datasets[name]:
            case StreamingTable() if not self.pipeline.flows_into(name):
                return  # It is kept by a replay, which only reads it.
            case StreamingTable() as table:
                self._create(self._wanted(table))
                self._create_quarantine(name, table.expectations)
                if (history := self._analysis.histories.get(name)) is not None:
                    self._create(WantedTable(history_name(name), history))
            case MaterializedView() as view:
                self._create(replace(self._wanted(view), is_made_again=True))
                self._create_quarantine(name, view.expectations)
            case MergedView() as view:
                self._make_merged(view)
            case Sink():
                self._create_quarantine(name, ())
            case _:
                return

    def _wanted(self, declared: StreamingTable | MaterializedView) -> WantedTable:
        return WantedTable(
            name=declared.name,
            columns=self._columns(declared.name),
            partition_by=self._analysis.partition_by(declared),
            comment=declared.comment,
            properties=declared.properties,
            place=declared.place,
        )

    def _standing(self, name: str) -> Table | None:
        return standing(self.lake, name, self.generation_of(name))

    def _columns(self, name: str) -> pa.Schema:
        return arrow_schema_of(self._analysis.schemas[name])

    def _create_quarantine(self, name: str, expectations: Sequence[Expectation]) -> None:
        sources = [flow.name for flow in self.pipeline.flows_into(name)] or [name]
        columns = [column for one in sources for column in self._analysis.frames[one].columns]
        sets_aside = self._analysis.sets_aside(name)
        columns = [] if isinstance(self.pipeline.datasets[name], Sink) else columns
        if may_refuse(columns, expectations, sets_aside=sets_aside):
            self._create(WantedTable(quarantine_of(name), QUARANTINE_SCHEMA))

    def _make_merged(self, view: MergedView) -> None:
        columns = self._columns(view.name)
        read = self.inputs[view.name]
        if len(read) != 1 or is_source(next(iter(read))):
            raise PipelineError(
                f"{view.place}: {view.name} reads {', '.join(sorted(read))}; a merged view is kept"
                " from one table, so that its layers can be cut at one place. Land topics in a"
                " raw table, or join tables in a streaming table, and read that"
            )
        whole = self.lake.catalog().tables.get(view.name)
        for made in () if whole is None else whole.generations.values():
            self._making.check_own(view.name, made)
        if self.pipeline.settings.architecture is Architecture.KAPPA:
            wanted = WantedTable(view.name, columns, comment=view.comment, place=view.place)
            self._create(wanted)
            return
        batch, speed = tables_of(view.name, Architecture.LAMBDA)
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
        """Make a table; one that is built anew after this may be lost."""
        name = wanted.name
        if self._is_rebuilt(name):
            wanted = replace(wanted, is_made_again=True)
        self._making.make(wanted, self.generation_of(name), is_seen=name not in self.unseen)
        self.made.append(name)
