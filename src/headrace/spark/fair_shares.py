"""Keeps a slot of the executors for each pool, also against tasks that do not end.

Spark's fair scheduler gives a slot to the pool that needs it most, but only when a task has ended.
A batch run whose tasks take minutes would hold up every stream for minutes, and a stream that is
far behind every batch run. So a pool that has a least share, tasks to run and none running is given
a slot after a moment: the youngest task is ended of the pool that runs most beyond the one slot
that is kept for it. For a pool without a least share none is kept, so it may be its only task that
is ended. Spark repeats that task, which costs the little that it had done, and counts no failure.
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

PATIENCE_LOOKS = 2
"""So often in a row a pool is found wanting before another has to give. Most tasks end sooner."""
LOOK_EVERY_S = 0.25
_END_S_MAX = 10.0
_WHY = "its slot goes to a pool that has none"


@dataclass(frozen=True, slots=True)
class Share:
    """A pool at some moment."""

    pool: str
    kept: int
    """How many slots no other pool may have while it has work: 1, or 0."""
    running: int
    has_waiting: bool

    @property
    def is_wanting(self) -> bool:
        return self.has_waiting and self.running < self.kept

    @property
    def spare(self) -> int:
        """How many tasks it runs beyond what is kept for it."""
        return self.running - self.kept


@dataclass(slots=True)
class Fairness:
    """Decides which pool gives a slot; remembers which have been wanting for how many looks."""

    looks: dict[str, int] = field(default_factory=dict)

    def giver(self, shares: Sequence[Share]) -> str | None:
        """The pool that has most to spare, once another has been wanting for long enough."""
        wanting = [share.pool for share in shares if share.is_wanting]
        self.looks = {pool: self.looks.get(pool, 0) + 1 for pool in wanting}
        if not any(count >= PATIENCE_LOOKS for count in self.looks.values()):
            return None
        richest = max(shares, key=lambda share: share.spare)
        if richest.spare <= 0:
            return None
        self.looks = {}
        return richest.pool


class SchedulerPools:
    """The pools of a session's scheduler, through the doors that Spark has for developers."""

    def __init__(self, spark: "SparkSession") -> None:
        context: Any = spark.sparkContext._jsc.sc()
        self._context = context
        self._pools = {
            name: found.get()
            for name in POOLS
            if (found := context.getPoolForName(name)).isDefined()
        }

    def shares(self) -> list[Share]:
        return [self._share(name, pool) for name, pool in self._pools.items()]

    def end_youngest(self, pool: str) -> None:
        """End the task of a pool that was started last."""
        running = [
            int(number)
            for tasks in self._pools[pool].schedulableQueue().toArray()
            for number in filter(None, tasks.runningTasksSet().mkString(",").split(","))
        ]
        if running:
            self._context.killTaskAttempt(max(running), True, _WHY)

    def _share(self, name: str, pool: Any) -> Share:
        # One slot is enough to go on. Beyond it Spark's least shares say who comes first, not what
        # tasks are to be ended for.
        kept, running = min(int(pool.minShare()), 1), int(pool.runningTasks())
        # What waits matters only where the slot that is kept is lacking: each question costs.
        has_waiting = running < kept and any(
            tasks.numTasks() - tasks.tasksSuccessful() > tasks.runningTasks()
            for tasks in pool.schedulableQueue().toArray()
        )
        return Share(name, kept, running, has_waiting)


@contextmanager
def kept(spark: "SparkSession", is_contended: Callable[[], bool]) -> Iterator[None]:
    """Look after the slots while this lasts, whenever two kinds of work are under way.

    A Connect session has no say in the server's scheduler: there the server's own rules hold.
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
        pools, fairness = SchedulerPools(spark), Fairness()
        while not is_over.wait(LOOK_EVERY_S):
            giver = fairness.giver(pools.shares()) if is_contended() else None
            if giver is not None:
                _log.debug("a task of the pool %s is ended: another has no slot", giver)
                pools.end_youngest(giver)
    except (Py4JError, OSError):
        if not is_over.is_set():
            # Spark itself may be gone, which others tell; else pools share as tasks end.
            _log.warning("the shares of Spark's pools are looked after no longer", exc_info=True)
