"""Pools of Spark's fair scheduler for streams and batch runs of different priority.

Each pool with work has a reserved slot of the executors, so the full computation of a view does not
delay streams, and a backlog of streams does not delay views. Two pools have none: the streams of
low priority, and real time, whose tasks keep their slots. Spark shares only as tasks end;
`pool_preemption` does the rest.

Spark offers a slot first to pools below their minimum share, and among these to the one with the
smallest fraction of it; for the others weights count. Pools without a running task come first, by
their names. So with few slots names and minimum shares decide, and weights do not. Therefore names
begin with a rank, and the minimum shares follow the priorities.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from headrace.spark.connect import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

URGENT, BATCH, STREAMS, PATIENT = "1-urgent", "2-batch", "3-streams", "4-patient"
POOLS = (URGENT, BATCH, STREAMS, PATIENT)
"""The pools whose tasks end and may be repeated."""
REAL_TIME = "realtime"
"""For flows in Spark's real-time mode, whose tasks never end."""

ALLOCATIONS = Path(__file__).with_name("pools.xml")


def pool_of(priority: int) -> str:
    """Return the pool of a stream by the priority of its source, usually 0."""
    if priority > 0:
        return URGENT
    return STREAMS if priority == 0 else PATIENT


def choose_pool(spark: "SparkSession", pool: str) -> None:
    """Choose the pool for the next jobs of this thread; Connect sessions cannot."""
    if not is_connect(spark):
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool)
