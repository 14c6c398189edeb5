"""What a flow's `read` and `read_stream` mean when it runs: topics and tables, live or at rest."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from headrace.lake import merging
from headrace.lake.catalog import Lake, MergedViewEntry
from headrace.lake.tables import Table
from headrace.pipelines.analysing.stand_ins import filled, source_schema
from headrace.pipelines.model import (
    ERROR,
    SOURCES,
    MaterializedView,
    MergedView,
    Pipeline,
    Sink,
    Source,
    TemporaryView,
)
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.resolving import evaluate
from headrace.pipelines.running.setting_aside import SettingAside, without_unreadable
from headrace.pipelines.running.state import FlowState
from headrace.pipelines.sources import admitted, keeping_payloads, source_options
from headrace.spark.refuge import OPTION, Refuge
from headrace.spark.tables.frames import merged_frame, table_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

    Reader = DataFrameReader | DataStreamReader


class TableReads:
    """What both kinds of readers share: the pipeline, its lake, and the generations to read."""

    def __init__(
        self,
        spark: "SparkSession",
        pipeline: Pipeline,
        lake: Lake,
        generations: Mapping[str, int] | None = None,
        columns: Mapping[str, Sequence[str]] | None = None,
        views: Mapping[str, MergedViewEntry] | None = None,
        *,
        keeps_payloads: bool = False,
        aside: SettingAside | None = None,
    ) -> None:
        self.spark = spark
        self.pipeline = pipeline
        self.lake = lake
        self.generations = generations or {}
        self._keeps_payloads = keeps_payloads
        self._aside = aside
        self.columns = columns or {}
        """Of each source those that the query uses, where these are not all."""
        self.views = lake.views() if views is None else views
        """The merged views that are read as two layers; others are tables."""

    def source(self, name: str) -> Source | None:
        """The source behind `sources.x`; None if the name is a table's."""
        zone, _, short = name.partition(".")
        if zone != SOURCES:
            return None
        found = self.pipeline.sources.get(short)
        if found is None:
            raise PipelineError(
                f"pipeline.toml has no [sources.{short}]; it has"
                f" {', '.join(sorted(self.pipeline.sources)) or 'none'}"
            )
        return keeping_payloads(found) if self._keeps_payloads else found

    def refuge_of(self, source: Source) -> Refuge | None:
        """Where records of a source are put that cannot be read; None if the query gets them."""
        return None if self._aside is None else self._aside.refuge_of(source.name)

    def loaded(self, reader: "Reader", source: Source, options: dict[str, str]) -> "DataFrame":
        """A topic's records, without those that are put aside because they cannot be read."""
        refuge = self.refuge_of(source)
        if refuge is not None and source.connector == "headrace":
            options = {**options, OPTION: refuge.to_option()}
        rows = reader.format(source.connector).options(**options).load()
        if refuge is None or source.connector == "headrace" or ERROR not in rows.columns:
            return rows
        return without_unreadable(rows, source, refuge)

    def table_options(self, name: str) -> dict[str, str]:
        """What Spark's reader of a table has to know."""
        options = {"root": str(self.lake.root), "table": name}
        view = self.views.get(name)
        if view is not None:
            options["view"] = msgspec.json.encode(view).decode()
        generation = self.generations.get(name if view is None else view.batch)
        return options if generation is None else {**options, "generation": str(generation)}


class LiveReader:
    """Reads as a running stream does: topics and tables grow, and the flow hears of it."""

    def __init__(self, reads: TableReads, state: FlowState) -> None:
        self._reads = reads
        self._starts = state.starts
        self._after = state.started_after()

    @property
    def spark(self) -> "SparkSession":
        return self._reads.spark

    def read_stream(self, name: str) -> "DataFrame":
        """A stream of the records of a topic, or of the rows that are appended to a table."""
        if (source := self._reads.source(name)) is not None:
            return self._topic(source)
        dataset = self._reads.pipeline.datasets.get(name)
        if isinstance(dataset, TemporaryView):
            return evaluate(dataset.query, self)
        if isinstance(dataset, MaterializedView | MergedView | Sink):
            raise PipelineError(
                f"{name} is no streaming table, so it cannot be read as a stream; use read"
            )
        options = self._reads.table_options(name)
        if name in self._after:
            options["startingVersion"] = str(self._after[name] + 1)
        return self.spark.readStream.format("headrace-table").options(**options).load()

    def read(self, name: str) -> "DataFrame":
        """A table as it is whenever a batch of the stream is run."""
        dataset = self._reads.pipeline.datasets.get(name)
        if isinstance(dataset, TemporaryView):
            return evaluate(dataset.query, self)
        if self._reads.source(name) is not None:
            raise PipelineError(f"{name} is a topic; a flow reads it by read_stream")
        options = self._reads.table_options(name)
        return self.spark.read.format("headrace-table").options(**options).load()

    def _topic(self, source: Source) -> "DataFrame":
        options = source_options(source, self._reads.pipeline.settings, self._starts / source.name)
        used = self._reads.columns.get(source.name)
        if used is None:
            return admitted(self._reads.loaded(self.spark.readStream, source, options), source)
        options["columns"] = ",".join(used)
        rows = self._reads.loaded(self.spark.readStream, source, options)
        # A query may name a column on its way and make nothing of it, as one over a view that has
        # more than it needs. Spark's optimizer leaves the nulls out.
        schema = source_schema(source, self._reads.pipeline.settings)
        return admitted(filled(rows, schema), source)


class SnapshotReader:
    """Reads as a batch run does: each table at one version, which is noted for the lineage."""

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
        if isinstance(dataset, TemporaryView):
            return evaluate(dataset.query, self)
        if isinstance(dataset, MergedView) and name in self._reads.views:
            return self._merged(name)
        return table_frame(self.spark, *self._at(name))

    def _at(self, name: str) -> tuple[Table, int]:
        """A table and the version of it that is read."""
        table = self._reads.lake.table(name, self._reads.generations.get(name))
        return table, self.versions.setdefault(name, table.version)

    def _merged(self, name: str) -> "DataFrame":
        """Both layers at the versions that were noted; if none were, at those of this moment."""
        lake = self._reads.lake
        view = self._reads.views[name]
        now = merging.pair(lake, view, self._reads.generations)
        if self.versions.keys() >= now.versions.keys():
            now = now.at(self.versions[view.batch], self.versions[view.speed])
        self.versions |= now.versions
        return merged_frame(self.spark, view, now)

    def read_stream(self, name: str) -> "DataFrame":
        """In a batch a stream is what there is of it."""
        return self.read(name)
