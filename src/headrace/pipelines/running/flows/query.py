"""A flow as a streaming query over its inputs, whose batches go to its target."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.pipelines import model
from headrace.pipelines.declaring.intervals import seconds_of
from headrace.pipelines.declaring.names import is_source, source_name
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.queries.resolving import evaluate
from headrace.pipelines.queries.sources import client_properties
from headrace.pipelines.running.flows.batches import FlowBatches, Progress
from headrace.pipelines.running.flows.inputs import LiveReader
from headrace.pipelines.running.flows.targets import Target, shaped_for_topic
from headrace.pipelines.running.pipeline_run import PipelineRun
from headrace.pipelines.running.state.folders import FlowState
from headrace.pipelines.running.views.merged import MergedParts
from headrace.spark.launching.pickled_package import with_package
from headrace.spark.pools import REAL_TIME, choose_pool, pool_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


@dataclass(frozen=True, slots=True)
class FlowQuery:
    """The query of one flow in a run."""

    run: PipelineRun
    flow: model.Flow

    @property
    def state(self) -> FlowState:
        return self.run.folders.of(self.flow)

    @property
    def target(self) -> model.Dataset:
        return self.run.pipeline.datasets[self.flow.target]

    def start(self, *, is_once: bool) -> "StreamingQuery":
        """Start the query: until the available records are read, or continuously."""
        run, flow, state = self.run, self.flow, self.state
        state.directory.mkdir(parents=True, exist_ok=True)
        if isinstance(self.target, model.Sink):
            run.state.mark_sink(state)
        is_realtime = flow.realtime is not None
        choose_pool(run.spark, REAL_TIME if is_realtime else pool_of(self._priority()))
        reader = LiveReader(run.reads_of(flow, run.preparation.used_columns(flow)), state)
        if isinstance(self.target, model.MergedView):
            parts = MergedParts.of(run, self.target)
            rows, batches = parts.stream(reader), parts.fed(self._batches(parts.target(flow)))
        else:
            rows = evaluate(flow.query, reader)
            if is_realtime:
                return self._start_realtime(rows)
            batches = self._batches(run.targets.of(flow))
        writer = self._writer(rows).foreachBatch(with_package(batches))
        return self._triggered(writer, is_once=is_once).start()

    def _batches(self, target: Target) -> FlowBatches:
        settings = self.run.pipeline.settings
        group = f"{settings.group or settings.name}.{self.flow.name}"
        return FlowBatches(
            lineage=self.run.lineage(self.flow.name),
            state=self.state,
            target=target,
            progress=Progress(group, self.run.sources_of(self.flow), settings),
        )

    def _writer(self, rows: "DataFrame") -> "DataStreamWriter":
        state = self.state
        # A replay may run in the session of the run that it replaces, where names must differ.
        suffix = f".{state.directory.name}" if self.run.generations.chosen else ""
        return (
            rows.writeStream.queryName(f"{self.run.name}.{self.flow.name}{suffix}")
            .outputMode(model.output_mode(self.flow, self.target))
            .option("checkpointLocation", str(state.checkpoint))
        )

    def _triggered(self, writer: "DataStreamWriter", *, is_once: bool) -> "DataStreamWriter":
        if is_once or self.flow.is_once:
            return writer.trigger(availableNow=True)
        interval_s = seconds_of(model.trigger_of(self.flow, self.run.pipeline.settings))
        return writer.trigger(processingTime=f"{round(interval_s * 1000)} milliseconds")

    def _start_realtime(self, rows: "DataFrame") -> "StreamingQuery":
        """Start Spark's real-time mode, from topic to topic by the stock connector."""
        flow, sink = self.flow, self.target
        if not isinstance(sink, model.Sink):
            raise PipelineError(
                f"{flow.location}: {flow.name} runs in real-time mode, which writes to topics only;"
                f" {flow.target} is not a sink"
            )
        self.state.writer()  # The next start needs it, and no batch function creates it here.
        properties = client_properties(self.run.pipeline.settings)
        options = {f"kafka.{name}": value for name, value in properties.items()}
        writer = self._writer(shaped_for_topic(rows, sink.format))
        writer = writer.format("kafka").options(**options).option("topic", sink.topic)
        # The type hints of Spark lack this argument.
        triggered: DataStreamWriter = writer.trigger(realTime=flow.realtime)  # type: ignore[call-overload]
        return triggered.start()

    def _priority(self) -> int:
        """Return the highest priority of the topics that the flow reads, directly or not."""
        return max((s.priority for s in self._sources_behind(self.flow.target, set())), default=0)

    def _sources_behind(self, name: str, seen: set[str]) -> list[model.Source]:
        found: list[model.Source] = []
        for read in self.run.preparation.inputs.get(name, ()):
            if read in seen:
                continue
            seen.add(read)
            if is_source(read):
                found.append(self.run.pipeline.sources[source_name(read)])
            else:
                found += self._sources_behind(read, seen)
        return found
