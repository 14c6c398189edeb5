"""Before a run: every query is analysed, in the order of what it reads, and its table made.

The datasets are found through each other: analysing a flow asks for the tables that it reads, which
are prepared first. So a cycle is found, and the order in which a pipeline runs is known, whether
its queries are SQL or Python. Stand-ins without rows take the place of tables, because
analysing needs only their columns and opening a stream for each would take seconds.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from headrace.lake.catalog import Lake, MergedViewEntry
from headrace.lake.changes import history_name, history_schema, target_schema
from headrace.pipelines.model import (
    RESERVED,
    SOURCES,
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
from headrace.pipelines.resolving import evaluate
from headrace.pipelines.running.errors import PipelineError
from headrace.pipelines.running.expectations import (
    QUARANTINE_SCHEMA,
    check_declared,
    may_refuse,
)
from headrace.pipelines.running.layers import SPEED, batch_name, speed_name
from headrace.pipelines.running.places import quarantine_name
from headrace.pipelines.running.reading import TableReads, admitted, source_options
from headrace.spark.tables.schemas import arrow_schema_of, schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class Preparation:
    """Makes the tables of one pipeline and generation, and learns who reads what."""

    def __init__(
        self,
        spark: "SparkSession",
        pipeline: Pipeline,
        lake: Lake,
        generation_of: Callable[[str], int],
    ) -> None:
        self.spark = spark
        self.pipeline = pipeline
        self.lake = lake
        self.generation_of = generation_of
        self.inputs: dict[str, set[str]] = {}
        """For each dataset the names that it reads, topics as `sources.x`."""
        self.made: list[str] = []
        """The tables of this pipeline, quarantines and histories included."""
        self._reads = TableReads(spark, pipeline, lake)
        self._underway: list[str] = []
        self._sources: dict[str, StructType] = {}

    def prepare(self) -> None:
        for name in self.pipeline.datasets:
            self.ensure(name)

    def levels(self) -> list[list[str]]:
        """The datasets in the order in which a single pass brings everything through."""
        depth: dict[str, int] = {}

        def depth_of(name: str) -> int:
            if name not in depth:
                above = [depth_of(i) + 1 for i in self.inputs.get(name, ()) if i in self.inputs]
                depth[name] = max(above, default=0)
            return depth[name]

        levels: dict[int, list[str]] = {}
        for name in self.inputs:
            levels.setdefault(depth_of(name), []).append(name)
        return [levels[number] for number in sorted(levels)]

    def ensure(self, name: str) -> None:
        """Prepare a dataset after those that it reads."""
        if name in self.inputs:
            return
        if name in self._underway:
            cycle = " -> ".join([*self._underway[self._underway.index(name) :], name])
            raise PipelineError(f"the datasets read each other in a circle: {cycle}")
        self._underway.append(name)
        self._prepare(name)
        self._underway.pop()

    def _prepare(self, name: str) -> None:
        reader = StandInReader(self)
        match self.pipeline.datasets[name]:
            case StreamingTable() as table:
                self._table(table, reader)
            case MaterializedView() as view:
                check_declared(view.expectations, name)
                schema = evaluate(view.query, reader).schema
                self._create(name, plain_columns(schema), view.partition_by, view.comment)
                self._create_quarantine(name, schema.names, view.expectations)
            case MergedView() as view:
                self._merged(view, reader)
            case TemporaryView(query=query):
                evaluate(query, reader)
            case Sink():
                for flow in self.flows_into(name):
                    evaluate(flow.query, reader)
        self.inputs[name] = reader.names

    def tables_behind(self, name: str) -> set[str]:
        """The tables that a dataset reads, through temporary views too."""
        found: set[str] = set()
        for read in self.inputs.get(name, ()):
            if isinstance(self.pipeline.datasets.get(read), TemporaryView):
                found |= self.tables_behind(read)
            elif not self.is_source(read):
                found.add(read)
        return found

    def is_source(self, name: str) -> bool:
        return name.startswith(f"{SOURCES}.")

    def flows_into(self, name: str) -> list[Flow]:
        return [flow for flow in self.pipeline.flows if flow.target == name]

    def _table(self, table: StreamingTable, reader: "StandInReader") -> None:
        check_declared(table.expectations, table.name)
        flows = self.flows_into(table.name)
        if not flows:
            raise PipelineError(
                f"{table.place}: no flow writes to {table.name}; give it a query or an append flow"
            )
        frames = [evaluate(flow.query, reader).schema for flow in flows]
        schemas = [self._flow_columns(flow, s) for flow, s in zip(flows, frames, strict=True)]
        declared = [self._declared(table.schema)] if table.schema else []
        columns = pa.unify_schemas([*declared, *schemas], promote_options="permissive")
        self._create(table.name, columns, table.partition_by, table.comment)
        names = [name for schema in frames for name in schema.names]
        self._create_quarantine(table.name, names, table.expectations)

    def _declared(self, ddl: str) -> pa.Schema:
        return plain_columns(self.spark.createDataFrame([], ddl).schema)

    def _flow_columns(self, flow: Flow, schema: "StructType") -> pa.Schema:
        """What a flow brings to its table; change events need a history of theirs beside it."""
        columns = plain_columns(schema)
        changes = flow.changes
        if changes is None:
            return columns
        history = history_schema(columns, keys=changes.keys, sequence_by=changes.sequence_by)
        self._create(history_name(flow.target), history, ())
        return target_schema(
            columns,
            sequence_by=changes.sequence_by,
            scd_type=changes.scd_type,
            except_columns=changes.except_columns,
        )

    def _merged(self, view: MergedView, reader: "StandInReader") -> None:
        frame = evaluate(view.query, reader)
        columns = plain_columns(frame.schema)
        missing = sorted(view.merge.keys() - set(columns.names))
        if missing:
            raise PipelineError(
                f"{view.place}: {view.name} merges {', '.join(missing)}, which its query lacks"
            )
        if len(reader.names) != 1:
            raise PipelineError(
                f"{view.place}: {view.name} reads {len(reader.names)} tables; a merged view is"
                " kept from one. Join them in a streaming table first"
            )
        if self.pipeline.settings.architecture is Architecture.KAPPA:
            self._create(view.name, columns, (), view.comment)
            return
        self._create(batch_name(view.name), columns, (), view.comment)
        self._create(speed_name(view.name), columns.append(pa.field(SPEED, pa.int64())), ())
        self.lake.put_view(
            view.name,
            MergedViewEntry(
                name=view.name,
                keys=tuple(name for name in columns.names if name not in view.merge),
                merge=dict(view.merge),
                batch=batch_name(view.name),
                speed=speed_name(view.name),
                pipeline=self.pipeline.settings.name,
            ),
        )

    def _create_quarantine(
        self, name: str, columns: Sequence[str], expectations: Sequence[Expectation]
    ) -> None:
        if may_refuse(columns, expectations):
            self._create(quarantine_name(name), QUARANTINE_SCHEMA, ())

    def _create(
        self, name: str, columns: pa.Schema, partition_by: tuple[str, ...], comment: str = ""
    ) -> None:
        """Make a table, or give the one that is there the columns that are new."""
        generation = self.generation_of(name)
        if self.lake.has(name, generation):
            self.lake.table(name, generation).evolve(columns)
        else:
            self.lake.create(
                name,
                columns,
                partition_by=partition_by,
                pipeline=self.pipeline.settings.name,
                comment=comment,
                generation=generation,
            )
        self.made.append(name)

    def source_schema(self, name: str) -> "StructType":
        """The columns of a topic, asked of Spark once."""
        if name not in self._sources:
            source = self._reads.source(name)
            assert source is not None, "only sources come here"
            options = source_options(source, self.pipeline.settings)
            rows = self.spark.readStream.format(source.connector).options(**options).load()
            self._sources[name] = admitted(rows, source).schema
        return self._sources[name]


class StandInReader:
    """Gives frames with the right columns and no rows, after having their datasets prepared."""

    def __init__(self, preparation: Preparation) -> None:
        self._preparation = preparation
        self.names: set[str] = set()

    @property
    def spark(self) -> "SparkSession":
        return self._preparation.spark

    def read(self, name: str) -> "DataFrame":
        view = self._view(name)
        if view is not None:
            return evaluate(view.query, self)
        return self.spark.createDataFrame([], self._schema(name))

    def read_stream(self, name: str) -> "DataFrame":
        view = self._view(name)
        if view is not None:
            return evaluate(view.query, self)
        return stream_stand_in(self.spark, self._schema(name))

    def _view(self, name: str) -> TemporaryView | None:
        found = self._preparation.pipeline.datasets.get(name)
        return found if isinstance(found, TemporaryView) else None

    def _schema(self, name: str) -> "StructType":
        self.names.add(name)
        preparation = self._preparation
        if preparation.is_source(name):
            return preparation.source_schema(name)
        if name in preparation.pipeline.datasets:
            preparation.ensure(name)
        found = preparation.lake.table(name, preparation.generation_of(name))
        return schema_of(found.schema)


def stream_stand_in(spark: "SparkSession", schema: "StructType") -> "DataFrame":
    """A stream that never has a row, with these columns; Spark's own, so it costs no process."""
    from pyspark.sql import functions as F  # noqa: N812

    ticks = spark.readStream.format("rate").load().where("false")
    return ticks.select(*(F.lit(None).cast(f.dataType).alias(f.name) for f in schema.fields))


def plain_columns(schema: "StructType") -> pa.Schema:
    """What a table keeps of a flow's columns."""
    from pyspark.sql.types import StructType

    kept = [field for field in schema.fields if field.name not in RESERVED]
    return arrow_schema_of(StructType(kept))
