"""What `headrace pipelines` does: run, status, stop, replay, generations, backfill, redrive.

Each takes folders of pipelines and what the command line says differently from their files.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec

from headrace.pipelines.model import Pipeline
from headrace.pipelines.problems import PipelineError, no_streaming_table
from headrace.pipelines.status import FlowStatus, PipelineStatus
from headrace.spark.connect import is_connect_url

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.pipelines.running.generations import Dropped, TableGeneration
    from headrace.pipelines.running.pipeline_run import PipelineRun
    from headrace.pipelines.running.redriving import Redriven
    from headrace.pipelines.running.replaying import Replay
    from headrace.pipelines.running.reports import Outcome
    from headrace.pipelines.running.runner import PipelineRunner
    from headrace.pipelines.running.state import PipelineState

_STOP_S_MAX = 60.0
_POLL_S = 0.2
_LOG_BYTES_MAX = 10 << 20
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Show = Callable[["list[PipelineRunner]"], None]
Tell = Callable[[], None]


def _say_nothing() -> None:
    """Where nobody waits for Spark to start."""


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


def load_all(folders: Sequence[str | Path], overrides: Overrides) -> list[Pipeline]:
    """The pipelines of some folders, which one driver can run together."""
    from headrace.pipelines.project import load

    loaded = [load(Path(folder), master=overrides.master) for folder in folders]
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


def open_spark(pipelines: Sequence[Pipeline]) -> "SparkSession":
    """One session for all pipelines: starting it takes longer than most of what they do."""
    from headrace.spark.java import find_java
    from headrace.spark.session import open_session

    settings: dict[str, str] = {}
    for pipeline in pipelines:
        settings |= pipeline.settings.spark
    name = ", ".join(pipeline.settings.name for pipeline in pipelines)
    master = pipelines[0].settings.master
    if not is_connect_url(master):
        find_java()
    with spark_log(log_path(pipelines[0])):
        return open_session(name, master, settings)


def log_path(pipeline: Pipeline) -> Path:
    """Where Spark writes what it has to say while it runs a pipeline."""
    return state_of(pipeline).spark_log


def state_of(pipeline: Pipeline) -> "PipelineState":
    """What a pipeline keeps beside its tables."""
    from headrace.pipelines.running.state import PipelineState

    return PipelineState.of(Path(pipeline.settings.lake), pipeline.settings.name)


@contextmanager
def spark_log(path: Path) -> Iterator[None]:
    """Let a JVM that is started meanwhile, and its workers, write to a file.

    Spark writes pages of traces also for what is caught and told in one line; a user's terminal is
    no place for them. What this process itself says still goes where it did.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > _LOG_BYTES_MAX:
        path.replace(path.with_suffix(".log.1"))
    sys.stderr.flush()
    before = os.dup(2)
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(log)


def run(
    folders: Sequence[str | Path],
    *,
    is_once: bool,
    overrides: Overrides | None = None,
    spark: "SparkSession | None" = None,
    starting: Tell = _say_nothing,
    show: Show = lambda runners: None,
    is_stopped: Callable[[], bool] | None = None,
    metrics: MetricsPort | None = None,
) -> None:
    """Run pipelines until all is read that is there, or until told to stop."""
    from headrace.pipelines.running.runner import PipelineRunner, run_continuously, run_once

    pipelines = load_all(folders, overrides or Overrides())
    runners: list[PipelineRunner] = []
    if is_once:
        check_brokers(pipelines)
    with (
        held(pipelines),
        StopRequest(pipelines, is_stopped) as stopped,
        metrics_of(runners, metrics),
        session_for(pipelines, spark, starting) as session,
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
def session_for(
    pipelines: Sequence[Pipeline], given: "SparkSession | None", starting: Tell = _say_nothing
) -> Iterator["SparkSession"]:
    """The session that was given, or one that is stopped afterwards; its start takes a while.

    What Spark raises meanwhile is told in one line; its own pages are in its log.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from headrace.pipelines.running.restarts import told

    try:
        if given is None:
            starting()
        session = given or open_spark(pipelines)
        try:
            yield session
        finally:
            # A Spark that was ended by the signal that ends us cannot be asked to stop.
            with suppress(Py4JError, OSError):
                if given is None:
                    session.stop()
    except (PySparkException, Py4JError) as error:
        raise PipelineError(f"Spark failed: {told(error)}; see {log_path(pipelines[0])}") from error


@contextmanager
def held(pipelines: Sequence[Pipeline]) -> Iterator[None]:
    """Be the only process that runs these pipelines; a second one is refused before it begins."""
    with ExitStack() as stack:
        for pipeline in pipelines:
            state = state_of(pipeline)
            stack.enter_context(state.held())
            state.forget_stop()
        yield


def check_brokers(pipelines: Sequence[Pipeline]) -> None:
    """Fail if brokers do not answer. A server of Spark Connect may reach those that we cannot."""
    from headrace.pipelines.analysing import topic_checks

    for pipeline in pipelines:
        if not is_connect_url(pipeline.settings.master):
            topic_checks.check_brokers(pipeline)


class StopRequest:
    """Whether someone wants the run to end: by Ctrl-C, a signal, or `pipelines stop`.

    Signals are taken only where they can be, in the main thread, and given back afterwards.
    """

    def __init__(
        self, pipelines: Sequence[Pipeline], is_stopped: Callable[[], bool] | None
    ) -> None:
        self._states = [state_of(pipeline) for pipeline in pipelines]
        self._is_stopped = is_stopped
        self._asked = threading.Event()
        self._previous: dict[int, Any] = {}

    def __call__(self) -> bool:
        return (
            self._asked.is_set()
            or any(state.is_asked_to_stop() for state in self._states)
            or (self._is_stopped is not None and self._is_stopped())
        )

    def __enter__(self) -> Self:
        self._previous = self.take()
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def take(self) -> dict[int, Any]:
        """Take the signals, again after someone else did: a Spark session does when it starts."""
        if threading.current_thread() is not threading.main_thread():
            return {}
        return {taken: signal.signal(taken, lambda *_: self._ask()) for taken in _SIGNALS}

    def _ask(self) -> None:
        if not self._asked.is_set():
            os.write(2, b"\nstopping when the batches under way are done ...\n")
        self._asked.set()


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
        stands = known.state
        if stands == "running" and not state.is_held():
            stands = "died"
            known = msgspec.structs.replace(known, flows=tuple(map(died_with, known.flows)))
        elif stands != "running" and state.is_held():
            stands = "starting"
        found.append(msgspec.structs.replace(known, state=stands, lake=lake))
    return found


def died_with(flow: FlowStatus) -> FlowStatus:
    """A flow after its driver was killed, which could not say so."""
    is_over = flow.state in ("ended", "failed")
    return flow if is_over else msgspec.structs.replace(flow, state="died")


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
    starting: Tell = _say_nothing,
    show: "Callable[[Replay], None]" = lambda built: None,
) -> "Replay":
    """Build the tables anew beside the running ones, compare, show, and let the new ones count."""
    from headrace.pipelines.running.replaying import Sinks, build, switch

    (pipeline,) = load_all([folder], overrides or Overrides())
    chosen = None if sinks is None else Sinks(sinks)
    check_brokers([pipeline])
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
            f"{pipeline.settings.name} was never replayed: there is nothing to switch back to"
        )
    check_way_back(pipeline, earlier)
    Lake(pipeline.settings.lake).switch(earlier)
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
    starting: Tell = _say_nothing,
) -> "dict[str, Outcome]":
    """Bring records into a table that are older than where its flows began."""
    from headrace.pipelines.running.backfilling import backfill as backfill_flow

    (pipeline,) = load_all([folder], overrides or Overrides())
    if not any(flow.target == table for flow in pipeline.flows):
        why = "" if table in pipeline.datasets else f": {no_streaming_table(pipeline, table)}"
        raise PipelineError(f"no flow of {pipeline.settings.name} writes to {table}{why}")
    check_brokers([pipeline])
    with held([pipeline]), session_for([pipeline], spark, starting) as session:
        made = prepared(session, pipeline)
        flows = [flow for flow in made.pipeline.flows if flow.target == table]
        return {flow.name: backfill_flow(made, flow, from_ms=from_ms) for flow in flows}


def redrive(
    folder: str | Path,
    table: str,
    *,
    overrides: Overrides | None = None,
    spark: "SparkSession | None" = None,
    starting: Tell = _say_nothing,
) -> "Redriven":
    """Give the rows in a table's quarantine another try."""
    from headrace.pipelines.running.redriving import check_table
    from headrace.pipelines.running.redriving import redrive as redrive_table

    (pipeline,) = load_all([folder], overrides or Overrides())
    check_table(pipeline, table)
    check_brokers([pipeline])
    with session_for([pipeline], spark, starting) as session:
        return redrive_table(prepared(session, pipeline), table)
