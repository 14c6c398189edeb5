"""The inputs of a running flow: topics and tables, live or at rest."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from headrace.lake.catalog import Lake, MergedViewEntry
from headrace.lake.tables import Table
from headrace.pipelines import model
from headrace.pipelines.analysing.stand_ins import filled, source_schema
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.queries.resolving import evaluate
from headrace.pipelines.queries.sources import admitted, keeping_payloads, source_options
from headrace.pipelines.running.flows.unreadable_records import SideOutputs, without_unreadable
from headrace.pipelines.running.state.folders import FlowState
from headrace.spark.side_output import OPTION, SideOutput
from headrace.spark.tables.frames import merged_frame, table_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

    Reader = DataFrameReader | DataStreamReader


class TableReads:
    """The tables of a pipeline for readers: the lake and the generations to read."""

    def __init__(
        self,
        spark: "SparkSession",
        pipeline: model.Pipeline,
        lake: Lake,
        generations: Mapping[str, int] | None = None,
        columns: Mapping[str, Sequence[str]] | None = None,
        views: Mapping[str, MergedViewEntry] | None = None,
        *,
        keeps_payloads: bool = False,
        side_outputs: SideOutputs | None = None,
    ) -> None:
        self.spark = spark
        self.pipeline = pipeline
        self.lake = lake
        self.generations = generations or {}
        self._keeps_payloads = keeps_payloads
        self._side_outputs = side_outputs
        self.columns = columns or {}
        """For each source the columns that the query uses, if these are not all."""
        self.views = lake.views() if views is None else views
        """The merged views that are read as two layers; others are tables."""

    def source(self, name: str) -> model.Source | None:
        """Return the source of `sources.x`; None for a table."""
        zone, _, short = name.partition(".")
        if zone != model.SOURCES:
            return None
        found = self.pipeline.sources.get(short)
        if found is None:
            raise PipelineError(
                f"pipeline.toml has no [sources.{short}]; it has"
                f" {', '.join(sorted(self.pipeline.sources)) or 'none'}"
            )
        return keeping_payloads(found) if self._keeps_payloads else found

    def side_output_of(self, source: model.Source) -> SideOutput | None:
        """Return the side output for a source's unreadable records; None if the query gets them."""
        return (
            None if self._side_outputs is None else self._side_outputs.side_output_of(source.name)
        )

    def loaded(
        self, reader: "Reader", source: model.Source, options: dict[str, str]
    ) -> "DataFrame":
        """Return a topic's records, without unreadable ones that go to a side output."""
        side_output = self.side_output_of(source)
        if side_output is not None and source.connector == "headrace":
            options = {**options, OPTION: side_output.to_option()}
        rows = reader.format(source.connector).options(**options).load()
        if side_output is None or source.connector == "headrace" or model.ERROR not in rows.columns:
            return rows
        return without_unreadable(rows, source, side_output)

    def table_options(self, name: str) -> dict[str, str]:
        """Return the options of Spark's reader of a table."""
        options = {"root": str(self.lake.root), "table": name}
        view = self.views.get(name)
        if view is not None:
            options["view"] = msgspec.json.encode(view).decode()
        generation = self.generations.get(name if view is None else view.batch)
        return options if generation is None else {**options, "generation": str(generation)}


class LiveReader:
    """Reads for a running stream: topics and tables grow, and the flow follows them."""

    def __init__(self, reads: TableReads, state: FlowState) -> None:
        self._reads = reads
        self._starts = state.starts
        self._after = state.started_after()

    @property
    def spark(self) -> "SparkSession":
        return self._reads.spark

    def read_stream(self, name: str) -> "DataFrame":
        """Return a stream of a topic's records, or of rows appended to a table."""
        if (source := self._reads.source(name)) is not None:
            return self._topic(source)
        dataset = self._reads.pipeline.datasets.get(name)
        if isinstance(dataset, model.TemporaryView):
            return evaluate(dataset.query, self)
        if isinstance(dataset, model.MaterializedView | model.MergedView | model.Sink):
            raise PipelineError(
                f"{name} is not a streaming table, so it cannot be read as a stream; use read"
            )
        options = self._reads.table_options(name)
        if name in self._after:
            options["startingVersion"] = str(self._after[name] + 1)
        return self.spark.readStream.format("headrace-table").options(**options).load()

    def read(self, name: str) -> "DataFrame":
        """Return a table as of each batch of the stream."""
        dataset = self._reads.pipeline.datasets.get(name)
        if isinstance(dataset, model.TemporaryView):
            return evaluate(dataset.query, self)
        if self._reads.source(name) is not None:
            raise PipelineError(f"{name} is a topic; a flow reads it with read_stream")
        options = self._reads.table_options(name)
        return self.spark.read.format("headrace-table").options(**options).load()

    def _topic(self, source: model.Source) -> "DataFrame":
        options = source_options(source, self._reads.pipeline.settings, self._starts / source.name)
        used = self._reads.columns.get(source.name)
        if used is None:
            return admitted(self._reads.loaded(self.spark.readStream, source, options), source)
        options["columns"] = ",".join(used)
        rows = self._reads.loaded(self.spark.readStream, source, options)
        # A query may name a column without using it, for example through a view that has more
        # columns than needed. Spark's optimizer removes the nulls.
        schema = source_schema(source, self._reads.pipeline.settings)
        return admitted(filled(rows, schema), source)


class SnapshotReader:
    """Reads as a batch: each table at one version, which is noted for the lineage."""

    def __init__(self, reads: TableReads, given: "Mapping[str, DataFrame] | None" = None) -> None:
        self._reads = reads
        self._given = given or {}
        self.versions: dict[str, int] = {}

    @property
    def spark(self) -> "SparkSession":
        return self._reads.spark

    def read(self, name: str) -> "DataFrame":
        if name in self._given:
            return self._given[name]
        if (source := self._reads.source(name)) is not None:
            options = source_options(source, self._reads.pipeline.settings)
            return admitted(self._reads.loaded(self.spark.read, source, options), source)
        dataset = self._reads.pipeline.datasets.get(name)
        if isinstance(dataset, model.TemporaryView):
            return evaluate(dataset.query, self)
        if isinstance(dataset, model.MergedView) and name in self._reads.views:
            return self._merged(name)
        return table_frame(self.spark, *self._at(name))

    def _at(self, name: str) -> tuple[Table, int]:
        """Return a table and the version to read."""
        table = self._reads.lake.table(name, self._reads.generations.get(name))
        return table, self.versions.setdefault(name, table.version)

    def _merged(self, name: str) -> "DataFrame":
        """Return both layers at the noted versions, or at the current ones."""
        lake = self._reads.lake
        view = self._reads.views[name]
        now = lake.layers(view, self._reads.generations)
        if self.versions.keys() >= now.versions.keys():
            now = now.at(self.versions[view.batch], self.versions[view.speed])
        self.versions |= now.versions
        return merged_frame(self.spark, view, now)

    def read_stream(self, name: str) -> "DataFrame":
        """Return all current rows: in a batch a stream is at rest."""
        return self.read(name)
