"""The jars of Spark's stock Kafka connector and of its Avro reader, fetched through Maven.

The newest ones on Maven Central are older than Spark, and the description of one that the connector
depends on is missing there, so that no tool resolves the set: these versions work together.
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
"""What `format("kafka")` needs on Spark 4.3."""
AVRO = "org.apache.spark:spark-avro_2.13:4.1.1"
"""What `format("avro")` needs, by which Spark reads Avro files, captured ones among them."""
JARS = (*CONNECTOR, AVRO)

_FETCH_S_MAX = 300.0
_ERROR = re.compile(r"^\[ERROR\] (.+)$", re.MULTILINE)

Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


class JarsMissing(HeadraceError):
    """The jars cannot be fetched; the message says why."""


def fetch_jars(directory: Path, said: Callable[[str], None], run: Run | None = None) -> list[Path]:
    """Put the jars into a directory; those that are there already are not fetched."""
    directory.mkdir(parents=True, exist_ok=True)
    for artifact in JARS:
        if not jar_of(directory, artifact).exists():
            said(artifact)
            _fetch(artifact, directory, run or _run)
    return jars_in(directory)


def jars_in(directory: Path) -> list[Path]:
    """The jars in a directory; `JarsMissing` names those that are not there."""
    jars = [jar_of(directory, artifact) for artifact in JARS]
    missing = [jar.name for jar in jars if not jar.exists()]
    if missing:
        raise JarsMissing(
            f"{directory} has no {', '.join(missing)}: `headrace spark jars {directory}` fetches"
            " them"
        )
    return [jar.resolve() for jar in jars]


def spark_jars(jars: Sequence[Path]) -> str:
    """The value of `spark.jars`."""
    return ",".join(map(str, jars))


def jar_of(directory: Path, artifact: str) -> Path:
    """Where an artifact's jar is, or will be."""
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
            f"{artifact} did not come within {_FETCH_S_MAX:.0f} s; is Maven Central reachable?"
        ) from None
    if done.returncode or not jar_of(directory, artifact).exists():
        reason = _ERROR.search(done.stdout + done.stderr)
        raise JarsMissing(
            f"Maven could not fetch {artifact}: {reason[1] if reason else 'it does not say why'}"
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
