"""The function that Spark calls for each micro-batch of a flow: write it once, and report it."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from headrace.errors import HeadraceError
from headrace.lake.commit_log import Token
from headrace.lake.lineage import Lineage
from headrace.pipelines.model import PipelineSettings, Source
from headrace.pipelines.queries.sources import by_cluster
from headrace.pipelines.running.flows.targets import Target
from headrace.pipelines.running.state.folders import FlowState
from headrace.pipelines.running.state.reports import Outcome, Report
from headrace.runtime.clock import Clock, SystemClock
from headrace.spark import checkpoints

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Progress:
    """The consumer group that shows a flow's progress to tools."""

    group: str
    sources: Sequence[Source] = field(repr=False)
    settings: PipelineSettings = field(repr=False)

    def commit(self, ranges: checkpoints.Ranges) -> None:
        """Commit the offsets to the clusters of the topics.

        A failure does not stop the flow, since no flow resumes from these offsets.
        """
        from headrace.spark.source.progress import commit_progress

        ends = ranges.ends()
        for properties, topics in by_cluster(ends, self.sources, self.settings):
            try:
                commit_progress(properties, self.group, {topic: ends[topic] for topic in topics})
            except HeadraceError as error:
                _log.warning(
                    "progress of a consumer group not committed",
                    extra={"group": self.group, "error": str(error)},
                )


@dataclass(frozen=True, slots=True)
class FlowBatches:
    """The batch function of one flow."""

    lineage: Lineage
    """The flow's lineage; each batch adds its inputs."""
    state: FlowState
    target: Target
    progress: Progress | None = None
    transform: "Callable[[DataFrame], DataFrame] | None" = None
    """A change of each batch before it is written, outside of the stream's query."""
    clock: Clock = field(default_factory=SystemClock)

    def __call__(self, rows: "DataFrame", batch: int) -> None:
        began_ms = self.clock.monotonic_ms()
        token = Token(self.state.writer(), batch)
        ranges = checkpoints.ranges(self.state.checkpoint, batch, self.state.started_at())
        if self.target.has(token):
            _log.info(
                "batch written before, skipped",
                extra={"flow": self.lineage.flow, "batch": batch},
            )
            self._renew_state(rows)
            outcome = Outcome(is_repeated=True)
        else:
            shaped = rows if self.transform is None else self.transform(rows)
            outcome = self.target.write(shaped, token, self._lineage_of(ranges))
        if self.progress is not None:
            self.progress.commit(ranges)
        self._report(batch, outcome, ranges, self.clock.monotonic_ms() - began_ms)

    def _renew_state(self, rows: "DataFrame") -> None:
        """Run the plan of a skipped batch if the flow keeps state.

        Spark finishes a batch only when all state stores have committed, which they do at the end
        of their rows. Otherwise the flow would fail here at every try.
        """
        if checkpoints.has_state(self.state.checkpoint):
            rows.write.format("noop").mode("overwrite").save()

    def _lineage_of(self, ranges: checkpoints.Ranges) -> Lineage:
        return msgspec.structs.replace(self.lineage, offsets=ranges.offsets, inputs=ranges.inputs)

    def _report(
        self, batch: int, outcome: Outcome, ranges: checkpoints.Ranges, duration_ms: int
    ) -> None:
        report = Report.read(self.state.report)
        report.add(batch, outcome, duration_ms, self.clock.now_ms())
        report.ends = ranges.ends()
        report.write(self.state.report)
        for warning in outcome.warnings:
            _log.warning(
                "batch breaks an expectation",
                extra={"flow": self.lineage.flow, "batch": batch, "problem": warning},
            )
