"""Pools of Spark's fair scheduler: streams, batch runs, and what is more or less urgent.

Each has a slot of the executors that no other can take while it has work, but that of the least
urgent streams, which take what is left, and that of real time, whose tasks keep what they have. So
a view that is computed whole does not hold up streams, and a backlog of streams does not hold up
views. Spark itself shares only as tasks end; `fair_shares` sees to the rest.

Spark offers a slot first to pools that run fewer tasks than their least share, and among these to
the one that runs the smallest part of it; behind them weights count alike. Where both run nothing
it goes by their names, and a pool without a task comes before all that have theirs: on few slots
names and least shares decide, and weights nothing. So names begin with a rank, and the least shares
differ as priorities do.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from headrace.spark.connect import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

URGENT, BATCH, STREAMS, PATIENT = "1-urgent", "2-batch", "3-streams", "4-patient"
POOLS = (URGENT, BATCH, STREAMS, PATIENT)
"""Whose tasks come to an end and may be repeated."""
REAL_TIME = "realtime"
"""For flows in Spark's real-time mode, whose tasks stay where they are for as long as they run."""

ALLOCATIONS = Path(__file__).with_name("pools.xml")


def pool_of(priority: int) -> str:
    """The pool of a stream whose source has this priority; 0 is what most have."""
    if priority > 0:
        return URGENT
    return STREAMS if priority == 0 else PATIENT


def choose_pool(spark: "SparkSession", pool: str) -> None:
    """Let what this thread starts next run in a pool; a Connect session has no say in that."""
    if not is_connect(spark):
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool)
