"""Kappa's way to correct the past: build the tables anew beside the running ones, then switch.

The next generation of every table is filled from where the running one began (see `log_starts`), by
the same flows with checkpoints of their own. When it has caught up it is compared, and one change
of the catalog makes it the generation that counts. A running pipeline notices and goes on with the
new checkpoints; the old tables stay and can be switched back to.
"""

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headrace.lake import comparing, merging
from headrace.lake.catalog import Lake
from headrace.lake.comparing import Contents
from headrace.lake.quarantine import QUARANTINED_AT
from headrace.pipelines.model import Flow, MergedView, Pipeline, Sink, Source, StreamingTable
from headrace.pipelines.names import is_quarantine, refusing_table, zone_of
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.running.architectures import changed_views
from headrace.pipelines.running.driver import raise_failures
from headrace.pipelines.running.generations import next_number
from headrace.pipelines.running.layers import tables_of
from headrace.pipelines.running.log_starts import Log, LogTooShort, log_of, replay_starts, was_read
from headrace.pipelines.running.pipeline_run import PipelineRun
from headrace.pipelines.running.reports import Report
from headrace.pipelines.running.runner import PipelineRunner
from headrace.pipelines.running.state import FlowState
from headrace.pipelines.sources import begins_with_the_log
from headrace.spark.source.starts import FILE as STARTS_FILE
from headrace.spark.source.starts import Starts
from headrace.spark.source.starts import save as save_starts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROUNDS_MAX = 10
"""How often a replay goes after what has come in meanwhile, before it switches with what it has."""
CAUGHT_UP_ROWS = 10_000
"""A round that moved fewer rows than that has caught up: the rest is a moment's work after it."""


class Sinks(enum.Enum):
    """What flows to topics do with tables that were built anew."""

    FROM_NOW = "from-now"
    AGAIN = "again"


@dataclass(frozen=True, slots=True)
class Compared:
    """A table as it was and as it has become."""

    table: str
    contents: Contents

    @property
    def is_equal(self) -> bool:
        return self.contents.is_equal


@dataclass(frozen=True, slots=True)
class Replay:
    """What a replay has built: the new generation of each table, and how it compares."""

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
    """Fill the next generation of the pipeline's tables, all but those of the kept zones."""
    current = PipelineRun(spark, pipeline)
    check_architecture(current.lake, pipeline)
    current.prepare(is_rebuilt=lambda table: is_built_anew(table, keep))
    generations = next_generations(current, keep)
    if not generations:
        raise PipelineError(f"all tables of {pipeline.settings.name} are in zones that are kept")
    check_kept(pipeline, current.preparation.inputs, generations)
    if sinks is None and (names := sinks_behind(current, generations)):
        raise PipelineError(
            f"{', '.join(flow.name for flow in names)} send to topics what these tables get. Say"
            " what they do with the new ones: `--sinks from-now` sends only what comes after the"
            " switch, `--sinks again` sends everything once more"
        )
    renewed = PipelineRun(spark, without_outlets(pipeline, generations), generations)
    starts = list(starts_of(current, renewed.pipeline.flows, keep))
    renewed.prepare()
    for flow, source, found in starts:
        save_starts(renewed.flow_state(flow).starts / source.name / STARTS_FILE, found)
    for _ in range(ROUNDS_MAX):
        before = rows_moved(renewed)
        runner = PipelineRunner(renewed)
        runner.once(is_stopped)
        raise_failures([runner])
        if rows_moved(renewed) - before < CAUGHT_UP_ROWS or is_stopped():
            break
    return Replay(generations, tuple(compare(current, generations)))


def check_architecture(lake: Lake, pipeline: Pipeline) -> None:
    """Refuse to replay merged views that are still kept in the other architecture's way.

    Those of the new one are empty or behind until a run has filled them. To compare with them, and
    to go back to them, would be to something that readers never saw.
    """
    chosen = pipeline.settings.architecture
    for view in changed_views(lake.catalog(), pipeline):
        raise PipelineError(
            f'{view} is not kept as `architecture = "{chosen.value}"` asks yet: no run has caught'
            " up since that change, so there is nothing to compare with or to go back to. Run the"
            " pipeline first, as by `headrace pipelines run FOLDER --once`; or replay with the"
            " architecture of before, and change it afterwards"
        )


def check_kept(
    pipeline: Pipeline, inputs: Mapping[str, Set[str]], generations: Mapping[str, int]
) -> None:
    """Refuse to keep a table whose input is built anew: its stream could not go on behind it."""
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
                f"{name} is kept, but reads {', '.join(sorted(stale))}, which is built anew; keep"
                " that as well, or neither"
            )


def sinks_behind(run: PipelineRun, generations: Mapping[str, int]) -> list[Flow]:
    """The flows to topics that read tables which are built anew."""
    return [
        flow
        for flow in run.pipeline.flows
        if isinstance(run.pipeline.datasets[flow.target], Sink)
        and run.tables_behind_sink(flow) & generations.keys()
    ]


def switch(spark: "SparkSession", pipeline: Pipeline, built: Replay, sinks: Sinks | None) -> None:
    """Let the new tables count, all at one moment, and note the way back."""
    current = PipelineRun(spark, pipeline)
    current.prepare(is_rebuilt=built.generations.__contains__)
    renewed = PipelineRun(spark, pipeline, built.generations)
    renewed.preparation.inputs = current.preparation.inputs
    if sinks is Sinks.FROM_NOW:
        for flow in sinks_behind(current, built.generations):
            behind = current.tables_behind_sink(flow) & built.generations.keys()
            versions = {n: renewed.lake.table(n, built.generations[n]).version for n in behind}
            renewed.flow_state(flow).start_after(versions)
    current.state.note_switch({name: current.generation_of(name) for name in built.generations})
    current.lake.switch(built.generations)


def next_generations(run: PipelineRun, keep: Sequence[str]) -> dict[str, int]:
    """One number for all tables that are built anew, above all that there ever were."""
    made = [name for name in run.preparation.made if is_built_anew(name, keep)]
    return dict.fromkeys(made, next_number(run.lake, run.state, run.name))


def built_anew(pipeline: Pipeline, keep: Sequence[str], sinks: Sinks | None) -> list[str]:
    """The datasets that a replay fills again; a sink only where all is sent once more."""
    return [
        name
        for name, one in pipeline.datasets.items()
        if is_built_anew(name, keep) and (sinks is Sinks.AGAIN or not isinstance(one, Sink))
    ]


def is_built_anew(table: str, keep: Sequence[str]) -> bool:
    """Whether a table is in no zone that is kept, or quarantine of a table that is in none."""
    return zone_of(refusing_table(table) if is_quarantine(table) else table) not in keep


def without_outlets(pipeline: Pipeline, generations: Mapping[str, int]) -> Pipeline:
    """The pipeline but for what must not be done again: writing to topics, and to kept tables."""
    sinks = {name for name, found in pipeline.datasets.items() if isinstance(found, Sink)}
    flows = tuple(
        flow for flow in pipeline.flows if flow.target not in sinks and flow.target in generations
    )
    kept = {name: found for name, found in pipeline.datasets.items() if name not in sinks}
    return replace(pipeline, datasets=kept, flows=flows)


def starts_of(
    run: PipelineRun, flows: Sequence[Flow], keep: Sequence[str]
) -> Iterator[tuple[Flow, Source, Starts]]:
    """Where flows begin that read topics once more; refused if the log has forgotten some of it.

    A source that a flow has not read yet is left to begin as it says.
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
                    f"{flow.target} cannot be built anew from its topics: {error}. Replay from the"
                    f" tables that have these records with `{zones}`"
                ) from error


def _states_of(run: PipelineRun, flow: Flow) -> list[FlowState]:
    """The folder of a flow; if it has none, those of former ones that have written to its table."""
    own = run.flow_state(flow)
    if own.is_known:
        return [own]
    generation = run.generation_of(flow.target)
    table = run.lake.table(flow.target, generation)
    former = run.state.former_flows(generation, [one.name for one in run.flows()])
    return [state for state in former if table.last_batch(state.writer()) is not None]


def _check_known(run: PipelineRun, flow: Flow, source: Source, states: Sequence[FlowState]) -> None:
    """Refuse a source that would begin at another place now, where nobody knows the old one."""
    if begins_with_the_log(source):
        return
    if states and source.connector != "headrace":
        raise LogTooShort(
            f"sources.{source.name} is read by Spark's stock connector, and not from the beginning"
            " of the log: it would begin at another place now"
        )
    table = run.lake.table(flow.target, run.generation_of(flow.target))
    if not states and run.has_written(flow, table):
        raise PipelineError(
            f"{flow.target} has rows of the flow {flow.name}, but the folder that tells where it"
            f" began is gone: {run.flow_state(flow).directory}. Put it back; or let"
            f' sources.{source.name} begin with the log (startingOffsets = "earliest")'
        )


def rows_moved(run: PipelineRun) -> int:
    return sum(Report.read(run.flow_state(flow).report).rows_in for flow in run.pipeline.flows)


def keys_of(pipeline: Pipeline, table: str, columns: Sequence[str]) -> tuple[str, ...]:
    """The columns of which a table has one row for each value, as it is declared."""
    match pipeline.datasets.get(table):
        case MergedView(merge=merge):
            return tuple(name for name in columns if name not in merge)
        case StreamingTable(keys=keys):
            changes = (flow.changes for flow in pipeline.flows_into(table))
            return keys or next((one.keys for one in changes if one and one.scd_type == 1), ())
        case _:
            return ()


def compare(run: PipelineRun, generations: Mapping[str, int]) -> list[Compared]:
    """Each table before and after, by what it holds.

    Of a merged view the two layers together: which of them has a row is a matter of when the batch
    layer last ran.
    """
    before = {name: run.generation_of(name) for name in generations}
    views = [view for view in run.lake.views().values() if view.batch in generations]
    layers = {name for view in views for name in merging.layers_of(view)}
    found = [
        Compared(
            name,
            comparing.compare(
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
            merging.merged_rows(view, merging.pair(run.lake, view, chosen))
            for chosen in (before, generations)
        )
        found.append(Compared(view.name, comparing.compare_rows(old, new, keys=view.keys)))
    return sorted(found, key=lambda one: one.table)
