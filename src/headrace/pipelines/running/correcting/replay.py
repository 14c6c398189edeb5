"""Replay: rebuild the tables next to the running ones, then switch.

The next generation of every table is filled from the start of the running one (see
`replay_starts`), by the same flows with their own checkpoints. When it has caught up it is
compared, and one change of the catalog makes it the current one. A running pipeline notices the
switch and continues with the new checkpoints; the old tables stay and can be switched back to.
"""

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headrace.lake import merged_views, table_comparison
from headrace.lake.catalog import Lake
from headrace.lake.quarantine import QUARANTINED_AT
from headrace.lake.table_comparison import Contents
from headrace.pipelines.declaring.names import is_quarantine, refusing_table, zone_of
from headrace.pipelines.model import Flow, MergedView, Pipeline, Sink, Source, StreamingTable
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.queries.sources import begins_with_the_log
from headrace.pipelines.running.correcting.replay_starts import (
    Log,
    LogTooShort,
    log_of,
    replay_starts,
    was_read,
)
from headrace.pipelines.running.driving.driver import raise_failures
from headrace.pipelines.running.driving.runner import PipelineRunner
from headrace.pipelines.running.pipeline_run import PipelineRun
from headrace.pipelines.running.state.folders import FlowState
from headrace.pipelines.running.state.reports import Report
from headrace.pipelines.running.tables.architectures import changed_views
from headrace.pipelines.running.tables.generations import next_number
from headrace.pipelines.running.tables.layers import tables_of
from headrace.spark.source.starts import FILE as STARTS_FILE
from headrace.spark.source.starts import Starts
from headrace.spark.source.starts import save as save_starts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROUNDS_MAX = 10
"""The number of passes over new rows, before the replay switches anyway."""
CAUGHT_UP_ROWS = 10_000
"""A pass with fewer rows has caught up: the rest takes a moment after the switch."""


class Sinks(enum.Enum):
    """The behaviour of flows to topics after their tables were rebuilt."""

    FROM_NOW = "from-now"
    AGAIN = "again"


@dataclass(frozen=True, slots=True)
class Compared:
    """A table before and after a replay."""

    table: str
    contents: Contents

    @property
    def is_equal(self) -> bool:
        return self.contents.is_equal


@dataclass(frozen=True, slots=True)
class Replay:
    """The result of a replay: the new generation of each table, and the comparison."""

    generations: Mapping[str, int]
    compared: tuple[Compared, ...]


def build(
    spark: "SparkSession",
    pipeline: Pipeline,
    *,
    keep: Sequence[str] = (),
    sinks: Sinks | None = None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Replay:
    """Fill the next generation of the pipeline's tables, except those of kept zones."""
    current = PipelineRun(spark, pipeline)
    check_architecture(current.lake, pipeline)
    current.prepare(is_rebuilt=lambda table: is_table_rebuilt(table, keep))
    generations = next_generations(current, keep)
    if not generations:
        raise PipelineError(f"all tables of {pipeline.settings.name} are in zones that are kept")
    check_kept(pipeline, current.preparation.inputs, generations)
    if sinks is None and (names := sinks_behind(current, generations)):
        raise PipelineError(
            f"{', '.join(flow.name for flow in names)} send the rows of these tables to topics."
            " Choose what to send after the rebuild: `--sinks from-now` sends only rows after the"
            " switch, `--sinks again` sends everything again"
        )
    renewed = PipelineRun(spark, without_outlets(pipeline, generations), generations)
    starts = list(starts_of(current, renewed.pipeline.flows, keep))
    renewed.prepare()
    for flow, source, found in starts:
        save_starts(renewed.folders.of(flow).starts / source.name / STARTS_FILE, found)
    for _ in range(ROUNDS_MAX):
        before = rows_moved(renewed)
        runner = PipelineRunner(renewed)
        runner.once(is_stopped)
        raise_failures([runner])
        if rows_moved(renewed) - before < CAUGHT_UP_ROWS or is_stopped():
            break
    return Replay(generations, tuple(compare(current, generations)))


def check_architecture(lake: Lake, pipeline: Pipeline) -> None:
    """Reject a replay while merged views are still in the other architecture.

    The tables of the new one are empty or behind until a run has filled them, so they cannot be
    compared or switched back to.
    """
    chosen = pipeline.settings.architecture
    for view in changed_views(lake.catalog(), pipeline):
        raise PipelineError(
            f"{view} is not in the architecture `{chosen.value}` yet: no run has caught"
            " up since the change, so there is nothing to compare with or to switch back to. Run"
            " the pipeline first, as by `headrace pipelines run FOLDER --once`; or replay with the"
            " old architecture, and change it afterwards"
        )


def check_kept(
    pipeline: Pipeline, inputs: Mapping[str, Set[str]], generations: Mapping[str, int]
) -> None:
    """Reject keeping a table whose input is rebuilt: its stream could not continue."""
    fed = {flow.target for flow in pipeline.flows}
    for name, dataset in pipeline.datasets.items():
        stored = name
        if isinstance(dataset, MergedView):
            stored = tables_of(name, pipeline.settings.architecture)[-1]
        elif not isinstance(dataset, StreamingTable) or name not in fed:
            continue
        stale = inputs[name] & generations.keys()
        if stale and stored not in generations:
            raise PipelineError(
                f"{name} is kept, but reads {', '.join(sorted(stale))}, which is rebuilt; keep"
                " both, or neither"
            )


def sinks_behind(run: PipelineRun, generations: Mapping[str, int]) -> list[Flow]:
    """Return the flows to topics that read rebuilt tables."""
    return [
        flow
        for flow in run.pipeline.flows
        if isinstance(run.pipeline.datasets[flow.target], Sink)
        and run.folders.tables_behind_sink(flow) & generations.keys()
    ]


def switch(spark: "SparkSession", pipeline: Pipeline, built: Replay, sinks: Sinks | None) -> None:
    """Make the new tables the current ones, all at once, and note the way back."""
    current = PipelineRun(spark, pipeline)
    current.prepare(is_rebuilt=built.generations.__contains__)
    renewed = PipelineRun(spark, pipeline, built.generations)
    renewed.preparation.inputs = current.preparation.inputs
    if sinks is Sinks.FROM_NOW:
        for flow in sinks_behind(current, built.generations):
            behind = current.folders.tables_behind_sink(flow) & built.generations.keys()
            versions = {n: renewed.lake.table(n, built.generations[n]).version for n in behind}
            renewed.folders.of(flow).start_after(versions)
    current.state.record_switch({name: current.generations.of(name) for name in built.generations})
    current.lake.switch(built.generations)


def next_generations(run: PipelineRun, keep: Sequence[str]) -> dict[str, int]:
    """Return one new number for all tables that are rebuilt."""
    made = [name for name in run.preparation.made if is_table_rebuilt(name, keep)]
    return dict.fromkeys(made, next_number(run.lake, run.state, run.name))


def rebuilt_tables(pipeline: Pipeline, keep: Sequence[str], sinks: Sinks | None) -> list[str]:
    """Return the datasets that a replay fills again; sinks only if everything is sent again."""
    return [
        name
        for name, one in pipeline.datasets.items()
        if is_table_rebuilt(name, keep) and (sinks is Sinks.AGAIN or not isinstance(one, Sink))
    ]


def is_table_rebuilt(table: str, keep: Sequence[str]) -> bool:
    """Return whether a table, or the table of a quarantine, is outside of the kept zones."""
    return zone_of(refusing_table(table) if is_quarantine(table) else table) not in keep


def without_outlets(pipeline: Pipeline, generations: Mapping[str, int]) -> Pipeline:
    """Return the pipeline without flows to topics and to kept tables."""
    sinks = {name for name, found in pipeline.datasets.items() if isinstance(found, Sink)}
    flows = tuple(
        flow for flow in pipeline.flows if flow.target not in sinks and flow.target in generations
    )
    kept = {name: found for name, found in pipeline.datasets.items() if name not in sinks}
    return replace(pipeline, datasets=kept, flows=flows)


def starts_of(
    run: PipelineRun, flows: Sequence[Flow], keep: Sequence[str]
) -> Iterator[tuple[Flow, Source, Starts]]:
    """Yield the starts of flows that read topics again; an incomplete log is an error.

    A source that a flow has not read yet begins by its own options.
    """
    logs: dict[str, Log] = {}
    for flow in flows:
        states = _states_of(run, flow)
        for source in run.sources_of(flow):
            try:
                _check_known(run, flow, source, states)
                read = was_read(states, source)
                if not read.begun or source.connector != "headrace":
                    continue
                if source.name not in logs:
                    logs[source.name] = log_of(source, run.pipeline.settings)
                yield flow, source, replay_starts(source, read, logs[source.name])
            except LogTooShort as error:
                zones = " ".join(f"--keep {zone}" for zone in (*keep, zone_of(flow.target)))
                raise PipelineError(
                    f"{flow.target} cannot be rebuilt from its topics: {error}. Replay from the"
                    f" tables that have these records with `{zones}`"
                ) from error


def _states_of(run: PipelineRun, flow: Flow) -> list[FlowState]:
    """Return a flow's folder, or those of former flows that have written to its table."""
    own = run.folders.of(flow)
    if own.is_known:
        return [own]
    generation = run.generations.of(flow.target)
    table = run.lake.table(flow.target, generation)
    former = run.state.former_flows(generation, [one.name for one in run.flows()])
    return [state for state in former if table.last_batch(state.writer()) is not None]


def _check_known(run: PipelineRun, flow: Flow, source: Source, states: Sequence[FlowState]) -> None:
    """Reject a source that would begin elsewhere now, if its old start is unknown."""
    if begins_with_the_log(source):
        return
    if states and source.connector != "headrace":
        raise LogTooShort(
            f"sources.{source.name} is read by Spark's stock connector, and not from the"
            " beginning of the log: it would begin elsewhere now"
        )
    table = run.generations.table(flow.target)
    if not states and run.folders.has_written(flow, table):
        raise PipelineError(
            f"{flow.target} has rows of the flow {flow.name}, but the folder with its start"
            f" is gone: {run.folders.of(flow).directory}. Restore it; or let"
            f' sources.{source.name} begin with the log (startingOffsets = "earliest")'
        )


def rows_moved(run: PipelineRun) -> int:
    return sum(Report.read(run.folders.of(flow).report).rows_in for flow in run.pipeline.flows)


def keys_of(pipeline: Pipeline, table: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the declared key columns of a table."""
    match pipeline.datasets.get(table):
        case MergedView(merge=merge):
            return tuple(name for name in columns if name not in merge)
        case StreamingTable(keys=keys):
            changes = (flow.changes for flow in pipeline.flows_into(table))
            return keys or next((one.keys for one in changes if one and one.scd_type == 1), ())
        case _:
            return ()


def compare(run: PipelineRun, generations: Mapping[str, int]) -> list[Compared]:
    """Compare the content of each table before and after.

    A merged view is compared as a whole: the layer of a row depends on the last run of the batch
    layer.
    """
    before = {name: run.generations.of(name) for name in generations}
    views = [view for view in run.lake.views().values() if view.batch in generations]
    layers = {name for view in views for name in merged_views.layers_of(view)}
    found = [
        Compared(
            name,
            table_comparison.compare(
                run.lake.table(name, before[name]),
                run.lake.table(name, generation),
                keys=keys_of(run.pipeline, name, run.lake.table(name, generation).schema.names),
                ignored=[QUARANTINED_AT] if is_quarantine(name) else (),
            ),
        )
        for name, generation in generations.items()
        if name not in layers
    ]
    for view in views:
        old, new = (
            merged_views.merged_rows(view, run.lake.layers(view, chosen))
            for chosen in (before, generations)
        )
        found.append(Compared(view.name, table_comparison.compare_rows(old, new, keys=view.keys)))
    return sorted(found, key=lambda one: one.table)
