"""Analysis of every query of a pipeline by Spark, over empty frames with the right columns.

Nothing is read and no process is started. The datasets are taken in the order of the graph, so
that the columns of a query's inputs are known; further inputs of a Python function are analysed
when it reads them. A dataset with a problem has no columns: queries that read it are neither
analysed nor reported.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from headrace.lake.quarantine import QUARANTINE_SCHEMA
from headrace.pipelines import model
from headrace.pipelines.analysing import raw_days
from headrace.pipelines.analysing.agreement import (
    Part,
    agreed,
    as_declared,
    doubled_column_complaints,
)
from headrace.pipelines.analysing.flow_additions import FlowAsRun, adding_day, keeping_bytes
from headrace.pipelines.analysing.graph import Consumer, Graph, consumers, graph_of
from headrace.pipelines.analysing.original_bytes import source_behind
from headrace.pipelines.analysing.origins import origin_of, origins_of, shared, with_origins
from headrace.pipelines.analysing.reads import Read
from headrace.pipelines.analysing.spark_errors import line_in_folder, line_of, short_text
from headrace.pipelines.analysing.stand_ins import (
    CONNECTORS,
    StandIns,
    parsed_schema,
    source_schema,
)
from headrace.pipelines.analysing.unhandled_errors import unhandled
from headrace.pipelines.declaring.names import is_source, quarantine_of, source_name
from headrace.pipelines.problems import PipelineError, Problem, raise_if_any
from headrace.pipelines.queries.resolving import evaluate
from headrace.pipelines.queries.sequences import SEQUENCE, sequence_column, sequenced
from headrace.pipelines.queries.sources import admitted, metadata_prefix

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from headrace.lake.tables import Table


class UnknownColumns(Exception):
    """A query reads a dataset that could not be analysed; the problem is at its declaration."""


class Analysis:
    """Spark's findings about the queries of a pipeline: columns, reads, frames and problems.

    `existing` returns the table of a name that the lake has already.
    """

    def __init__(
        self,
        spark: "SparkSession",
        pipeline: model.Pipeline,
        existing: "Callable[[str], Table | None]" = lambda _: None,
    ) -> None:
        self.spark = spark
        self.pipeline = pipeline
        self.stand_ins = StandIns(spark)
        self.problems: list[Problem] = []
        self._existing = existing
        self._reads: dict[str, list[Read]] = {}
        self._columns: dict[str, StructType] = {}
        self._histories: dict[str, pa.Schema] = {}
        self._frames: dict[str, DataFrame] = {}
        self._flows: dict[str, model.Flow] = {flow.name: flow for flow in pipeline.flows}
        self._days: dict[str, raw_days.Days] = {}
        self._side_outputs: dict[str, frozenset[str]] = {}
        self._consumers: dict[str, list[Consumer]] = {}
        for consumer in consumers(pipeline):
            self._consumers.setdefault(consumer.target, []).append(consumer)
        self._quarantines = {quarantine_of(name): name for name in pipeline.datasets}
        self._done: set[str] = set()
        self._underway: list[str] = []

    @property
    def reads(self) -> Mapping[str, Sequence[Read]]:
        """The datasets that each query has read, by the name of its flow or view."""
        return self._reads

    @property
    def columns(self) -> "Mapping[str, StructType]":
        """The columns of each dataset and source that could be analysed."""
        return self._columns

    @property
    def frames(self) -> "Mapping[str, DataFrame]":
        """The frame of each query that could be analysed, by the name of its flow or view."""
        return self._frames

    def flow(self, name: str) -> model.Flow:
        """Return a flow as it runs: with the columns that are added to its query."""
        return self._flows[name]

    def history(self, table: str) -> pa.Schema | None:
        """Return the columns of the history beside a table of changes; None for other tables."""
        return self._histories.get(table)

    def side_outputs(self, query: str) -> frozenset[str]:
        """Return the sources whose unreadable records are kept away from a flow or view."""
        return self._side_outputs.get(query, frozenset())

    def undated(self) -> dict[str, str]:
        """Return the raw tables without partitions by topic and day, each with the reason."""
        return {name: days.obstacle for name, days in self._days.items() if days.obstacle}

    def adds_day_to(self, table: str) -> bool:
        """Return whether every flow into a table gets its day added, and none brings its own."""
        days = self._days.get(table)
        flows = frozenset() if days is None else days.added_to
        return bool(flows) and flows == {flow.name for flow in self.pipeline.flows_into(table)}

    def may_refuse(self, name: str) -> bool:
        """Return whether rows, or the records behind them, may go to a dataset's quarantine."""
        dataset = self.pipeline.datasets[name]
        made = self._consumers.get(name, ())
        if any(self._side_outputs.get(one.name) for one in made):
            return True
        expectations = getattr(dataset, "expectations", ())
        if any(one.on_violation is model.Violation.QUARANTINE for one in expectations):
            return True
        frames = [self._frames[one.name] for one in made if one.name in self._frames]
        return not isinstance(dataset, model.Sink) and any(
            model.ERROR in frame.columns for frame in frames
        )

    def complain(self, text: str, location: model.Location) -> None:
        self.problems.append(Problem(text, location))

    def run(self) -> None:
        """Analyse everything."""
        for name in graph_of(self.pipeline).order():
            self.analyse(name)

    def graph(self) -> Graph:
        """Return the graph as Spark sees it; queries that failed count as written."""
        return graph_of(self.pipeline, self._reads)

    def analyse(self, name: str) -> None:
        """Determine the columns of a dataset or source, once."""
        if name in self._done:
            return
        if name in self._underway:
            raise UnknownColumns(name)  # `graph` reports the circle.
        self._underway.append(name)
        try:
            if is_source(name):
                self._source(name)
            elif name in self.pipeline.datasets:
                self._dataset(self.pipeline.datasets[name])
        finally:
            self._underway.pop()
        self._done.add(name)

    def columns_of(self, name: str) -> "StructType":
        """Return the columns of a query's input; UnknownColumns if it could not be analysed."""
        if (owner := self._quarantines.get(name)) is not None:
            return self._quarantine(owner, name)
        self.analyse(name)
        if name not in self._columns:
            raise UnknownColumns(name)
        return self._columns[name]

    def partition_by(
        self, dataset: model.StreamingTable | model.MaterializedView
    ) -> tuple[str, ...]:
        """Return the partition columns of a table, declared or by default."""
        days = self._days.get(dataset.name)
        is_by_day = days is not None and days.obstacle is None
        return raw_days.PARTITIONS if is_by_day else dataset.partition_by or ()

    @contextmanager
    def complaining(self, location: model.Location, what: str = "") -> Iterator[None]:
        """Turn an error of Spark or of a user's function into a problem at its line."""
        try:
            yield
        except UnknownColumns:
            return
        except PipelineError as error:
            self.problems += error.located(location, what)
        except Exception as error:
            # A user's function may raise anything; the other queries are still checked.
            self.problems.append(
                Problem(what + short_text(error), self._location_of(error, location))
            )

    def _location_of(self, error: BaseException, location: model.Location) -> model.Location:
        if found := line_in_folder(error, self.pipeline.directory):
            return model.Location(*found)
        line = line_of(error)
        is_in_query = line is not None and location.file.endswith(".sql") and line >= location.line
        return model.Location(location.file, line) if line is not None and is_in_query else location

    def _quarantine(self, owner: str, name: str) -> "StructType":
        """Return the columns of a quarantine, which must be possible for its owner."""
        from headrace.spark.tables.schemas import schema_of

        self.analyse(owner)
        if owner in self._consumers and not self.may_refuse(owner):
            raise PipelineError(
                f"{owner} rejects no rows, so {name} does not exist; quarantine gets records that"
                f" cannot be read, rows with an {model.ERROR}, and rows that break an expectation"
                " with quarantine as its consequence"
            )
        return schema_of(QUARANTINE_SCHEMA)

    def _source(self, name: str) -> None:
        source = self.pipeline.sources.get(source_name(name))
        if source is None:
            return  # The graph reports it.
        with self.complaining(source.location, f"{name}: "):
            known = raw_days.record_origins(metadata_prefix(source))
            self._columns[name] = with_origins(self._admitted(source).schema, known)

    def _admitted(self, source: model.Source) -> "DataFrame":
        if source.connector not in CONNECTORS:
            # Other streaming formats of Spark, as in tests, report their own columns.
            reader = self.spark.readStream.format(source.connector)
            return admitted(reader.options(**source.options).load(), source)
        columns = source_schema(source, self.pipeline.settings)
        return admitted(self.stand_ins.table(columns), source)

    def _dataset(self, dataset: model.Dataset) -> None:
        from headrace.spark.tables.schemas import schema_of

        made = self._consumers.get(dataset.name, [])
        for consumer in made:
            with self.complaining(consumer.location):
                self._frames[consumer.name] = self._evaluated(consumer)
                self._side_outputs[consumer.name] = self._unhandled(consumer, dataset)
                self._keep_bytes(consumer)
        if isinstance(dataset, model.TemporaryView | model.Sink):
            if dataset.name in self._frames:
                self._columns[dataset.name] = self._frames[dataset.name].schema
            return
        if not made:
            existing = self._existing(dataset.name)
            if existing is not None:
                # A replay that keeps this table reads it as is, without flows into it.
                self._columns[dataset.name] = schema_of(existing.schema)
            return
        if any(one.name not in self._frames for one in made):
            return
        with self.complaining(dataset.location, f"{dataset.name}: "):
            raise_if_any(self._doubled(dataset, made))
            if raw_days.has_default_partitions(dataset):
                self._partition_by_day(dataset, made)
            self._columns[dataset.name] = self._stored(dataset, made)

    def _evaluated(self, consumer: Consumer) -> "DataFrame":
        reader = RecordingReader(self, self._reads.setdefault(consumer.name, []))
        return evaluate(consumer.query, reader)

    def _unhandled(self, consumer: Consumer, dataset: model.Dataset) -> frozenset[str]:
        """Return the sources whose unreadable records a query ignores; its readers cover a view."""
        if isinstance(dataset, model.TemporaryView):
            return frozenset()
        return unhandled(consumer.query, consumer.name, self.pipeline, self._reads)

    def _keep_bytes(self, consumer: Consumer) -> None:
        """Add the records' bytes to a flow if quarantine may need them."""
        flow = self._flows.get(consumer.name)
        source = source_behind(consumer.query, self.pipeline, self._reads[consumer.name])
        if flow is None or source is None:
            return
        self._put(
            keeping_bytes(
                FlowAsRun(flow, self._frames[flow.name]),
                source,
                self.pipeline,
                lambda query: self._evaluated(replace(consumer, query=query)),
                has_side_output=bool(self._side_outputs[flow.name]),
            )
        )

    def _partition_by_day(self, table: model.StreamingTable, made: Sequence[Consumer]) -> None:
        """Add the default partitions to a raw table, and the day to its flows."""
        frames = {one.name: self._frames[one.name] for one in made}
        days = raw_days.days_of(table, frames, self._existing(table.name))
        self._days[table.name] = days
        for name in days.added_to:
            self._put(adding_day(FlowAsRun(self._flows[name], frames[name]), table.name))

    def _put(self, made: FlowAsRun) -> None:
        self._flows[made.flow.name] = made.flow
        self._frames[made.flow.name] = made.frame

    def _doubled(self, dataset: model.Dataset, made: Sequence[Consumer]) -> Iterator[Problem]:
        """Yield problems with columns that a table would get twice."""
        if isinstance(dataset, model.StreamingTable) and dataset.schema:
            declared = [(name, "") for name in parsed_schema(dataset.schema).names]
            for text in doubled_column_complaints(dataset.name, declared, ""):
                yield Problem(text, dataset.location)
        for one in made:
            changes = self._changes(one)
            left_out = {*model.RESERVED, *(changes.except_columns if changes else ())}
            fields = self._frames[one.name].schema.fields
            brought = [(field.name, origin_of(field)) for field in fields]
            kept = [column for column in brought if column[0] not in left_out]
            for text in doubled_column_complaints(dataset.name, kept, one.query):
                yield Problem(text, one.location)

    def _stored(self, dataset: model.Dataset, made: Sequence[Consumer]) -> "StructType":
        """Return the columns that a table stores of its flows' columns."""
        from headrace.spark.tables.schemas import arrow_schema_of, schema_of

        declared = pa.schema([])
        if isinstance(dataset, model.StreamingTable) and dataset.schema:
            declared = arrow_schema_of(parsed_schema(dataset.schema))
        parts = [Part("its schema", dataset.location, declared)] if len(declared) else []
        histories = []
        for consumer in made:
            columns, history = self._added_columns(consumer)
            parts.append(Part(consumer.name, consumer.location, as_declared(columns, declared)))
            if history is not None:
                histories.append(Part(consumer.name, consumer.location, history))
        if histories:
            what = f"{dataset.name}, KEYS and SEQUENCE BY"
            self._histories[dataset.name] = agreed(what, histories)
        known = shared(origins_of(self._frames[one.name].schema) for one in made)
        return with_origins(schema_of(agreed(dataset.name, parts)), known)

    def _added_columns(self, consumer: Consumer) -> tuple[pa.Schema, pa.Schema | None]:
        """Return the columns that a flow adds to its table, and to the history of changes."""
        from headrace.lake.applied_changes import history_schema, target_schema

        frame = self._frames[consumer.name]
        changes = self._changes(consumer)
        if changes is None:
            return kept_columns(frame.schema), None
        events, sequence = self._events(frame, changes)
        target = target_schema(
            events,
            sequence_by=sequence,
            scd_type=changes.scd_type,
            except_columns=(SEQUENCE, *changes.except_columns),
        )
        return target, history_schema(events, keys=changes.keys, sequence_by=sequence)

    def _changes(self, consumer: Consumer) -> model.Changes | None:
        flow = self._flows.get(consumer.name)
        return None if flow is None else flow.changes

    def _events(self, frame: "DataFrame", changes: model.Changes) -> tuple[pa.Schema, str]:
        """Return the columns of change events, and the name of the sequence."""
        events = self._sequenced_columns(frame, changes)
        sequence = sequence_column(changes, frame.columns)
        for column in (*changes.keys, sequence):
            if column not in events.names:
                raise UnknownColumns(column)  # The checks of the flow report it.
        return events, sequence

    def _sequenced_columns(self, frame: "DataFrame", changes: model.Changes) -> pa.Schema:
        from pyspark.errors import PySparkException

        try:
            return kept_columns(sequenced(frame, changes).schema)
        except PySparkException as error:
            # The checks of the flow report it.
            raise UnknownColumns(changes.sequence_by) from error


class RecordingReader:
    """Returns empty frames, and records the names that were read."""

    def __init__(self, analysis: Analysis, reads: list[Read]) -> None:
        self._analysis = analysis
        self._reads = reads

    @property
    def spark(self) -> "SparkSession":
        return self._analysis.spark

    def read(self, name: str) -> "DataFrame":
        return self._frame(name, is_stream=False)

    def read_stream(self, name: str) -> "DataFrame":
        return self._frame(name, is_stream=True)

    def _frame(self, name: str, *, is_stream: bool) -> "DataFrame":
        read = Read(name, is_stream)
        if read not in self._reads:
            self._reads.append(read)
        analysis = self._analysis
        dataset = analysis.pipeline.datasets.get(name)
        if isinstance(dataset, model.TemporaryView):
            analysis.analyse(name)
            if name not in analysis.frames:
                raise UnknownColumns(name)
            return analysis.frames[name]
        schema = analysis.columns_of(name)
        return analysis.stand_ins.stream(schema) if is_stream else analysis.stand_ins.table(schema)


def kept_columns(schema: "StructType") -> pa.Schema:
    """Return the columns of a flow that a table stores: all but those about the row."""
    from headrace.spark.tables.schemas import arrow_schema_of

    columns = arrow_schema_of(schema)
    return pa.schema([field for field in columns if field.name not in model.RESERVED])
