"""Running a load: start the workers of a plan, receive their reports and combine the results.

Producers warm up first, then consumers seek to the end of the log, then all workers start at
once. When the producers are done, consumers read to the end and report.
"""

import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import NamedTuple

from headrace.cli.load_plan import (
    Done,
    Failed,
    LoadPlan,
    LoadProgress,
    LoadResult,
    Ready,
    Report,
    WorkerShare,
    combined,
)
from headrace.cli.load_workers import consume_load, produce_load, run_worker
from headrace.errors import HeadraceError

READY_S = 60.0
FINISH_S = 90.0

Work = Callable[[WorkerShare, Connection], None]
Watch = Callable[[LoadProgress, LoadProgress, float], None]
"""Callback with the counts of produced and consumed records and the seconds since the start."""


class LoadFailure(HeadraceError):
    """A worker of the load failed."""


class LoadWorker(NamedTuple):
    """A process and this side's end of its pipe."""

    process: BaseProcess
    pipe: Connection


class LoadRun:
    """The workers of one plan."""

    def __init__(self, plan: LoadPlan, watch: Watch) -> None:
        self._plan = plan
        self._watch = watch
        self._workers: list[LoadWorker] = []
        self._progress: dict[Connection, LoadProgress] = {}
        self._done: dict[Connection, Done] = {}

    def run(self) -> tuple[LoadResult | None, LoadResult | None]:
        """Run the load; return the results of the producers and of the consumers."""
        try:
            producers = self._start(produce_load, self._plan.producers)
            consumers = self._start(consume_load, self._plan.consumers)
            return self._drive(producers, consumers)
        finally:
            for worker in self._workers:
                worker.process.terminate()
                worker.process.join()
                worker.pipe.close()

    def _drive(
        self, producers: list[LoadWorker], consumers: list[LoadWorker]
    ) -> tuple[LoadResult | None, LoadResult | None]:
        started = time.monotonic()
        _signal(producers + consumers)
        try:
            self._listen(producers, consumers, started, producers)
        except KeyboardInterrupt:
            _signal(
                producers
            )  # Records that are already sent are still acknowledged, read and reported.
            self._listen(producers, consumers, started, producers, FINISH_S)
        _signal(consumers)
        self._listen(producers, consumers, started, consumers, None if not producers else FINISH_S)
        return self._result(producers), self._result(consumers)

    def _start(self, work: Work, count: int) -> list[LoadWorker]:
        """Start workers and wait until all of them are ready."""
        # A new interpreter for each: forked librdkafka threads would not survive.
        context = multiprocessing.get_context("spawn")
        workers = []
        for index in range(count):
            ours, theirs = context.Pipe()
            share = WorkerShare(self._plan, index)
            process = context.Process(target=run_worker, args=(work, share, theirs), daemon=True)
            process.start()
            theirs.close()
            workers.append(LoadWorker(process, ours))
            self._workers.append(workers[-1])
        for worker in workers:
            if not worker.pipe.poll(READY_S):
                raise LoadFailure(f"a worker was not ready within {READY_S:.0f} s")
            self._note(worker.pipe, _receive(worker.pipe))
        return workers

    def _listen(
        self,
        producers: list[LoadWorker],
        consumers: list[LoadWorker],
        started: float,
        awaited: list[LoadWorker],
        timeout_s: float | None = None,
    ) -> None:
        """Receive reports until the pending workers are done."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while pending := [w.pipe for w in awaited if w.pipe not in self._done]:
            if deadline is not None and time.monotonic() > deadline:
                raise LoadFailure(f"{len(pending)} workers did not finish in time")
            others = [w.pipe for w in consumers if w.pipe not in self._done]
            for pipe in wait({*pending, *others}, timeout=0.2):
                assert isinstance(pipe, Connection)
                self._note(pipe, _receive(pipe))
            self._watch(self._sum(producers), self._sum(consumers), time.monotonic() - started)

    def _note(self, pipe: Connection, report: Report) -> None:
        match report:
            case Ready():
                pass
            case LoadProgress():
                self._progress[pipe] = report
            case Done():
                self._done[pipe] = report
                self._progress[pipe] = LoadProgress(report.records, report.size_bytes)
            case Failed():
                raise LoadFailure(f"a worker failed: {report.reason}")

    def _sum(self, workers: list[LoadWorker]) -> LoadProgress:
        parts = [self._progress[w.pipe] for w in workers if w.pipe in self._progress]
        return LoadProgress(
            sum(part.records for part in parts), sum(part.size_bytes for part in parts)
        )

    def _result(self, workers: list[LoadWorker]) -> LoadResult | None:
        return combined([self._done[worker.pipe] for worker in workers]) if workers else None


def _receive(pipe: Connection) -> Report:
    try:
        report: Report = pipe.recv()
    except EOFError as error:
        raise LoadFailure("a worker died") from error
    return report


def _signal(workers: list[LoadWorker]) -> None:
    """Send the next signal to each worker: first start, then finish."""
    for worker in workers:
        worker.pipe.send(None)
