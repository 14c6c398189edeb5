"""`headrace pipelines` as a program that gets a signal to end while Spark starts.

The Spark that it starts is a program that does nothing: so it never starts any further.
"""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from headrace.pipelines.running.state.folders import PipelineState
from tests.builders.declared_pipelines import write_folder
from tests.processes.nodes import eventually

pytest.importorskip("pyspark")

TABLE = "CREATE STREAMING TABLE raw.x AS SELECT * FROM STREAM(sources.orders);"
CALLED_OFF = "stopped before Spark had started: nothing was read or written\n"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A home of Spark and one of Java, whose programs note their process."""
    programs = {
        "spark/bin/spark-submit": f"echo $$ > {tmp_path}/jvm; exec sleep 600",
        "java/bin/java": "echo 'openjdk version \"17.0.1\"'",
    }
    for name, text in programs.items():
        program = tmp_path / name
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o700)
    homes = {"SPARK_HOME": str(tmp_path / "spark"), "JAVA_HOME": str(tmp_path / "java")}
    return {**os.environ, **homes}


@pytest.mark.parametrize(
    ("command", "number", "code", "output", "errors"),
    [
        (["run"], signal.SIGTERM, 0, CALLED_OFF, ""),
        (["check", "--offline"], signal.SIGINT, 130, "", f"headrace: {CALLED_OFF}"),
    ],
)
def test_a_command_that_is_stopped_while_spark_starts_reports_it_and_ends(
    command: list[str],
    number: signal.Signals,
    code: int,
    output: str,
    errors: str,
    tmp_path: Path,
    environment: dict[str, str],
) -> None:
    """It does not wait until Spark has started, and leaves neither a JVM nor a lock."""
    folder = write_folder(tmp_path, {"a.sql": TABLE})
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace.cli.main", "pipelines", *command, str(folder)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    jvm = tmp_path / "jvm"
    try:
        launched = int(eventually(lambda: jvm.read_text() if jvm.exists() else ""))
        process.send_signal(number)
        reported = process.communicate(timeout=60)
    finally:
        process.kill()
        with suppress(FileNotFoundError, ProcessLookupError):
            os.kill(int(jvm.read_text()), signal.SIGKILL)
        process.communicate(timeout=60)
    stopping = "starting Spark (about 10 seconds) ...\n\nstopping the start of Spark ...\n"
    assert (process.returncode, *reported) == (code, output, stopping + errors)
    assert not Path(f"/proc/{launched}").exists()
    assert not PipelineState.of(folder / "lake", "shop").is_held()
