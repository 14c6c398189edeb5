"""Cost of merging batches by key into a table, by tasks, as batch and table grow.

    python -m benchmarks.table_merging --thousands 100 200 400 1000

A table gets a batch, then one with the same keys and one with new keys, of rows of some 95 bytes:
rows by key, also into many partitions, and change events of types 1 and 2. CPU seconds are those
of the driver, the JVM and the Python workers. If they grow faster than the rows, something looks
at rows more than once.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from benchmarks.processes import cpu_seconds
from benchmarks.spark_processes import spark_cpu_seconds
from headrace.lake.applied_changes import history_name, history_schema, target_schema
from headrace.lake.catalog import Lake
from headrace.lake.commit_log import Token
from headrace.lake.lineage import Lineage
from headrace.lake.upsert_decisions import Upsert
from headrace.pipelines.model import Changes
from headrace.pipelines.running.flows.intake import Intake
from headrace.pipelines.running.flows.targets import ChangesTarget, KeyedTarget, Target
from headrace.pipelines.running.tables.places import TablePlace
from headrace.spark.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "trusted.rows"
DAYS = 365
SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("day", pa.date32()),
        ("seq", pa.int64()),
        ("amount", pa.float64()),
        ("note", pa.string()),
    ]
)
BATCHES = {"first": (0, 0), "same keys": (1, 0), "new keys": (2, 1)}
"""For each batch its sequence, and how many times its size its keys begin behind the first's."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Cost of one batch."""

    kind: str
    rows: int
    batch: str
    seconds: float
    cpu_seconds: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--thousands", type=int, nargs="+", default=[100, 400])
    parser.add_argument("--only", nargs="+", choices=list(KINDS), default=list(KINDS))
    given = parser.parse_args()
    print(table(run([1_000 * count for count in given.thousands], given.only)), flush=True)
    return 0


def run(rows: Sequence[int], kinds: Sequence[str]) -> list[Taken]:
    """All batches of all sizes; the first batch of all, which warms the JVM, is not counted."""
    memory = Path("/dev/shm")
    parent = memory if os.access(memory, os.W_OK) else None
    directory = Path(tempfile.mkdtemp(prefix="headrace-bench-merging-", dir=parent))
    settings = {"spark.driver.memory": "2g", "spark.local.dir": str(directory / "local")}
    try:
        spark = open_session("bench", "local[2]", settings)
        try:
            merged(spark, directory / "warming", kinds[0], 1_000)
            return [
                taken
                for kind in kinds
                for count in rows
                for taken in merged(
                    spark, directory / f"{kind.replace(' ', '-')}-{count}", kind, count
                )
            ]
        finally:
            spark.stop()
    finally:
        shutil.rmtree(directory)


def merged(spark: "SparkSession", root: Path, kind: str, rows: int) -> list[Taken]:
    """Three batches into a new table."""
    target = KINDS[kind](root)
    found = []
    for number, (batch, (sequence, turn)) in enumerate(BATCHES.items()):
        before, started = cpu(), time.perf_counter()
        target.write(arriving(spark, rows, sequence, turn), Token("w", number), Lineage(flow="f"))
        taken = Taken(kind, rows, batch, time.perf_counter() - started, cpu() - before)
        print(taken, file=sys.stderr, flush=True)
        found.append(taken)
    shutil.rmtree(root)
    return found


def cpu() -> float:
    """Processor time so far of this process and all that Spark runs in."""
    return cpu_seconds(os.getpid()) + spark_cpu_seconds()


def arriving(spark: "SparkSession", rows: int, sequence: int, turn: int) -> "DataFrame":
    """Rows whose keys are texts in no order, as ids are."""
    return spark.range(rows * turn, rows * (turn + 1), 1, 4).selectExpr(
        "concat('user-', lpad(id * 7919 % 1000003 * 1000 + id div 1000003, 12, '0')) AS key",
        f"date_add(DATE'2026-01-01', CAST(id * 7919 % {DAYS} AS INT)) AS day",
        f"{sequence}L AS seq",
        "id * 0.37D AS amount",
        "repeat('n', 50) AS note",
    )


def by_key(root: Path) -> Target:
    Lake(root).create(NAME, SCHEMA)
    return KeyedTarget(Intake(TablePlace(str(root), NAME, 1), None, "f"), Upsert(("key",)), 0)


def by_key_and_day(root: Path) -> Target:
    """A table of many small files, each of which may have a key of the batch."""
    Lake(root).create(NAME, SCHEMA, partition_by=["day"])
    how = Upsert(("key", "day"))
    return KeyedTarget(Intake(TablePlace(str(root), NAME, 1), None, "f"), how, 0)


def by_changes(scd_type: int) -> Callable[[Path], Target]:
    def made(root: Path) -> Target:
        lake = Lake(root)
        lake.create(NAME, target_schema(SCHEMA, sequence_by="seq", scd_type=scd_type))
        lake.create(history_name(NAME), history_schema(SCHEMA, keys=["key"], sequence_by="seq"))
        return ChangesTarget(
            Intake(TablePlace(str(root), NAME, 1), None, "f"),
            TablePlace(str(root), history_name(NAME), 1),
            Changes(("key",), "seq", None, scd_type),
            0,
        )

    return made


KINDS: dict[str, Callable[[Path], Target]] = {
    "rows by key": by_key,
    f"rows by key, {DAYS} partitions": by_key_and_day,
    "changes, type 1": by_changes(1),
    "changes, type 2": by_changes(2),
}


def table(found: Sequence[Taken]) -> str:
    """A line for each kind and size, with CPU seconds for each batch."""
    lines = [f"| | rows | {' | '.join(BATCHES)} |", f"|---|---:|{'---:|' * len(BATCHES)}"]
    for kind, rows in dict.fromkeys((one.kind, one.rows) for one in found):
        taken = [f"{one.cpu_seconds:.1f}" for one in found if (one.kind, one.rows) == (kind, rows)]
        lines.append(f"| {kind} | {rows:,} | {' | '.join(taken)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
