"""Tables that are computed whole: materialized views, and the batch layer of merged views.

A refresh reads each input at one version, noted in its lineage. If no input has changed since,
nothing is done; if the process dies, the old content stays until the next refresh.
"""

import datetime as dt
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from headrace.lake.commit_log import Token
from headrace.lake.merged_views import forget_covered, reached_version
from headrace.pipelines.declaring.intervals import Schedule, parse_schedule
from headrace.pipelines.declaring.names import is_source
from headrace.pipelines.model import Architecture, Expectation, MaterializedView, MergedView
from headrace.pipelines.queries.resolving import evaluate
from headrace.pipelines.running.flows.inputs import SnapshotReader
from headrace.pipelines.running.flows.intake import Intake
from headrace.pipelines.running.flows.targets import AppendTarget
from headrace.pipelines.running.flows.unreadable_records import SideOutputs
from headrace.pipelines.running.pipeline_run import PipelineRun
from headrace.pipelines.running.state.folders import FlowState
from headrace.pipelines.running.state.reports import Report
from headrace.pipelines.running.tables.layers import batch_name, speed_name
from headrace.spark.pools import BATCH, choose_pool
from headrace.spark.tables.frames import first_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headrace.lake.tables import Table

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ComputedView:
    """A table that is replaced as a whole on each refresh."""

    run: PipelineRun
    view: MaterializedView | MergedView

    @property
    def name(self) -> str:
        return self.view.name

    @property
    def stored(self) -> str:
        """The table with the content."""
        return batch_name(self.name) if isinstance(self.view, MergedView) else self.name

    @property
    def schedule(self) -> Schedule:
        return parse_schedule(self.view.refresh or self.run.pipeline.settings.refresh)

    @property
    def state(self) -> FlowState:
        return self.run.state.flow(self.stored, self.run.generations.of(self.stored))

    def refresh(self, *, is_forced: bool = False) -> bool:
        """Compute the view if an input or its query has changed; return whether it was computed."""
        began_ms = self.run.clock.monotonic_ms()
        choose_pool(self.run.spark, BATCH)
        table = self.run.generations.table(self.stored)
        inputs = self._input_versions()
        if not is_forced and self._is_as_before(table, inputs):
            self._record_check()
            return False
        side_outputs = self.run.targets.side_outputs_of(self.name, self.stored)
        reader = SnapshotReader(self.run.reads(side_outputs=side_outputs))
        reader.versions.update(self._without_rewrites(inputs))
        rows = self._rows(reader)
        lineage = msgspec.structs.replace(
            self.run.lineage(self.name),
            inputs={name: (0, version) for name, version in (reader.versions | inputs).items()},
        )
        writer = self.state.writer()
        last = table.last_batch(writer)
        batch = 0 if last is None else last + 1
        target = AppendTarget(self._intake(side_outputs))
        outcome = target.write(rows, Token(writer, batch), lineage)
        report = Report.read(self.state.report)
        report.rows_in = report.rows_out = report.quarantined = report.dropped = 0
        report.broken, report.newest_ms = {}, {}
        report.query = self.run.preparation.fingerprint(self.view)
        duration_ms = self.run.clock.monotonic_ms() - began_ms
        report.add(batch, outcome, duration_ms, self.run.clock.now_ms())
        report.looked_at_ms = report.last_at_ms
        report.write(self.state.report)
        if isinstance(self.view, MergedView):
            self._prune(inputs)
        return True

    def _is_as_before(self, table: "Table", inputs: dict[str, int]) -> bool:
        """Return whether the same query was computed from the same versions.

        A view of topics is always computed, since their content is unknown before reading; so is
        one that uses the time or random numbers.
        """
        preparation = self.run.preparation
        if any(is_source(name) for name in preparation.inputs[self.name]):
            return False
        if not preparation.is_repeatable(self.name):
            return False
        if Report.read(self.state.report).query != preparation.fingerprint(self.view):
            return False
        before = table.history.lineage()
        return before is not None and {k: v[1] for k, v in before.inputs.items()} == inputs

    def _record_check(self) -> None:
        """Record that the inputs are unchanged, so that the schedule continues from here."""
        report = Report.read(self.state.report)
        report.looked_at_ms = self.run.clock.now_ms()
        report.write(self.state.report)

    def last_run(self) -> dt.datetime | None:
        """Return when the view was last computed, or found up to date."""
        report = Report.read(self.state.report)
        at_ms = report.looked_at_ms or report.last_at_ms
        return dt.datetime.fromtimestamp(at_ms / 1000, dt.UTC) if at_ms else None

    def _input_versions(self) -> dict[str, int]:
        """Return the version of each input; a merged view reads up to the end of a part."""
        if isinstance(self.view, MergedView):
            (source,) = self.run.preparation.inputs[self.name]
            speed = speed_name(self.name)
            table = self.run.generations.table(speed)
            return {source: reached_version(table, source)}
        lake, generations = self.run.lake, self.run.reads().generations
        views, versions = self.run.views(), dict[str, int]()
        for name in sorted(self.run.preparation.tables_behind(self.name)):
            if name in views:
                versions |= lake.layers(views[name], generations).versions
            else:
                versions[name] = lake.table(name, self.run.generations.of(name)).version
        return versions

    def _without_rewrites(self, inputs: dict[str, int]) -> dict[str, int]:
        """Return readable versions with the same rows: files of a part may have been joined."""
        if not isinstance(self.view, MergedView):
            return inputs
        lake, generation_of = self.run.lake, self.run.generations.of
        return {
            name: lake.table(name, generation_of(name)).history.latest_with_same_rows(version)
            for name, version in inputs.items()
        }

    def _rows(self, reader: SnapshotReader) -> "DataFrame":
        if not isinstance(self.view, MergedView) or not self.view.deduplicate_by:
            return evaluate(self.view.query, reader)
        (source,) = self.run.preparation.inputs[self.name]
        table = self.run.generations.table(source)
        keys = self.view.deduplicate_by
        rows = first_rows(self.run.spark, table, reader.versions[source], keys)
        once = SnapshotReader(self.run.reads(), given={source: rows})
        return evaluate(self.view.query, once)

    def _intake(self, side_outputs: SideOutputs | None) -> Intake:
        expectations: tuple[Expectation, ...] = ()
        if isinstance(self.view, MaterializedView):
            expectations = self.view.expectations
        place = self.run.generations.place(self.stored)
        quarantine = self.run.targets.quarantine_of(self.stored)
        return Intake(
            place,
            quarantine,
            self.name,
            expectations,
            is_replaced=True,
            gate=self.run.targets.gate_of(self.name),
            side_outputs=side_outputs,
        )

    def _prune(self, covered: dict[str, int]) -> None:
        """Remove parts that the batch layer covers; readers skip them already."""
        place = self.run.generations.place(speed_name(self.name))
        (version,) = covered.values()
        with place.held() as table:
            forget_covered(table, version)


def computed_views(run: PipelineRun) -> list[ComputedView]:
    """Return all views of a pipeline that are computed whole."""
    is_lambda = run.pipeline.settings.architecture is Architecture.LAMBDA
    kinds = (MaterializedView, MergedView) if is_lambda else (MaterializedView,)
    return [ComputedView(run, d) for d in run.pipeline.datasets.values() if isinstance(d, kinds)]
