"""Every query of a pipeline analysed by Spark, over empty frames with the right columns.

Nothing is read and no process is started. The datasets are taken in the order of the graph, so
that the columns of what a query reads are known; what a Python function reads beyond that is
analysed when it asks for it. A dataset that something is wrong with has no columns: the queries
that read it are not analysed, and not complained about.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from headrace.lake.quarantine import QUARANTINE_SCHEMA
from headrace.pipelines.analysing import doubled_columns, raw_days
from headrace.pipelines.analysing.agreement import Part, agreed, as_declared
from headrace.pipelines.analysing.flow_additions import FlowAsRun, bringing_day, keeping_bytes
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
from headrace.pipelines.model import (
    ERROR,
    RESERVED,
    Changes,
    Dataset,
    Flow,
    MaterializedView,
    Pipeline,
    Place,
    Sink,
    Source,
    StreamingTable,
    TemporaryView,
)
from headrace.pipelines.names import is_source, quarantine_of, source_name
from headrace.pipelines.problems import PipelineError, Problem, raise_if_any
from headrace.pipelines.quarantine import may_refuse
from headrace.pipelines.resolving import evaluate
from headrace.pipelines.sequences import SEQUENCE, sequence_column, sequenced
from headrace.pipelines.sources import admitted, metadata_prefix

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from headrace.lake.tables import Table


class UnknownColumns(Exception):
    """What a query reads could not be analysed; that was complained about where it is declared."""


class Analysis:
    """What Spark says of a pipeline's queries.

    `standing` finds the tables that are there already.
    """

    def __init__(
        self,
        spark: "SparkSession",
        pipeline: Pipeline,
        standing: "Callable[[str], Table | None]" = lambda _: None,
    ) -> None:
        self.spark = spark
        self.pipeline = pipeline
        self._standing = standing
        self.stand_ins = StandIns(spark)
        self.problems: list[Problem] = []
        self.reads: dict[str, list[Read]] = {}
        """What each query has asked for, by the name of its flow or view."""
        self.schemas: dict[str, StructType] = {}
        """The columns of each dataset that could be analysed."""
        self.histories: dict[str, pa.Schema] = {}
        """The columns of what is remembered beside each table of changes."""
        self.frames: dict[str, DataFrame] = {}
        """The frame of each query, by the name of its flow or view."""
        self.flows: dict[str, Flow] = {flow.name: flow for flow in pipeline.flows}
        """Each flow as it is run, with what it brings beyond its query."""
        self.days: dict[str, raw_days.Days] = {}
        """What becomes of each table of raw that says nothing of its partitions."""
        self.aside: dict[str, frozenset[str]] = {}
        """The sources whose unreadable records are kept away from a query, by its name."""
        self._consumers: dict[str, list[Consumer]] = {}
        for consumer in consumers(pipeline):
            self._consumers.setdefault(consumer.target, []).append(consumer)
        self._quarantines = {quarantine_of(name): name for name in pipeline.datasets}
        self._done: set[str] = set()
        self._underway: list[str] = []

    def run(self) -> None:
        """Analyse everything."""
        for name in graph_of(self.pipeline).order():
            self.analyse(name)

    def graph(self) -> Graph:
        """Who reads whom, as Spark has seen it; of what it could not see, as it is written."""
        return graph_of(self.pipeline, self.reads)

    def analyse(self, name: str) -> None:
        """Find out the columns of one dataset or source, if that was not done yet."""
        if name in self._done:
            return
        if name in self._underway:
            raise UnknownColumns(name)  # A circle; the graph tells which.
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
        """The columns of what a query reads; UnknownColumns if they cannot be told."""
        if (owner := self._quarantines.get(name)) is not None:
            return self._quarantine(owner, name)
        self.analyse(name)
        if name not in self.schemas:
            raise UnknownColumns(name)
        return self.schemas[name]

    def partition_by(self, dataset: StreamingTable | MaterializedView) -> tuple[str, ...]:
        """By what a table is to be partitioned, declared or not."""
        days = self.days.get(dataset.name)
        is_by_day = days is not None and days.obstacle is None
        return raw_days.PARTITIONS if is_by_day else dataset.partition_by or ()

    def sets_aside(self, name: str) -> bool:
        """Whether records that cannot be read are kept away from what fills a dataset."""
        return any(self.aside.get(one.name) for one in self._consumers.get(name, ()))

    @contextmanager
    def complaining(self, place: Place, what: str = "") -> Iterator[None]:
        """Turn what Spark or a user's function raises into a problem at its line."""
        try:
            yield
        except UnknownColumns:
            return
        except PipelineError as error:
            self.problems += error.placed(place, what)
        except Exception as error:
            # A user's function may raise anything, and the other queries are to be seen too.
            self.problems.append(Problem(what + short_text(error), self._place_of(error, place)))

    def _place_of(self, error: BaseException, place: Place) -> Place:
        if found := line_in_folder(error, self.pipeline.directory):
            return Place(*found)
        line = line_of(error)
        is_in_query = line is not None and place.file.endswith(".sql") and line >= place.line
        return Place(place.file, line) if line is not None and is_in_query else place

    def _quarantine(self, owner: str, name: str) -> "StructType":
        """The columns of every quarantine, if this one is ever made."""
        from headrace.spark.tables.schemas import schema_of

        self.analyse(owner)
        brought = [
            column
            for consumer in self._consumers.get(owner, [])
            if consumer.name in self.frames
            for column in self.frames[consumer.name].columns
        ]
        expectations = getattr(self.pipeline.datasets[owner], "expectations", ())
        is_fed = owner in self._consumers
        if is_fed and not may_refuse(brought, expectations, sets_aside=self.sets_aside(owner)):
            raise PipelineError(
                f"{owner} refuses no rows, so there is no {name}; quarantine takes records that"
                f" cannot be read, and rows that have an {ERROR} or break an expectation that says"
                " so"
            )
        return schema_of(QUARANTINE_SCHEMA)

    def _source(self, name: str) -> None:
        source = self.pipeline.sources.get(source_name(name))
        if source is None:
            return  # The graph says so.
        with self.complaining(source.place, f"{name}: "):
            known = raw_days.record_origins(metadata_prefix(source))
            self.schemas[name] = with_origins(self._admitted(source).schema, known)

    def _admitted(self, source: Source) -> "DataFrame":
        if source.connector not in CONNECTORS:
            # Whatever else Spark reads as a stream, as tests have it, tells its columns itself.
            reader = self.spark.readStream.format(source.connector)
            return admitted(reader.options(**source.options).load(), source)
        columns = source_schema(source, self.pipeline.settings)
        return admitted(self.stand_ins.table(columns), source)

    def _dataset(self, dataset: Dataset) -> None:
        from headrace.spark.tables.schemas import schema_of

        made = self._consumers.get(dataset.name, [])
        for consumer in made:
            with self.complaining(consumer.place):
                self.frames[consumer.name] = self._evaluated(consumer)
                self.aside[consumer.name] = self._unhandled(consumer, dataset)
                self._keep_bytes(consumer)
        if isinstance(dataset, TemporaryView | Sink):
            if dataset.name in self.frames:
                self.schemas[dataset.name] = self.frames[dataset.name].schema
            return
        if not made:
            standing = self._standing(dataset.name)
            if standing is not None:
                # A replay that keeps it reads it as it is, and has no flows into it.
                self.schemas[dataset.name] = schema_of(standing.schema)
            return
        if any(one.name not in self.frames for one in made):
            return
        with self.complaining(dataset.place, f"{dataset.name}: "):
            raise_if_any(self._doubled(dataset, made))
            if raw_days.is_left_open(dataset):
                self._partition_by_day(dataset, made)
            self.schemas[dataset.name] = self._stored(dataset, made)

    def _evaluated(self, consumer: Consumer) -> "DataFrame":
        reader = RecordingReader(self, self.reads.setdefault(consumer.name, []))
        return evaluate(consumer.query, reader)

    def _unhandled(self, consumer: Consumer, dataset: Dataset) -> frozenset[str]:
        """What a query does not take care of; one that is not stored is part of its readers."""
        if isinstance(dataset, TemporaryView):
            return frozenset()
        return unhandled(consumer.query, consumer.name, self.pipeline, self.reads)

    def _keep_bytes(self, consumer: Consumer) -> None:
        """Let a flow bring the bytes of its records, where quarantine may want them."""
        flow = self.flows.get(consumer.name)
        source = source_behind(consumer.query, self.pipeline, self.reads[consumer.name])
        if flow is None or source is None:
            return
        self._put(
            keeping_bytes(
                FlowAsRun(flow, self.frames[flow.name]),
                source,
                self.pipeline,
                lambda query: self._evaluated(replace(consumer, query=query)),
                sets_aside=bool(self.aside[flow.name]),
            )
        )

    def _partition_by_day(self, table: StreamingTable, made: Sequence[Consumer]) -> None:
        """Let a table of raw have its usual partitions, and its flows bring the day."""
        frames = {one.name: self.frames[one.name] for one in made}
        days = raw_days.days_of(table, frames, self._standing(table.name))
        self.days[table.name] = days
        for name in days.added_to:
            self._put(bringing_day(FlowAsRun(self.flows[name], frames[name]), table.name))

    def _put(self, made: FlowAsRun) -> None:
        self.flows[made.flow.name] = made.flow
        self.frames[made.flow.name] = made.frame

    def _doubled(self, dataset: Dataset, made: Sequence[Consumer]) -> Iterator[Problem]:
        """What flows bring twice to a table that would keep it."""
        if isinstance(dataset, StreamingTable) and dataset.schema:
            declared = [(name, "") for name in parsed_schema(dataset.schema).names]
            for text in doubled_columns.complaints(dataset.name, declared, ""):
                yield Problem(text, dataset.place)
        for one in made:
            changes = self._changes(one)
            left_out = {*RESERVED, *(changes.except_columns if changes else ())}
            fields = self.frames[one.name].schema.fields
            brought = [(field.name, origin_of(field)) for field in fields]
            kept = [column for column in brought if column[0] not in left_out]
            for text in doubled_columns.complaints(dataset.name, kept, one.query):
                yield Problem(text, one.place)

    def _stored(self, dataset: Dataset, made: Sequence[Consumer]) -> "StructType":
        """The columns that a table keeps of what its flows bring."""
        from headrace.spark.tables.schemas import arrow_schema_of, schema_of

        declared = pa.schema([])
        if isinstance(dataset, StreamingTable) and dataset.schema:
            declared = arrow_schema_of(parsed_schema(dataset.schema))
        parts = [Part("its schema", dataset.place, declared)] if len(declared) else []
        histories = []
        for consumer in made:
            columns, history = self._brought(consumer)
            parts.append(Part(consumer.name, consumer.place, as_declared(columns, declared)))
            if history is not None:
                histories.append(Part(consumer.name, consumer.place, history))
        if histories:
            what = f"{dataset.name}, KEYS and SEQUENCE BY"
            self.histories[dataset.name] = agreed(what, histories)
        known = shared(origins_of(self.frames[one.name].schema) for one in made)
        return with_origins(schema_of(agreed(dataset.name, parts)), known)

    def _brought(self, consumer: Consumer) -> tuple[pa.Schema, pa.Schema | None]:
        """The columns that a flow brings to its table, and to what is remembered of changes."""
        from headrace.lake.changes import history_schema, target_schema

        frame = self.frames[consumer.name]
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

    def _changes(self, consumer: Consumer) -> Changes | None:
        flow = self.flows.get(consumer.name)
        return None if flow is None else flow.changes

    def _events(self, frame: "DataFrame", changes: Changes) -> tuple[pa.Schema, str]:
        """The columns of change events, and which of them is the sequence."""
        events = self._sequenced_columns(frame, changes)
        sequence = sequence_column(changes, frame.columns)
        for column in (*changes.keys, sequence):
            if column not in events.names:
                raise UnknownColumns(column)  # The checks of the flow say so.
        return events, sequence

    def _sequenced_columns(self, frame: "DataFrame", changes: Changes) -> pa.Schema:
        from pyspark.errors import PySparkException

        try:
            return kept_columns(sequenced(frame, changes).schema)
        except PySparkException as error:
            # The checks of the flow say so.
            raise UnknownColumns(changes.sequence_by) from error


class RecordingReader:
    """Gives empty frames, and notes what was asked for."""

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
        if isinstance(dataset, TemporaryView):
            analysis.analyse(name)
            if name not in analysis.frames:
                raise UnknownColumns(name)
            return analysis.frames[name]
        schema = analysis.columns_of(name)
        return analysis.stand_ins.stream(schema) if is_stream else analysis.stand_ins.table(schema)


def kept_columns(schema: "StructType") -> pa.Schema:
    """What a table keeps of a flow's columns: all but those that are about the row."""
    from headrace.spark.tables.schemas import arrow_schema_of

    columns = arrow_schema_of(schema)
    return pa.schema([field for field in columns if field.name not in RESERVED])
