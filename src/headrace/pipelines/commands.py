"""What `headrace pipelines` does: run, status, stop, replay, generations, backfill, redrive.

Each takes folders of pipelines and what the command line says differently from their files.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from headrace.pipelines.model import Pipeline
from headrace.pipelines.problems import PipelineError, no_streaming_table
from headrace.pipelines.running.state import state_of
from headrace.pipelines.spark_sessions import Tell, say_nothing, session_for
from headrace.pipelines.status import FlowStatus, PipelineStatus
from headrace.pipelines.stopping import StopRequest
from headrace.spark.connect import is_connect_url

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.pipelines.running.generations import Dropped, TableGeneration
    from headrace.pipelines.running.pipeline_run import PipelineRun
    from headrace.pipelines.running.redriving import Redriven
    from headrace.pipelines.running.replaying import Replay
    from headrace.pipelines.running.reports import Outcome
    from headrace.pipelines.running.runner import PipelineRunner

_STOP_S_MAX = 60.0
_POLL_S = 0.2

Show = Callable[["list[PipelineRunner]"], None]
Note = Callable[[str], None]


def _note_nothing(text: str) -> None:
    """Where the brokers that count are not asked, so nobody need know which they are."""


@dataclass(frozen=True, slots=True)
class MetricsPort:
    """Where Prometheus may ask how a run stands, and whom to tell the address of the page."""

    host: str
    port: int
    is_open: Callable[[str], None] = lambda address: None


@dataclass(frozen=True, slots=True)
class Overrides:
    """What the command line says instead of pipeline.toml."""

    bootstrap: str | None = None
    bootstrap_variable: str | None = None
    """The environment variable that `bootstrap` is from, which nobody may be aware of."""
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
        """That a variable counts instead of the brokers of pipeline.toml, if that is so."""
        settings = pipeline.settings
        is_other = self.bootstrap and self.bootstrap != settings.bootstrap
        if not is_other or not self.bootstrap_variable or not settings.names_brokers:
            return None
        return (
            f"{settings.name}: the brokers are {self.bootstrap}, by {self.bootstrap_variable},"
            f" not {settings.bootstrap} as in pipeline.toml"
        )


def load_all(
    folders: Sequence[str | Path], overrides: Overrides, note: Note = _note_nothing
) -> list[Pipeline]:
    """The pipelines of some folders, which one driver can run together.

    `note` is told what a user may not expect of their settings.
    """
    from headrace.pipelines.project import load

    loaded = [load(Path(folder), master=overrides.master) for folder in folders]
    for displaced in filter(None, map(overrides.displaced_brokers, loaded)):
        note(displaced)
    pipelines = [overrides.applied(pipeline) for pipeline in loaded]
    masters = {pipeline.settings.master for pipeline in pipelines}
    if len(masters) > 1:
        # What a Spark Connect server is told behind the address, its token, is not for a message.
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
    starting: Tell = say_nothing,
    note: Note = _note_nothing,
    show: Show = lambda runners: None,
    is_stopped: Callable[[], bool] | None = None,
    metrics: MetricsPort | None = None,
) -> None:
    """Run pipelines until all is read that is there, or until told to stop."""
    from headrace.pipelines.running.driver import run_continuously, run_once
    from headrace.pipelines.running.runner import PipelineRunner

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
    """Tell Prometheus of what runs, if asked to; a port that is taken is told before Spark starts.

    The list may still be empty, and changes when the tables of a pipeline are switched.
    """
    if port is None:
        yield
        return
    from headrace.pipelines.running.metrics_port import serving

    with serving(port.host, port.port, lambda: [runner.status for runner in runners]) as address:
        port.is_open(address)
        yield


@contextmanager
def held(pipelines: Sequence[Pipeline]) -> Iterator[None]:
    """Be the only process that runs these pipelines; a second one is refused before it begins."""
    with ExitStack() as stack:
        for pipeline in pipelines:
            state = state_of(pipeline)
            stack.enter_context(state.held())
            state.forget_stop()
        yield


def check_brokers(pipelines: Sequence[Pipeline], targets: Collection[str] | None = None) -> None:
    """Fail if brokers do not answer that are needed for some tables, or for all.

    A server of Spark Connect may reach those that we cannot.
    """
    from headrace.pipelines.analysing import topic_checks

    for pipeline in pipelines:
        if not is_connect_url(pipeline.settings.master):
            topic_checks.check_brokers(pipeline, targets)


def prepared(spark: "SparkSession", pipeline: Pipeline) -> "PipelineRun":
    from headrace.pipelines.running.pipeline_run import PipelineRun

    made = PipelineRun(spark, pipeline)
    made.prepare()
    return made


def status(
    folders: Sequence[str | Path], overrides: Overrides | None = None
) -> list[PipelineStatus]:
    """How each pipeline stands, or stood when it last ran."""
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
    """A pipeline after its driver was killed, which could not say so: nothing comes next."""
    flows = tuple(map(_died_with, known.flows))
    views = tuple(msgspec.structs.replace(view, next_at=None) for view in known.views)
    return msgspec.structs.replace(known, state="died", flows=flows, views=views)


def _died_with(flow: FlowStatus) -> FlowStatus:
    is_over = flow.state in ("ended", "failed")
    return flow if is_over else msgspec.structs.replace(flow, state="died", next_at=None)


def stop(folders: Sequence[str | Path], overrides: Overrides | None = None) -> list[str]:
    """Ask running pipelines to end and wait until they have; the answer is which did."""
    pipelines = load_all(folders, overrides or Overrides())
    states = {pipeline.settings.name: state_of(pipeline) for pipeline in pipelines}
    running = {name: state for name, state in states.items() if state.is_held()}
    for state in running.values():
        state.ask_to_stop()
    deadline = time.monotonic() + _STOP_S_MAX
    while any(state.is_held() for state in running.values()):
        if time.monotonic() > deadline:
            slow = ", ".join(name for name, state in running.items() if state.is_held())
            raise PipelineError(
                f"{slow} did not stop within {_STOP_S_MAX:.0f} s; a batch may be under way. Ask"
                " again, or end its process: what it was writing is repeated at the next run"
            )
        time.sleep(_POLL_S)
    return list(running)


def replay(
    folder: str | Path,
    *,
    keep: Sequence[str] = (),
    sinks: str | None = None,
    is_switched: bool = True,
    must_be_equal: bool = False,
    overrides: Overrides | None = None,
    spark: "SparkSession | None" = None,
    starting: Tell = say_nothing,
    note: Note = _note_nothing,
    show: "Callable[[Replay], None]" = lambda built: None,
) -> "Replay":
    """Build the tables anew beside the running ones, compare, show, and let the new ones count."""
    from headrace.pipelines.running.replaying import Sinks, build, built_anew, switch

    (pipeline,) = load_all([folder], overrides or Overrides(), note)
    chosen = None if sinks is None else Sinks(sinks)
    check_brokers([pipeline], built_anew(pipeline, keep, chosen))
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
    """Let the tables of before the last replay count again."""
    from headrace.lake.catalog import Lake
    from headrace.pipelines.running.generations import check_way_back

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
    state.note_building({})  # What was begun of another architecture read the other tables.
    return earlier


def generations(
    folder: str | Path, *, overrides: Overrides | None = None
) -> "list[TableGeneration]":
    """Every generation of a pipeline's tables, and what each takes on disk."""
    from headrace.lake.catalog import Lake
    from headrace.pipelines.running.generations import listed

    (pipeline,) = load_all([folder], overrides or Overrides())
    return listed(Lake(pipeline.settings.lake), pipeline)


def drop_generation(
    folder: str | Path, generation: int, *, overrides: Overrides | None = None
) -> "Dropped":
    """Remove the tables and checkpoints of a generation that does not count."""
    from headrace.lake.catalog import Lake
    from headrace.pipelines.running.generations import drop

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
    starting: Tell = say_nothing,
    note: Note = _note_nothing,
) -> "dict[str, Outcome]":
    """Bring records into a table that are older than where its flows began."""
    from headrace.pipelines.running.backfilling import backfill as backfill_flow

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
    starting: Tell = say_nothing,
    note: Note = _note_nothing,
) -> "Redriven":
    """Give the rows in a table's quarantine another try."""
    from headrace.pipelines.running.redriving import check_table
    from headrace.pipelines.running.redriving import redrive as redrive_table

    (pipeline,) = load_all([folder], overrides or Overrides(), note)
    check_table(pipeline, table)
    check_brokers([pipeline], [table])
    with session_for([pipeline], spark, starting) as session:
        return redrive_table(prepared(session, pipeline), table)
