"""A pipeline in a Spark session, with the generations of tables that it reads and writes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from headrace.lake.catalog import Lake, MergedViewEntry
from headrace.lake.lineage import Lineage
from headrace.pipelines.declaring.names import is_source, source_name
from headrace.pipelines.model import Flow, MergedView, Pipeline, Sink, Source
from headrace.pipelines.running.flows.flow_targets import FlowTargets
from headrace.pipelines.running.flows.inputs import TableReads
from headrace.pipelines.running.flows.unreadable_records import SideOutputs
from headrace.pipelines.running.state.flow_folders import FlowFolders
from headrace.pipelines.running.state.folders import state_of
from headrace.pipelines.running.tables import architectures
from headrace.pipelines.running.tables.architectures import ViewMigration, ViewMigrations
from headrace.pipelines.running.tables.generations import next_number
from headrace.pipelines.running.tables.layers import tables_of
from headrace.pipelines.running.tables.preparation import Preparation
from headrace.pipelines.running.tables.run_generations import RunGenerations
from headrace.runtime.clock import SystemClock, WaitingClock
from headrace.spark.launching.pickled_package import with_package
from headrace.spark.side_output import Spans

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class PipelineRun:
    """A run of a pipeline on one generation of its tables.

    `generations` are generations other than the current ones: a replay builds the next generation
    this way.
    """

    def __init__(
        self,
        spark: "SparkSession",
        pipeline: Pipeline,
        generations: Mapping[str, int] | None = None,
        clock: WaitingClock | None = None,
    ) -> None:
        self.spark = spark
        self.pipeline = pipeline
        self.clock = clock or SystemClock()
        self.lake = Lake(pipeline.settings.lake)
        self.state = state_of(pipeline)
        self.generations = RunGenerations(self.lake, generations or {})
        self.preparation = Preparation(spark, pipeline, self.lake, self.generations.of)
        self.folders = FlowFolders(pipeline, self.state, self.generations, self.preparation)
        self.targets = FlowTargets(pipeline, self.folders, self.generations, self.preparation)

    @property
    def name(self) -> str:
        return self.pipeline.settings.name

    def prepare(self, is_rebuilt: Callable[[str], bool] = lambda _: False) -> None:
        """Make the tables, and check that tables and checkpoints agree, before anything runs.

        Tables that are rebuilt are not checked: the rebuild may be their repair.
        """
        register_sources(self.spark)
        if not self.generations.chosen:
            number = next_number(self.lake, self.state, self.name)
            built = architectures.begin(self.lake, self.state, self.pipeline, number)
            self.generations.built = built
            self.preparation.unseen = built.keys()
        self.preparation.prepare(is_rebuilt)
        flows = tuple(map(self.preparation.as_run, self.pipeline.flows))
        self.pipeline = replace(self.pipeline, flows=flows)
        self.generations.keep(self.preparation.made)
        declared = [flow.name for flow in self.flows()]
        for flow in self.flows():
            is_sent = isinstance(self.pipeline.datasets[flow.target], Sink)
            if is_sent or not is_rebuilt(self.folders.written(flow)):
                self.folders.check(flow, declared)

    def view_migrations(self) -> ViewMigrations:
        """Return the merged views that this run moves to another architecture's tables."""
        chosen, migrations = self.pipeline.settings.architecture, []
        for view in self.pipeline.datasets.values():
            names = tables_of(view.name, chosen)
            is_built = self.generations.built.keys() >= set(names)
            if not isinstance(view, MergedView) or not is_built:
                continue
            (read,) = self.preparation.inputs[view.name]
            source = self.generations.table(read)
            stored = tuple(map(self.generations.table, names))
            layers = self.preparation.layered.get(view.name)
            migrations.append(ViewMigration(view.name, source, source.version, stored, layers))
        return ViewMigrations(self.lake, self.state, migrations)

    def views(self) -> dict[str, MergedViewEntry]:
        """Return the merged views that are read as two layers; own ones as this run keeps them."""
        own = self.pipeline.datasets
        others = {name: one for name, one in self.lake.views().items() if name not in own}
        return others | self.preparation.layered

    def flows(self) -> list[Flow]:
        """Return everything that runs as a stream: declared flows, and one flow per merged view."""
        merged = [
            Flow(view.name, view.name, view.query, view.location)
            for view in self.pipeline.datasets.values()
            if isinstance(view, MergedView)
        ]
        return [*self.pipeline.flows, *merged]

    def reads(
        self,
        columns: Mapping[str, Sequence[str]] | None = None,
        *,
        keeps_payloads: bool = False,
        side_outputs: SideOutputs | None = None,
    ) -> TableReads:
        """Return the tables for readers, each in the generation of this run.

        `columns` has the used columns of a topic, if these are not all.
        """
        return TableReads(
            self.spark,
            self.pipeline,
            self.lake,
            self.generations.for_readers(),
            columns,
            self.views(),
            keeps_payloads=keeps_payloads,
            side_outputs=side_outputs,
        )

    def reads_of(
        self,
        flow: Flow,
        columns: Mapping[str, Sequence[str]] | None = None,
        *,
        is_redriven: bool = False,
    ) -> TableReads:
        """Return the same for a flow, with the bytes of records and without unreadable ones."""
        side_outputs = self.targets.side_outputs_of(flow.name, flow.target, is_redriven=is_redriven)
        return self.reads(columns, keeps_payloads=flow.keeps_payloads, side_outputs=side_outputs)

    def lineage(self, flow: str, offsets: Spans | None = None) -> Lineage:
        """Return the lineage of a commit. Streaming batches add the offsets that they read."""
        settings = self.pipeline.settings
        return Lineage(
            pipeline=settings.name,
            pipeline_version=settings.version,
            pipeline_fingerprint=self.pipeline.fingerprint,
            flow=flow,
            offsets=offsets or {},
        )

    def sources_of(self, flow: Flow) -> list[Source]:
        """Return the sources that a flow reads directly."""
        names = sorted(filter(is_source, self.preparation.reads.get(flow.name, ())))
        return [self.pipeline.sources[source_name(name)] for name in names]


def register_sources(spark: "SparkSession") -> None:
    """Register the source of lake tables; Spark finds that of topics by its name."""
    from headrace.spark.tables.source import TableSource

    spark.dataSource.register(with_package(TableSource))
