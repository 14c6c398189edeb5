"""What Spark calls for each micro-batch of a flow: write it once, tell where the flow stands."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from headrace.errors import HeadraceError
from headrace.lake.commits import Token
from headrace.lake.lineage import Lineage
from headrace.pipelines.model import PipelineSettings, Source
from headrace.pipelines.running.reports import Outcome, Report
from headrace.pipelines.running.state import FlowState
from headrace.pipelines.running.targets import Target
from headrace.pipelines.sources import by_cluster
from headrace.spark import checkpoints

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Progress:
    """The consumer group under which tools see how far a flow is."""

    group: str
    sources: Sequence[Source] = field(repr=False)
    settings: PipelineSettings = field(repr=False)

    def commit(self, ranges: checkpoints.Ranges) -> None:
        """Tell the clusters that the topics are of, each of its own.

        A flow goes on if one does not hear, since nobody resumes from this.
        """
        from headrace.spark.source.progress import commit_progress

        ends = ranges.ends()
        for properties, topics in by_cluster(ends, self.sources, self.settings):
            try:
                commit_progress(properties, self.group, {topic: ends[topic] for topic in topics})
            except HeadraceError as error:
                _log.warning("the progress of group %s was not committed: %s", self.group, error)


@dataclass(frozen=True, slots=True)
class FlowBatches:
    """The batch function of one flow."""

    lineage: Lineage
    """By whom batches are made; what each is made of comes to it."""
    state: FlowState
    target: Target
    progress: Progress | None = None
    transform: "Callable[[DataFrame], DataFrame] | None" = None
    """What is done with a batch before it is written, where that is no part of the stream."""

    def __call__(self, rows: "DataFrame", batch: int) -> None:
        began = time.monotonic()
        token = Token(self.state.writer(), batch)
        ranges = checkpoints.ranges(self.state.checkpoint, batch, self.state.started_at())
        if self.target.has(token):
            _log.info("batch %d of %s was written before; skipped", batch, self.lineage.flow)
            self._renew_state(rows)
            outcome = Outcome(is_repeated=True)
        else:
            shaped = rows if self.transform is None else self.transform(rows)
            outcome = self.target.write(shaped, token, self._lineage_of(ranges))
        if self.progress is not None:
            self.progress.commit(ranges)
        self._tell(batch, outcome, ranges, round((time.monotonic() - began) * 1000))

    def _renew_state(self, rows: "DataFrame") -> None:
        """Run the plan of a batch that is not written again, if the flow keeps state.

        Spark takes a batch for done only when all state stores have committed, which they do when
        their rows have been gone through. Without that the flow would fail here at every try.
        """
        if checkpoints.has_state(self.state.checkpoint):
            rows.write.format("noop").mode("overwrite").save()

    def _lineage_of(self, ranges: checkpoints.Ranges) -> Lineage:
        return msgspec.structs.replace(self.lineage, offsets=ranges.offsets, inputs=ranges.inputs)

    def _tell(
        self, batch: int, outcome: Outcome, ranges: checkpoints.Ranges, duration_ms: int
    ) -> None:
        report = Report.read(self.state.report)
        report.add(batch, outcome, duration_ms)
        report.ends = ranges.ends()
        report.write(self.state.report)
        for warning in outcome.warnings:
            _log.warning("%s", warning)
