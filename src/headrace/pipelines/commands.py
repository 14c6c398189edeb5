"""The commands of `headrace pipelines`: run, status, stop, replay, generations, backfill, redrive.

Each takes folders of pipelines, and command-line options that override their settings.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from headrace.pipelines.model import Pipeline
from headrace.pipelines.problems import PipelineError, Problem, no_streaming_table
from headrace.pipelines.running.state.folders import state_of
from headrace.pipelines.spark_sessions import Announce, announce_nothing, session_for
from headrace.pipelines.status import FlowStatus, PipelineStatus
from headrace.pipelines.stopping import StopRequest
from headrace.runtime.clock import SystemClock, WaitingClock
from headrace.spark.connect import is_connect_url

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.pipelines.running.correcting.redrive import Redriven
    from headrace.pipelines.running.correcting.replay import Replay
    from headrace.pipelines.running.driving.runner import PipelineRunner
    from headrace.pipelines.running.pipeline_run import PipelineRun
    from headrace.pipelines.running.state.reports import Outcome
    from headrace.pipelines.running.tables.generations import Dropped, TableGeneration

_STOP_S_MAX = 60.0
_POLL_S = 0.2

Show = Callable[["list[PipelineRunner]"], None]
Note = Callable[[str], None]


def _ignore_note(text: str) -> None:
    """The default for commands that do not report which brokers are used."""


@dataclass(frozen=True, slots=True)
class MetricsPort:
    """The address of the metrics port, and a callback that gets the page's address once open."""

    host: str
    port: int
    is_open: Callable[[str], None] = lambda address: None


@dataclass(frozen=True, slots=True)
class Overrides:
    """Command-line values that replace those of pipeline.toml."""

    bootstrap: str | None = None
    bootstrap_variable: str | None = None
    """The environment variable that `bootstrap` comes from; the user may be unaware of it."""
    lake: str | None = None
    master: str | None = None
    client: Mapping[str, str] = field(default_factory=dict, repr=False)
    spark: Mapping[str, str] = field(default_factory=dict, repr=False)

    def applied(self, pipeline: Pipeline) -> Pipeline:
        settings = pipeline.settings
        changed = replace(
            settings,
            bootstrap=self.bootstrap or settings.bootstrap,
            lake=self.lake or settings.lake,
            master=self.master or settings.master,
            client={**settings.client, **self.client},
            spark={**settings.spark, **self.spark},
        )
        return replace(pipeline, settings=changed)

    def displaced_brokers(self, pipeline: Pipeline) -> str | None:
        """Return a notice if an environment variable overrides the brokers of pipeline.toml."""
        settings = pipeline.settings
        is_other = self.bootstrap and self.bootstrap != settings.bootstrap
        if not is_other or not self.bootstrap_variable or not settings.names_brokers:
            return None
        return (
            f"{settings.name}: the brokers are {self.bootstrap}, by {self.bootstrap_variable},"
            f" not {settings.bootstrap} as in pipeline.toml"
        )


def load_all(
    folders: Sequence[str | Path], overrides: Overrides, note: Note = _ignore_note
) -> list[Pipeline]:
    """Load pipelines that one driver can run together; `note` gets notices about their settings."""
    from headrace.pipelines.project import load

    loaded = [load(Path(folder), master=overrides.master) for folder in folders]
    for displaced in filter(None, map(overrides.displaced_brokers, loaded)):
        note(displaced)
    pipelines = [overrides.applied(pipeline) for pipeline in loaded]
    masters = {pipeline.settings.master for pipeline in pipelines}
    if len(masters) > 1:
        # The token behind the address of a Spark Connect server must not appear in a message.
        named = ", ".join(sorted(master.partition("/;")[0] for master in masters))
        raise PipelineError(
            f"these pipelines name several Spark masters ({named}); run them apart, or choose one"
            " with --master"
        )
    names = [pipeline.settings.name for pipeline in pipelines]
    if len(set(names)) < len(names):
        raise PipelineError(f"two of these pipelines have one name: {', '.join(sorted(names))}")
    return pipelines


def run(
    folders: Sequence[str | Path],
    *,
    is_once: bool,
    overrides: Overrides | None = None,
    spark: "SparkSession | None" = None,
    starting: Announce = announce_nothing,
    note: Note = _ignore_note,
    show: Show = lambda runners: None,
    is_stopped: Callable[[], bool] | None = None,
    metrics: MetricsPort | None = None,
) -> None:
    """Run pipelines to the end of the available records, or until stopped."""
    from headrace.pipelines.running.driving.driver import run_continuously, run_once
    from headrace.pipelines.running.driving.runner import PipelineRunner

    pipelines = load_all(folders, overrides or Overrides(), note)
    runners: list[PipelineRunner] = []
    if is_once:
        check_brokers(pipelines)
    with (
        held(pipelines),
        StopRequest(pipelines, is_stopped) as stopped,
        metrics_of(runners, metrics),
        session_for(pipelines, spark, starting, stopped) as session,
    ):
        stopped.take()
        runs = [prepared(session, pipeline) for pipeline in pipelines]
        runners += [PipelineRunner(prepared_run) for prepared_run in runs]
        if is_once:
            run_once(runners, stopped)
        else:
            run_continuously(runners, stopped, show)


@contextmanager
def metrics_of(runners: "list[PipelineRunner]", port: MetricsPort | None) -> Iterator[None]:
    """Open the metrics port, if asked for, before Spark starts: a taken port fails at once.

    The list may still be empty; it changes when the tables of a pipeline are switched.
    """
    if port is None:
        yield
        return
    from headrace.pipelines.running.driving.metrics_port import serving

    with serving(port.host, port.port, lambda: [runner.status for runner in runners]) as address:
        port.is_open(address)
        yield


@contextmanager
def held(pipelines: Sequence[Pipeline]) -> Iterator[None]:
    """Lock pipelines for this process; a second process is rejected before it starts."""
    with ExitStack() as stack:
        for pipeline in pipelines:
            state = state_of(pipeline)
            stack.enter_context(state.held())
            state.forget_stop()
        yield


def check_brokers(pipelines: Sequence[Pipeline], targets: Collection[str] | None = None) -> None:
    """Fail if a broker needed for some tables, or for all, does not answer.

    Skipped for Spark Connect: the server may reach brokers that this machine cannot.
    """
    from headrace.pipelines.analysing import topic_checks

    for pipeline in pipelines:
        if not is_connect_url(pipeline.settings.master):
            topic_checks.check_brokers(pipeline, targets)


def checkpoint_problems(pipeline: Pipeline) -> list[Problem]:
    """Return the flows whose checkpoints are for tables that their queries no longer read."""
    if not Path(pipeline.settings.lake).is_dir():
        return []  # Before the first run; the imports below take long.
    from headrace.lake.catalog import Lake
    from headrace.pipelines.analysing.graph import graph_of
    from headrace.pipelines.running.flows.renamed_flows import changed_input

    state, graph = state_of(pipeline), graph_of(pipeline)
    tables = Lake(pipeline.settings.lake).catalog().tables
    found = []
    for flow in pipeline.flows:
        entry = tables.get(flow.target)
        if entry is None or entry.current is None:
            continue  # A sink, or a table that no run has made.
        folder = state.flow(flow.name, entry.current)
        if wrong := changed_input(flow.name, folder, graph.stored_inputs(flow)):
            found.append(Problem(wrong, flow.location))
    return found


def prepared(spark: "SparkSession", pipeline: Pipeline) -> "PipelineRun":
    from headrace.pipelines.running.pipeline_run import PipelineRun

    made = PipelineRun(spark, pipeline)
    made.prepare()
    return made


def status(
    folders: Sequence[str | Path], overrides: Overrides | None = None
) -> list[PipelineStatus]:
    """Return the status of each pipeline, or the last one if it is not running."""
    found = []
    for pipeline in load_all(folders, overrides or Overrides()):
        state = state_of(pipeline)
        name, lake = pipeline.settings.name, pipeline.settings.lake
        known = state.read_status() or PipelineStatus(pipeline=name, state="never run")
        if known.state == "running" and not state.is_held():
            known = died(known)
        elif known.state != "running" and state.is_held():
            known = msgspec.structs.replace(known, state="starting")
        files = pipeline.fingerprint
        found.append(msgspec.structs.replace(known, lake=lake, folder_fingerprint=files))
    return found


def died(known: PipelineStatus) -> PipelineStatus:
    """Return the status after a killed driver, which could not write its end."""
    flows = tuple(map(_died_with, known.flows))
    views = tuple(msgspec.structs.replace(view, next_at=None) for view in known.views)
    return msgspec.structs.replace(known, state="died", flows=flows, views=views)


def _died_with(flow: FlowStatus) -> FlowStatus:
    is_over = flow.state in ("ended", "failed")
    return flow if is_over else msgspec.structs.replace(flow, state="died", next_at=None)


def stop(
    folders: Sequence[str | Path],
    overrides: Overrides | None = None,
    clock: WaitingClock | None = None,
) -> list[str]:
    """Ask running pipelines to stop and wait for them; return those that stopped."""
    clock = clock or SystemClock()
    pipelines = load_all(folders, overrides or Overrides())
    states = {pipeline.settings.name: state_of(pipeline) for pipeline in pipelines}
    running = {name: state for name, state in states.items() if state.is_held()}
    for state in running.values():
        state.ask_to_stop()
    for _ in range(round(_STOP_S_MAX / _POLL_S)):
        if not any(state.is_held() for state in running.values()):
            return list(running)
        clock.sleep(_POLL_S)
    slow = ", ".join(name for name, state in running.items() if state.is_held())
    raise PipelineError(
        f"{slow} did not stop within {_STOP_S_MAX:.0f} s; a batch may be under way. Ask"
        " again, or end its process: the next run repeats the batch"
    )


def replay(
    folder: str | Path,
    *,
    keep: Sequence[str] = (),
    sinks: str | None = None,
    is_switched: bool = True,
    must_be_equal: bool = False,
    overrides: Overrides | None = None,
    spark: "SparkSession | None" = None,
    starting: Announce = announce_nothing,
    note: Note = _ignore_note,
    show: "Callable[[Replay], None]" = lambda built: None,
) -> "Replay":
    """Rebuild tables next to the running ones, compare both, and switch to the new ones."""
    from headrace.pipelines.running.correcting.replay import Sinks, build, rebuilt_tables, switch

    (pipeline,) = load_all([folder], overrides or Overrides(), note)
    chosen = None if sinks is None else Sinks(sinks)
    check_brokers([pipeline], rebuilt_tables(pipeline, keep, chosen))
    with state_of(pipeline).held("replay"), session_for([pipeline], spark, starting) as session:
        built = build(session, pipeline, keep=keep, sinks=chosen)
        show(built)
        different = [one.table for one in built.compared if not one.is_equal]
        if must_be_equal and different:
            raise PipelineError(
                f"the replayed tables differ: {', '.join(different)}. Nothing was switched; look at"
                f" them with `headrace tables show --generation {max(built.generations.values())}`,"
                " or replay without --expect-equal"
            )
        if is_switched:
            switch(session, pipeline, built, chosen)
    return built


def switch_back(
    folder: str | Path,
    *,
    overrides: Overrides | None = None,
) -> dict[str, int]:
    """Switch back to the tables before the last replay."""
    from headrace.lake.catalog import Lake
    from headrace.pipelines.running.tables.generations import check_way_back

    (pipeline,) = load_all([folder], overrides or Overrides())
    state = state_of(pipeline)
    earlier = state.last_switch()
    if not earlier:
        raise PipelineError(
            f"{pipeline.settings.name} has no tables to switch back to: it was never replayed, or"
            " was switched back already, or the generation of before was dropped"
        )
    lake = Lake(pipeline.settings.lake)
    check_way_back(lake.catalog(), pipeline, earlier)
    lake.switch(earlier)
    state.forget_switch()
    state.record_building({})  # A change of architecture under way has read the other tables.
    return earlier


def generations(
    folder: str | Path, *, overrides: Overrides | None = None
) -> "list[TableGeneration]":
    """Return every generation of a pipeline's tables with its size on disk."""
    from headrace.lake.catalog import Lake
    from headrace.pipelines.running.tables.generations import listed

    (pipeline,) = load_all([folder], overrides or Overrides())
    return listed(Lake(pipeline.settings.lake), pipeline)


def drop_generation(
    folder: str | Path, generation: int, *, overrides: Overrides | None = None
) -> "Dropped":
    """Remove the tables and checkpoints of a generation that is not in use."""
    from headrace.lake.catalog import Lake
    from headrace.pipelines.running.tables.generations import drop

    (pipeline,) = load_all([folder], overrides or Overrides())
    state = state_of(pipeline)
    with state.held("replay"):
        return drop(Lake(pipeline.settings.lake), state, pipeline, generation)


def backfill(
    folder: str | Path,
    table: str,
    *,
    from_ms: int | None = None,
    overrides: Overrides | None = None,
    spark: "SparkSession | None" = None,
    starting: Announce = announce_nothing,
    note: Note = _ignore_note,
) -> "dict[str, Outcome]":
    """Add records to a table that are older than the start of its flows."""
    from headrace.pipelines.running.correcting.backfill import backfill as backfill_flow

    (pipeline,) = load_all([folder], overrides or Overrides(), note)
    if not pipeline.flows_into(table):
        why = "" if table in pipeline.datasets else f": {no_streaming_table(pipeline, table)}"
        raise PipelineError(f"no flow of {pipeline.settings.name} writes to {table}{why}")
    check_brokers([pipeline], [table])
    with held([pipeline]), session_for([pipeline], spark, starting) as session:
        made = prepared(session, pipeline)
        flows = made.pipeline.flows_into(table)
        return {flow.name: backfill_flow(made, flow, from_ms=from_ms) for flow in flows}


def redrive(
    folder: str | Path,
    table: str,
    *,
    overrides: Overrides | None = None,
    spark: "SparkSession | None" = None,
    starting: Announce = announce_nothing,
    note: Note = _ignore_note,
) -> "Redriven":
    """Retry the rows in a table's quarantine."""
    from headrace.pipelines.running.correcting.redrive import check_table
    from headrace.pipelines.running.correcting.redrive import redrive as redrive_table

    (pipeline,) = load_all([folder], overrides or Overrides(), note)
    check_table(pipeline, table)
    check_brokers([pipeline], [table])
    with session_for([pipeline], spark, starting) as session:
        return redrive_table(prepared(session, pipeline), table)
