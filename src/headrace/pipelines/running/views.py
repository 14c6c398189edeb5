"""What is computed whole: materialized views, and the batch layer of merged views.

A refresh reads each input at one version and says in its lineage which. If none of them has changed
since, there is nothing to do; if the process dies, the old content stays until the next refresh.
"""

import datetime as dt
import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from headrace.lake.commits import Token
from headrace.lake.merging import forget_covered, pair, reached_version
from headrace.pipelines.intervals import Schedule, parse_schedule
from headrace.pipelines.model import Expectation, MaterializedView, MergedView
from headrace.pipelines.names import is_source
from headrace.pipelines.resolving import evaluate
from headrace.pipelines.running.intake import Intake
from headrace.pipelines.running.layers import batch_name, speed_name
from headrace.pipelines.running.pipeline_run import PipelineRun
from headrace.pipelines.running.reading import SnapshotReader
from headrace.pipelines.running.reports import Report
from headrace.pipelines.running.setting_aside import SettingAside
from headrace.pipelines.running.state import FlowState
from headrace.pipelines.running.targets import AppendTarget
from headrace.spark.pools import BATCH, choose_pool
from headrace.spark.tables.frames import first_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headrace.lake.tables import Table

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ComputedView:
    """A table that is replaced as a whole, by a run of its own."""

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
        return self.run.state.flow(self.stored, self.run.generation_of(self.stored))

    def refresh(self, *, is_forced: bool = False) -> bool:
        """Compute the view anew if an input or its query has changed; whether that was so."""
        began = time.monotonic()
        choose_pool(self.run.spark, BATCH)
        table = self.run.lake.table(self.stored, self.run.generation_of(self.stored))
        inputs = self._input_versions()
        if not is_forced and self._is_as_before(table, inputs):
            self._note_look()
            return False
        aside = self.run.setting_aside(self.name, self.stored)
        reader = SnapshotReader(self.run.reads(aside=aside))
        reader.versions.update(self._settled(inputs))
        rows = self._rows(reader)
        lineage = msgspec.structs.replace(
            self.run.lineage(self.name),
            inputs={name: (0, version) for name, version in (reader.versions | inputs).items()},
        )
        writer = self.state.writer()
        last = table.last_batch(writer)
        batch = 0 if last is None else last + 1
        target = AppendTarget(self._intake(aside))
        outcome = target.write(rows, Token(writer, batch), lineage)
        report = Report.read(self.state.report)
        report.rows_in = report.rows_out = report.quarantined = report.dropped = 0
        report.broken, report.newest_ms = {}, {}
        report.query = self.run.preparation.fingerprint(self.view)
        report.add(batch, outcome, round((time.monotonic() - began) * 1000))
        report.looked_at_ms = report.last_at_ms
        report.write(self.state.report)
        if isinstance(self.view, MergedView):
            self._prune(inputs)
        return True

    def _is_as_before(self, table: "Table", inputs: dict[str, int]) -> bool:
        """Whether the same query has been computed from the same versions.

        What a topic holds is not known before it is read, so a view of topics is always computed;
        and so is one that asks for the time or for chance.
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

    def _note_look(self) -> None:
        """Let the schedule go on from here, though there was nothing to do."""
        report = Report.read(self.state.report)
        report.looked_at_ms = time.time_ns() // 1_000_000
        report.write(self.state.report)

    def last_run(self) -> dt.datetime | None:
        """When the view was last brought up to its inputs, or found to be."""
        report = Report.read(self.state.report)
        at_ms = report.looked_at_ms or report.last_at_ms
        return dt.datetime.fromtimestamp(at_ms / 1000, dt.UTC) if at_ms else None

    def _input_versions(self) -> dict[str, int]:
        """At which version each input is read; the seam of a merged view is where a part ends."""
        if isinstance(self.view, MergedView):
            (source,) = self.run.preparation.inputs[self.name]
            speed = speed_name(self.name)
            table = self.run.lake.table(speed, self.run.generation_of(speed))
            return {source: reached_version(table, source)}
        lake, generations = self.run.lake, self.run.reads().generations
        views, versions = self.run.views(), dict[str, int]()
        for name in sorted(self.run.preparation.tables_behind(self.name)):
            if name in views:
                versions |= pair(lake, views[name], generations).versions
            else:
                versions[name] = lake.table(name, self.run.generation_of(name)).version
        return versions

    def _settled(self, inputs: dict[str, int]) -> dict[str, int]:
        """Where the rows of a seam are read: its own files may be joined and gone long since."""
        if not isinstance(self.view, MergedView):
            return inputs
        lake, generation_of = self.run.lake, self.run.generation_of
        return {
            name: lake.table(name, generation_of(name)).history.settled(version)
            for name, version in inputs.items()
        }

    def _rows(self, reader: SnapshotReader) -> "DataFrame":
        if not isinstance(self.view, MergedView) or not self.view.deduplicate_by:
            return evaluate(self.view.query, reader)
        (source,) = self.run.preparation.inputs[self.name]
        table = self.run.lake.table(source, self.run.generation_of(source))
        keys = self.view.deduplicate_by
        rows = first_rows(self.run.spark, table, reader.versions[source], keys)
        once = SnapshotReader(self.run.reads(), given={source: rows})
        return evaluate(self.view.query, once)

    def _intake(self, aside: SettingAside | None) -> Intake:
        expectations: tuple[Expectation, ...] = ()
        if isinstance(self.view, MaterializedView):
            expectations = self.view.expectations
        place = self.run.place(self.stored)
        quarantine = self.run.quarantine_of(self.stored)
        return Intake(
            place,
            quarantine,
            self.name,
            expectations,
            is_replaced=True,
            gate=self.run.gate_of(self.name),
            aside=aside,
        )

    def _prune(self, covered: dict[str, int]) -> None:
        """Let go of the parts that the batch layer has now; readers pass over them already."""
        place = self.run.place(speed_name(self.name))
        (version,) = covered.values()
        with place.held() as table:
            forget_covered(table, version)


def computed_views(run: PipelineRun, *, is_lambda: bool) -> list[ComputedView]:
    """All of a pipeline's views that are computed whole."""
    kinds = (MaterializedView, MergedView) if is_lambda else (MaterializedView,)
    return [ComputedView(run, d) for d in run.pipeline.datasets.values() if isinstance(d, kinds)]
