"""Time to plan a pipeline of many tables: reading its files, the dry run, the drawing.

    python -m benchmarks.pipeline_planning --tables 100

Half of the tables are SQL, half Python; they form chains through the four zones, each with
expectations, and every tenth is a view that joins two of them. The session's start is not counted:
it is paid once, whatever the pipeline. The first round meets a cold JVM, as a user does; later
ones show what is left when it is warm. Ends with 1 if the dry run takes longer than
`spark_targets.py` allows.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.processes import cpu_seconds
from benchmarks.spark_targets import PLANNING, above, verdict
from benchmarks.workloads import Figure
from headrace.pipelines.analysing.checking import check
from headrace.pipelines.analysing.graph import graph_of
from headrace.pipelines.drawing.svg import svg_of
from headrace.pipelines.model import ZONES
from headrace.pipelines.project import load
from headrace.pipelines.spark_sessions import dry_run_settings
from headrace.spark.session import open_session

SETTINGS = """
[pipeline]
name = "planned"

[sources.orders]
format = "json"
schema = "id BIGINT, customer STRING, price DOUBLE, ts TIMESTAMP, tags ARRAY<STRING>"
"""
SQL = """CREATE STREAMING TABLE {name} (
  CONSTRAINT positive EXPECT (price > 0) ON VIOLATION QUARANTINE ROW,
  CONSTRAINT once EXPECT UNIQUE (id) ON VIOLATION DROP ROW
) AS SELECT id, customer, price * 1.0d AS price, ts, tags FROM STREAM({read}) WHERE id IS NOT NULL;
"""
PYTHON = """
@dp.table(name="{name}")
@dp.expect_or_drop("positive", dp.between("price", 0, 1000))
@dp.expect_unique("id")
def {function}():
    return dp.read_stream("{read}").withColumn("customer", F.upper("customer"))
"""
VIEW = """CREATE MATERIALIZED VIEW {name} AS
SELECT a.customer, count(*) AS orders, sum(b.price) AS spent
FROM {read} a JOIN {other} b USING (id) GROUP BY a.customer;
"""


def write_pipeline(folder: Path, tables: int) -> None:
    """A folder with so many tables, in chains as long as there are zones."""
    sql: list[str] = []
    python = ["from headrace import pipelines as dp", "from pyspark.sql import functions as F"]
    streams: list[str] = []
    for number in range(tables):
        if number % 10 == 9:
            name = f"refined.v{number}"
            sql.append(VIEW.format(name=name, read=streams[-1], other=streams[-2]))
            continue
        step = len(streams) % len(ZONES)
        name = f"{ZONES[step]}.t{number}"
        read = "sources.orders" if step == 0 else streams[-1]
        if number % 2:
            python.append(PYTHON.format(name=name, function=f"t{number}", read=read))
        else:
            sql.append(SQL.format(name=name, read=read))
        streams.append(name)
    (folder / "pipeline.toml").write_text(SETTINGS)
    (folder / "tables.sql").write_text("\n".join(sql))
    (folder / "tables.py").write_text("\n".join(python))


class Clock:
    """Prints how long each step takes, and remembers it.

    The processor time of this process and the JVM is printed beside it: on a busy machine only that
    can be compared; half of it is the JVM's compiler.
    """

    def __init__(self) -> None:
        self.figures: list[Figure] = []

    @contextmanager
    def timed(self, what: str, jvm: int | None = None) -> Iterator[None]:
        began, cpu = time.monotonic(), _cpu_seconds(jvm)
        yield
        spent, cpu_spent = time.monotonic() - began, _cpu_seconds(jvm) - cpu
        print(f"  {what:<22} {spent:7.2f} s, processors {cpu_spent:7.2f} s")
        self.figures.append(Figure(what, "s", spent))


def _cpu_seconds(jvm: int | None) -> float:
    return time.process_time() + (cpu_seconds(jvm) if jvm is not None else 0.0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    clock = Clock()
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        write_pipeline(folder, arguments.tables)
        with clock.timed("session start"):
            settings = {"spark.local.dir": directory, **dry_run_settings({})}
            spark = open_session("planning", "local[2]", settings)
        jvm = int(spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
        for number in range(arguments.rounds):
            print(f"round {number + 1}: {arguments.tables} tables, load {os.getloadavg()[0]:.1f}")
            with clock.timed("read the files"):
                pipeline = load(folder)
            with clock.timed("check without Spark"):
                check(pipeline)
            with clock.timed(PLANNING.name, jvm):
                report = check(pipeline, spark=spark)
            with clock.timed("draw"):
                svg_of(graph_of(pipeline))
            assert not report.problems, report.problems[0]
        spark.stop()
    return verdict(above(clock.figures))


if __name__ == "__main__":
    sys.exit(main())
