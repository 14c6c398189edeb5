"""Spark's classes as the JVM has them in memory, kept in a file for the next start.

Half of what a session's start costs is reading, checking and laying out some fifteen thousand
classes. Java can write them to an archive when a program ends (class data sharing), and map
it at the next start. An archive is bound to the Java that wrote it and to the paths, sizes and
times of the jars; a JVM that finds something else leaves it alone and loads the classes as ever.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote  # Spark and Java take options apart at blanks, and heed quotes.
from typing import TYPE_CHECKING, Any

from headrace.errors import HeadraceError
from headrace.spark.home import own_home
from headrace.spark.java import locate_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DRIVER_OPTIONS = "spark.driver.extraJavaOptions"

_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
"""What is wrong with an archive concerns nobody: it is then not used."""
_MAKING_S_MAX = 300.0
_ENDING_S_MAX = 120


class NotArchived(HeadraceError):
    """The archive could not be made; the message says why."""


def java_options(home: Path) -> str:
    """What makes a JVM with this home use its archive; nothing if there is none."""
    archive = archive_of(home)
    return f"{quote(f'-XX:SharedArchiveFile={archive}')} {_QUIET}" if archive.exists() else ""


def archive_of(home: Path) -> Path:
    """Where the archive is for the Spark of this home and this machine's Java, there or not."""
    java, jars = locate_java(os.environ).resolve(), home / "jars"
    identity = f"{java} {java.stat().st_mtime_ns} {jars.stat().st_mtime_ns}"
    return home / f"classes-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.jsa"


def make_archive(*, again: bool) -> Path:
    """Start Spark once for its classes, and keep them in the place of all earlier archives."""
    home = own_home()
    if home is None:
        raise NotArchived("there is no Spark here: pip install '/path/to/headrace[spark]'")
    archive = archive_of(home)
    with _alone(home):
        if archive.exists() and not again:
            return archive
        # A JVM that uses an archive writes none, so the old ones go first.
        for old in home.glob("classes-*.jsa"):
            old.unlink()
        aside = home / "making"
        shutil.rmtree(aside, ignore_errors=True)  # Of one that was killed: nobody else is here.
        aside.mkdir()
        _run_for_classes(aside / archive.name, aside)
        (aside / archive.name).replace(archive)
        shutil.rmtree(aside)
    return archive


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """One process at a time; the others wait, as what they want is being made."""
    with (home / "making.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run_for_classes(archive: Path, directory: Path) -> None:
    """Let a process of its own write the archive when its JVM ends."""
    command = [sys.executable, "-m", __name__, str(archive), str(directory)]
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, timeout=_MAKING_S_MAX, check=False
        )
    except subprocess.TimeoutExpired:
        raise NotArchived(
            f"Spark's classes were not archived: a session did not end in {_MAKING_S_MAX:.0f} s;"
            " try again when the machine has less to do"
        ) from None
    if result.returncode != 0 or not archive.exists():
        raise NotArchived(f"Spark's classes were not archived: {result.stderr[-2000:]}")


def _main(archive: str, directory: str) -> None:
    """Run a session that does a little of everything, and wait until its JVM has ended."""
    from headrace.spark.session import open_session

    settings = {
        DRIVER_OPTIONS: quote(f"-XX:ArchiveClassesAtExit={archive}"),
        "spark.sql.warehouse.dir": f"{directory}/warehouse",
    }
    session = open_session("classes", "local[2]", settings)
    gateway: Any = session.sparkContext._gateway
    _use(session, Path(directory))
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(_ENDING_S_MAX)


def _use(session: "SparkSession", directory: Path) -> None:
    """What pipelines do: Python tasks, joins, aggregates, Parquet, and a stream with state."""
    numbers = session.range(100).selectExpr("id", "id % 7 AS residue", "string(id) AS text")
    numbers.mapInArrow(lambda batches: batches, numbers.schema).write.parquet(
        f"{directory}/numbers"
    )
    kept = session.read.parquet(f"{directory}/numbers")
    sums = kept.groupBy("residue").sum("id")
    kept.join(sums, "residue").orderBy("id").toArrow()
    (
        session.readStream.schema(kept.schema)
        .parquet(f"{directory}/numbers")
        .groupBy("residue")
        .count()
        .writeStream.foreachBatch(lambda batch, _: batch.toArrow())
        .outputMode("update")
        .option("checkpointLocation", f"{directory}/checkpoint")
        .trigger(availableNow=True)
        .start()
        .awaitTermination(_ENDING_S_MAX)
    )


if __name__ == "__main__":
    _main(*sys.argv[1:])
