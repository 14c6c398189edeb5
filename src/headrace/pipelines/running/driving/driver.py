"""Runs several pipelines: each once, to the end of the available records, or until stopped."""

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

from headrace.errors import HeadraceError
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.running.driving.runner import TICK_S, PipelineRunner
from headrace.pipelines.running.driving.schedules import monotonic_s
from headrace.pipelines.running.errors import FlowsFailed, spark_ended_with_us
from headrace.pipelines.running.pipeline_run import PipelineRun
from headrace.runtime.clock import SystemClock, WaitingClock
from headrace.spark import pool_preemption

_log = logging.getLogger(__name__)

_STATUS_EVERY_S = 1.0
_CATALOG_EVERY_S = 2.0


def run_once(runners: list[PipelineRunner], is_stopped: Callable[[], bool]) -> None:
    """Run each pipeline to the end of the available records; the error has all failed flows."""
    for runner in runners:
        runner.once(is_stopped)
    raise_failures(runners)
    if undone := [name for runner in runners for name in runner.undone]:
        raise PipelineError(
            f"stopped on request, before the end: {', '.join(undone)} may lack rows that are ready"
            " to be read. Run again to continue; no row is lost or duplicated"
        )


def run_continuously(
    runners: list[PipelineRunner],
    is_stopped: Callable[[], bool],
    show: Callable[[list[PipelineRunner]], None],
    clock: WaitingClock | None = None,
) -> None:
    """Run all pipelines until stopped; a flow that fails for good does not end the others.

    Each pipeline computes its views in turn; a long one does not delay those of another pipeline.
    """
    with ExitStack() as stack:
        if runners:
            is_contended = partial(_are_views_computed, runners)
            stack.enter_context(pool_preemption.preemption(runners[0].run.spark, is_contended))
        views = [stack.enter_context(_worker(f"views of {one.run.name}")) for one in runners]
        tidying = stack.enter_context(_worker("tidying"))
        try:
            with spark_ended_with_us(is_stopped):
                for runner in [] if is_stopped() else runners:
                    runner.begin()
                _keep_running(runners, views, tidying, is_stopped, show, clock or SystemClock())
        finally:
            _end_all(runners, is_stopped)
    raise_failures(runners)


def _end_all(runners: Iterable[PipelineRunner], is_stopped: Callable[[], bool]) -> None:
    """End each pipeline, even if the end of another raises."""
    with ExitStack() as ends:
        for runner in reversed(list(runners)):
            ends.callback(runner.end, is_stopped)


def _are_views_computed(runners: list[PipelineRunner]) -> bool:
    """Return whether streams share the executors with a view now."""
    return any(view.future is not None for runner in runners for view in runner.views)


def _worker(name: str) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)


def _keep_running(
    runners: list[PipelineRunner],
    views: list[ThreadPoolExecutor],
    tidying: ThreadPoolExecutor,
    is_stopped: Callable[[], bool],
    show: Callable[[list[PipelineRunner]], None],
    clock: WaitingClock,
) -> None:
    status_at = catalog_at = 0.0
    while not is_stopped():
        moment = monotonic_s(clock)
        if moment >= catalog_at:
            catalog_at = moment + _CATALOG_EVERY_S
            for number, runner in enumerate(runners):
                runners[number] = with_current_tables(runner)
        if moment >= status_at:
            status_at = moment + _STATUS_EVERY_S
            for runner, worker in zip(runners, views, strict=True):
                runner.tick(worker, tidying)
                runner.write_status("running")
            show(runners)
        if all(is_at_end(runner) for runner in runners):
            return
        clock.sleep(TICK_S)


def with_current_tables(runner: PipelineRunner) -> PipelineRunner:
    """Return the runner, or a new one on the current tables after a replay has switched them."""
    if runner.run.generations.is_current():
        return runner
    _log.info("tables switched, run continues with them", extra={"pipeline": runner.run.name})
    for running in runner.flows:
        running.stop()
    renewed = PipelineRun(runner.run.spark, runner.run.pipeline)
    try:
        renewed.prepare()
    except HeadraceError as error:
        _log.error(
            "run cannot continue with the switched tables",
            extra={"pipeline": runner.run.name, "error": str(error)},
        )
        runner.give_up(str(error))
        return runner
    successor = PipelineRunner(renewed)
    successor.started_at = runner.started_at
    successor.begin()
    return successor


def is_at_end(runner: PipelineRunner) -> bool:
    """Return whether all flows of a pipeline are over."""
    return bool(runner.flows) and all(running.is_over for running in runner.flows)


def raise_failures(runners: Iterable[PipelineRunner]) -> None:
    failures = [text for runner in runners for text in runner.failures()]
    if failures:
        raise FlowsFailed(failures)
