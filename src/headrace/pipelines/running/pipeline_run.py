"""One pipeline in a Spark session: its tables made, its flows as queries, its views refreshed."""

import datetime as dt
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from headrace.lake.catalog import Lake, MergedViewEntry
from headrace.lake.changes import history_name
from headrace.lake.lineage import Lineage
from headrace.lake.tables import Table
from headrace.lake.upserts import Upsert
from headrace.pipelines.model import (
    Architecture,
    Flow,
    Gate,
    MergedView,
    Pipeline,
    Sink,
    Source,
    StreamingTable,
)
from headrace.pipelines.names import is_source, quarantine_of, source_name, zone_of
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.running import architectures
from headrace.pipelines.running.architectures import Move, Moving
from headrace.pipelines.running.errors import StateDisagrees
from headrace.pipelines.running.flow_queries import FlowQuery
from headrace.pipelines.running.generations import FIRST_GENERATION, next_number
from headrace.pipelines.running.intake import DeadLetters, Intake
from headrace.pipelines.running.layers import tables_of
from headrace.pipelines.running.merged_views import MergedParts
from headrace.pipelines.running.places import TablePlace
from headrace.pipelines.running.preparing import Preparation
from headrace.pipelines.running.reading import TableReads
from headrace.pipelines.running.renamed_flows import check_not_renamed, topics_and_tables
from headrace.pipelines.running.reports import Report
from headrace.pipelines.running.setting_aside import SettingAside, TopicAside
from headrace.pipelines.running.state import FlowState, state_of
from headrace.pipelines.running.targets import (
    AppendTarget,
    ChangesTarget,
    KeyedTarget,
    Target,
    TopicTarget,
)
from headrace.pipelines.sources import client_properties
from headrace.spark.carrying import carried
from headrace.spark.refuge import Refuge, Spans

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_COMMITS_LOOKED_AT = 50


class PipelineRun:
    """A pipeline that is being run, of one generation of its tables.

    `generations` says which generation a table has where that is not the one that counts now: a
    replay builds the next one this way.
    """

    def __init__(
        self,
        spark: "SparkSession",
        pipeline: Pipeline,
        generations: Mapping[str, int] | None = None,
    ) -> None:
        self.spark = spark
        self.pipeline = pipeline
        self.lake = Lake(pipeline.settings.lake)
        self.state = state_of(pipeline)
        self.generations = dict(generations or {})
        self.preparation = Preparation(spark, pipeline, self.lake, self.generation_of)
        self._prepared: dict[str, int] = {}
        self._built: dict[str, int] = {}

    @property
    def name(self) -> str:
        return self.pipeline.settings.name

    def generation_of(self, table: str) -> int:
        """The generation that this run reads and writes of a table.

        Of its own tables it stays what it was when they were prepared. A replay may switch them
        while a view is computed: half of it on the old tables and half on the new ones would be
        wrong, and what it let go of in the speed layer would be lost.
        """
        own = self._built | self._prepared | self.generations
        if table in own:
            return own[table]
        entry = self.lake.catalog().tables.get(table)
        if entry is None:
            return FIRST_GENERATION
        return entry.current or max(entry.generations)

    def prepare(self, is_rebuilt: Callable[[str], bool] = lambda _: False) -> None:
        """Make the tables, and find out that tables and checkpoints agree, before anything runs.

        Of a table that is built anew nothing is asked: to mend it may be why that is done.
        """
        register_sources(self.spark)
        if not self.generations:
            number = next_number(self.lake, self.state, self.name)
            self._built = architectures.begin(self.lake, self.state, self.pipeline, number)
            self.preparation.unseen = self._built.keys()
        self.preparation.prepare(is_rebuilt)
        flows = tuple(map(self.preparation.as_run, self.pipeline.flows))
        self.pipeline = replace(self.pipeline, flows=flows)
        self._prepared = {name: self.generation_of(name) for name in self.preparation.made}
        for flow in self.flows():
            is_sent = isinstance(self.pipeline.datasets[flow.target], Sink)
            if is_sent or not is_rebuilt(self.written(flow)):
                self._check_state(flow)

    def moving(self) -> Moving:
        """The merged views that this run brings to another architecture's tables."""
        chosen, moves = self.pipeline.settings.architecture, []
        for view in self.pipeline.datasets.values():
            names = tables_of(view.name, chosen)
            if not isinstance(view, MergedView) or not self._built.keys() >= set(names):
                continue
            (read,) = self.preparation.inputs[view.name]
            source = self.lake.table(read, self.generation_of(read))
            stored = tuple(self.lake.table(name, self.generation_of(name)) for name in names)
            layers = self.preparation.layered.get(view.name)
            moves.append(Move(view.name, source, source.version, stored, layers))
        return Moving(self.lake, self.state, moves)

    def views(self) -> dict[str, MergedViewEntry]:
        """The merged views that are read as two layers; its own as this run keeps them."""
        own = self.pipeline.datasets
        others = {name: one for name, one in self.lake.views().items() if name not in own}
        return others | self.preparation.layered

    def flows(self) -> list[Flow]:
        """All that runs as a stream: the declared flows, and one for each merged view."""
        merged = [
            Flow(view.name, view.name, view.query, view.place)
            for view in self.pipeline.datasets.values()
            if isinstance(view, MergedView)
        ]
        return [*self.pipeline.flows, *merged]

    def flow_state(self, flow: Flow) -> FlowState:
        """The folder of a flow: one for each generation of what it writes, or of what it reads."""
        if isinstance(self.pipeline.datasets[flow.target], Sink):
            return self.state.flow(flow.name, self.generation_read(flow))
        written = self.written(flow)
        # The two ways of keeping a merged view have checkpoints of their own.
        is_merged = isinstance(self.pipeline.datasets[flow.target], MergedView)
        name = written if is_merged else flow.name
        return self.state.flow(name, self.generation_of(written))

    def generation_read(self, flow: Flow) -> int:
        """The newest generation among the tables that a flow to a topic reads.

        Merged views are not among them. They are only looked up, and get other numbers by a change
        of architecture, by which nothing shall be sent again.
        """
        behind = self.tables_behind_sink(flow)
        return max((self.generation_of(name) for name in behind), default=FIRST_GENERATION)

    def tables_behind_sink(self, flow: Flow) -> set[str]:
        """The tables that a flow to a topic reads and goes on in."""
        datasets = self.pipeline.datasets
        behind = self.preparation.tables_behind(flow.target)
        return {name for name in behind if not isinstance(datasets.get(name), MergedView)}

    def written(self, flow: Flow) -> str:
        """The table that a flow's batches are committed to."""
        target = self.pipeline.datasets[flow.target]
        if isinstance(target, MergedView):
            return MergedParts.of(self, target).table_name
        return flow.target

    def start(self, flow: Flow, *, is_once: bool) -> "StreamingQuery":
        """Start a flow as a query: until all is read that is there now, or for ever."""
        return FlowQuery(self, flow, self.flow_state(flow)).start(is_once=is_once)

    def reads(
        self,
        columns: Mapping[str, Sequence[str]] | None = None,
        *,
        keeps_payloads: bool = False,
        aside: SettingAside | None = None,
    ) -> TableReads:
        """What readers share: the tables, each of the generation that this run reads.

        `columns` says which of a topic's are used, where these are not all.
        """
        generations = self._current() | self._prepared | self.generations
        return TableReads(
            self.spark,
            self.pipeline,
            self.lake,
            generations,
            columns,
            self.views(),
            keeps_payloads=keeps_payloads,
            aside=aside,
        )

    def reads_of(
        self,
        flow: Flow,
        columns: Mapping[str, Sequence[str]] | None = None,
        *,
        is_redriven: bool = False,
    ) -> TableReads:
        """The same for a flow, with the bytes of records and without those that are unreadable."""
        aside = self.setting_aside(flow.name, flow.target, is_redriven=is_redriven)
        return self.reads(columns, keeps_payloads=flow.keeps_payloads, aside=aside)

    def lineage(self, flow: str, offsets: Spans | None = None) -> Lineage:
        """What a commit says of itself; of batches of a stream what they read comes to it."""
        settings = self.pipeline.settings
        return Lineage(
            pipeline=settings.name,
            pipeline_version=settings.version,
            pipeline_fingerprint=self.pipeline.fingerprint,
            flow=flow,
            offsets=offsets or {},
        )

    def is_current(self) -> bool:
        """Whether what this run writes is still what counts; a replay may have switched it."""
        current = self._current()
        return all(current.get(name, own) == own for name, own in self._prepared.items())

    def sources_of(self, flow: Flow) -> list[Source]:
        """The sources that a flow reads itself."""
        names = sorted(filter(is_source, self.preparation.reads.get(flow.name, ())))
        return [self.pipeline.sources[source_name(name)] for name in names]

    def target_of(self, flow: Flow, *, is_redriven: bool = False) -> Target:
        """Where the batches of a declared flow go.

        What is redriven passes no gate: all of it was refused before, so a gate would shut out
        what is fine now.
        """
        rows_max = self.pipeline.settings.driver_rows_max
        match self.pipeline.datasets[flow.target]:
            case Sink() as sink:
                return TopicTarget(
                    topic=sink.topic,
                    format=sink.format,
                    guarantee=sink.guarantee,
                    properties=client_properties(self.pipeline.settings),
                    options={k: v for k, v in sink.options.items() if k != "outputMode"},
                    aside=self.setting_aside(flow.name, sink.name),
                    quarantine=self.quarantine_of(sink.name),
                )
            case StreamingTable() as table:
                intake = self.intake(table, flow.name, is_redriven=is_redriven)
                if flow.changes is not None:
                    history = self.place(history_name(table.name))
                    return ChangesTarget(intake, history, flow.changes, rows_max)
                if table.keys:
                    how = Upsert(table.keys, sequence=table.sequence_by)
                    return KeyedTarget(intake, how, rows_max)
                return AppendTarget(intake)
            case other:
                raise PipelineError(f"{flow.place}: {other.name} is not fed by flows")

    def intake(self, table: StreamingTable, flow: str, *, is_redriven: bool = False) -> Intake:
        """The door of a streaming table."""
        letters = None
        if table.dead_letter_topic is not None:
            letters = DeadLetters(
                table.dead_letter_topic, client_properties(self.pipeline.settings)
            )
        return Intake(
            place=self.place(table.name),
            quarantine=self.quarantine_of(table.name),
            flow=flow,
            expectations=table.expectations,
            dead_letters=letters,
            gate=None if is_redriven else self.gate_of(table.name),
            aside=self.setting_aside(flow, table.name, is_redriven=is_redriven),
        )

    def setting_aside(
        self, name: str, table: str, *, is_redriven: bool = False
    ) -> SettingAside | None:
        """Where what cannot be read goes instead of to a flow or a view; None if it does not.

        A pipeline may run while rows are redriven, so the two have folders of their own.
        """
        sources = self.preparation.aside(name)
        quarantine = self.quarantine_of(table)
        if not sources or quarantine is None:
            return None
        flow = next((one for one in self.pipeline.flows if one.name == name), None)
        if flow is None:
            state = self.state.flow(name, self.generation_of(table))
        else:
            state = self.flow_state(flow)
        notes = state.directory.absolute() / ("redriven" if is_redriven else "unreadable")
        place = quarantine.table.place.absolute()
        settings = self.pipeline.settings
        return SettingAside(
            Refuge(str(notes), str(place), table, name),
            tuple(TopicAside.of(self.pipeline.sources[one], settings) for one in sorted(sources)),
        )

    def gate_of(self, table: str) -> Gate | None:
        """What the table's zone asks of each batch."""
        promotion = self.pipeline.settings.promotions.get(zone_of(table))
        return None if promotion is None else promotion.gate

    def place(self, name: str) -> TablePlace:
        return TablePlace(str(self.lake.root), name, self.generation_of(name))

    def quarantine_of(self, table: str) -> TablePlace | None:
        """Where refused rows of a table go; None if none can be."""
        name = quarantine_of(table)
        return self.place(name) if name in self.preparation.made else None

    def has_written(self, flow: Flow, table: Table) -> bool:
        """Whether a commit of late says that this flow made it."""
        said = (commit.lineage for commit in table.history.commits(_COMMITS_LOOKED_AT))
        return any(one and (one.pipeline, one.flow) == (self.name, flow.name) for one in said)

    def _current(self) -> dict[str, int]:
        entries = self.lake.entries()
        return {entry.name: entry.current for entry in entries if entry.current is not None}

    def _check_state(self, flow: Flow) -> None:
        """Refuse to go on where a checkpoint or a table was put aside without the other."""
        state = self.flow_state(flow)
        if isinstance(self.pipeline.datasets[flow.target], Sink):
            self.state.check_sink(state, flow.name, Report.read(state.report).batch)
            return
        written = self.written(flow)
        names = [written] if flow.changes is None else [written, history_name(written)]
        tables = [self.lake.table(name, self.generation_of(name)) for name in names]
        # All before any: the name that the second check asks for makes the flow a known one.
        if not state.is_known:
            for table in tables:
                self._check_unwritten(flow, state, table)
        for table in tables:
            state.check(flow.name, table.name, table.last_batch(state.writer()))

    def _check_unwritten(self, flow: Flow, state: FlowState, table: Table) -> None:
        """Refuse a flow without a checkpoint whose rows a table has, from it or a former name."""
        if self.has_written(flow, table):
            raise StateDisagrees(
                f"{table.name} has rows of the flow {flow.name}, but its checkpoint is gone:"
                f" {state.directory}. Beginning again would write them twice. Put the folder back,"
                " or build the tables anew: remove them too, or `headrace pipelines replay FOLDER`"
            )
        if flow.name in self.preparation.reads:
            reads = topics_and_tables(
                self.preparation.reads[flow.name], self.pipeline.sources.values()
            )
            declared = [one.name for one in self.flows()]
            former = self.state.former_flows(table.generation, declared)
            check_not_renamed(flow.name, state, table, former, reads)


def register_sources(spark: "SparkSession") -> None:
    """Let the session know the source of lake tables; that of topics is found by its name."""
    from headrace.spark.tables.source import TableSource

    spark.dataSource.register(carried(TableSource))


def now() -> dt.datetime:
    """The time of day, by the clock that reports and commits are stamped with."""
    return dt.datetime.fromtimestamp(time.time_ns() / 1e9, dt.UTC)


def is_lambda(pipeline: Pipeline) -> bool:
    return pipeline.settings.architecture is Architecture.LAMBDA
