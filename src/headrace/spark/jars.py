"""The jars of Spark's stock Kafka connector and of its Avro reader, fetched through Maven.

The newest ones on Maven Central are older than Spark, and the description of a dependency of the
connector is missing there, so no tool resolves the set. These versions work together.
"""

import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from shutil import which

from headrace.errors import HeadraceError

CONNECTOR = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.1.0-preview1",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)
"""The jars of `format("kafka")` on Spark 4.3."""
AVRO = "org.apache.spark:spark-avro_2.13:4.1.1"
"""The jar of `format("avro")`, by which Spark reads Avro files, captured ones included."""
JARS = (*CONNECTOR, AVRO)

_FETCH_S_MAX = 300.0
_ERROR = re.compile(r"^\[ERROR\] (.+)$", re.MULTILINE)

Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


class JarsMissing(HeadraceError):
    """Jars are missing or cannot be fetched."""


def fetch_jars(
    directory: Path, on_fetch: Callable[[str], None], run: Run | None = None
) -> list[Path]:
    """Fetch the missing jars into a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    for artifact in JARS:
        if not jar_of(directory, artifact).exists():
            on_fetch(artifact)
            _fetch(artifact, directory, run or _run)
    return jars_in(directory)


def jars_in(directory: Path) -> list[Path]:
    """Return the jars in a directory, or raise `JarsMissing`."""
    jars = [jar_of(directory, artifact) for artifact in JARS]
    missing = [jar.name for jar in jars if not jar.exists()]
    if missing:
        raise JarsMissing(
            f"{directory} has no {', '.join(missing)}: `headrace spark jars {directory}` fetches"
            " them"
        )
    return [jar.resolve() for jar in jars]


def spark_jars(jars: Sequence[Path]) -> str:
    """Return the value of `spark.jars`."""
    return ",".join(map(str, jars))


def jar_of(directory: Path, artifact: str) -> Path:
    _, name, version = artifact.split(":")
    return directory / f"{name}-{version}.jar"


def _fetch(artifact: str, directory: Path, run: Run) -> None:
    command = [
        _maven(),
        "--batch-mode",
        "--quiet",
        "dependency:copy",
        f"-Dartifact={artifact}:jar",
        f"-DoutputDirectory={directory.resolve()}",
    ]
    try:
        done = run(command)
    except subprocess.TimeoutExpired:
        raise JarsMissing(
            f"{artifact} was not fetched within {_FETCH_S_MAX:.0f} s; is Maven Central reachable?"
        ) from None
    if done.returncode or not jar_of(directory, artifact).exists():
        reason = _ERROR.search(done.stdout + done.stderr)
        raise JarsMissing(
            f"Maven could not fetch {artifact}: {reason[1] if reason else 'for an unknown reason'}"
        )


def _maven() -> str:
    found = which("mvn")
    if found is None:
        raise JarsMissing(
            "fetching jars needs Maven: install it (Debian's package is maven), or copy these"
            f" into the directory by hand: {', '.join(JARS)}"
        )
    return found


def _run(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command, capture_output=True, text=True, timeout=_FETCH_S_MAX, check=False
    )
