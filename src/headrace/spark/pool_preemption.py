"""Preemption between the pools of Spark's fair scheduler, for pools without a slot.

The scheduler assigns a slot to the neediest pool, but only when a task ends. A batch run whose
tasks take minutes would delay every stream by minutes, and a stream with a large backlog every
batch run. So a pool with a minimum share and waiting tasks, none of which runs, gets a slot after a
moment: the youngest task is killed of the pool that runs most beyond its reserved slot. A pool
without a minimum share has no reserved slot and may lose its only task. Spark repeats the task and
counts no failure.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headrace.spark.connect import is_connect
from headrace.spark.pools import POOLS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)

LOOKS_BEFORE_PREEMPTION = 2
"""Consecutive checks with a starved pool before another loses a task; most tasks end sooner."""
LOOK_EVERY_S = 0.25
_END_S_MAX = 10.0
_REASON = "preempted for a pool without a slot"


@dataclass(frozen=True, slots=True)
class Share:
    """The state of a pool at a moment."""

    pool: str
    kept: int
    """The slots reserved for the pool while it has work: 1 or 0."""
    running: int
    has_waiting: bool

    @property
    def is_starved(self) -> bool:
        return self.has_waiting and self.running < self.kept

    @property
    def spare(self) -> int:
        """The running tasks beyond the reserved slots."""
        return self.running - self.kept


@dataclass(slots=True)
class Preemption:
    """Chooses the pool that loses a task, after counting for how many checks others are starved."""

    looks: dict[str, int] = field(default_factory=dict)

    def victim(self, shares: Sequence[Share]) -> str | None:
        """Return the pool with most to spare, once another has been starved for long enough."""
        starved = [share.pool for share in shares if share.is_starved]
        self.looks = {pool: self.looks.get(pool, 0) + 1 for pool in starved}
        if not any(count >= LOOKS_BEFORE_PREEMPTION for count in self.looks.values()):
            return None
        richest = max(shares, key=lambda share: share.spare)
        if richest.spare <= 0:
            return None
        self.looks = {}
        return richest.pool


class SchedulerPools:
    """The pools of a session's scheduler, by Spark's developer API."""

    def __init__(self, spark: "SparkSession") -> None:
        # PySpark has no public way to the JVM's SparkContext.
        context: Any = spark.sparkContext._jsc.sc()
        self._context = context
        self._pools = {
            name: found.get()
            for name in POOLS
            if (found := context.getPoolForName(name)).isDefined()
        }

    def shares(self) -> list[Share]:
        return [self._share(name, pool) for name, pool in self._pools.items()]

    def kill_youngest_task(self, pool: str) -> None:
        """Kill the task of a pool that was started last."""
        running = [
            int(number)
            for tasks in self._pools[pool].schedulableQueue().toArray()
            for number in filter(None, tasks.runningTasksSet().mkString(",").split(","))
        ]
        if running:
            self._context.killTaskAttempt(max(running), True, _REASON)

    def _share(self, name: str, pool: Any) -> Share:
        # One reserved slot is enough. Larger minimum shares only order the pools.
        kept, running = min(int(pool.minShare()), 1), int(pool.runningTasks())
        # Waiting tasks matter only without the reserved slot; each call to the JVM costs.
        has_waiting = running < kept and any(
            tasks.numTasks() - tasks.tasksSuccessful() > tasks.runningTasks()
            for tasks in pool.schedulableQueue().toArray()
        )
        return Share(name, kept, running, has_waiting)


@contextmanager
def preemption(spark: "SparkSession", is_contended: Callable[[], bool]) -> Iterator[None]:
    """Preempt tasks in this context while work is contended.

    A Connect session cannot change the server's scheduler.
    """
    if is_connect(spark):
        yield
        return
    is_over = threading.Event()
    watch = threading.Thread(target=_watch, args=(spark, is_contended, is_over), daemon=True)
    watch.start()
    try:
        yield
    finally:
        is_over.set()
        watch.join(_END_S_MAX)


def _watch(
    spark: "SparkSession", is_contended: Callable[[], bool], is_over: threading.Event
) -> None:
    from py4j.protocol import Py4JError

    try:
        pools, preemption = SchedulerPools(spark), Preemption()
        while not is_over.wait(LOOK_EVERY_S):
            victim = preemption.victim(pools.shares()) if is_contended() else None
            if victim is not None:
                _log.debug("task preempted for a pool without a slot", extra={"pool": victim})
                pools.kill_youngest_task(victim)
    except (Py4JError, OSError) as error:
        if not is_over.is_set():
            # If Spark itself ended, others report that. Otherwise pools share as tasks end.
            _log.warning(
                "preemption between Spark's pools stopped",
                extra={"error": type(error).__name__},
                exc_info=True,
            )
