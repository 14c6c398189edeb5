"""The Spark session of pipelines, and the log that its output goes to."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.pipelines.model import Pipeline
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.running.state.folders import state_of
from headrace.spark.connect import is_connect_url
from headrace.spark.launching.cancellation import cancelled_by_signals
from headrace.spark.launching.class_archive import DRIVER_OPTIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG_BYTES_MAX = 10 << 20
_CANCELLED = b"\nstopping the start of Spark ...\n"
_ONE_COMPILER = "-XX:TieredStopAtLevel=1"
"""A dry run ends before the optimizing compiler pays off; it takes half of the start-up CPU."""

Announce = Callable[[], None]


def announce_nothing() -> None:
    """The default if no start is announced."""


def _never() -> bool:
    return False


@contextmanager
def session_for(
    pipelines: Sequence[Pipeline],
    given: "SparkSession | None",
    starting: Announce = announce_nothing,
    is_stopped: Callable[[], bool] = _never,
) -> Iterator["SparkSession"]:
    """Yield the given session, or start one and stop it afterwards.

    Spark's errors become one sentence with the path of the log, which has the details.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from headrace.pipelines.running.driving.restarts import JVM_GONE, one_sentence

    try:
        if given is None:
            starting()
        session = given or open_spark(pipelines, is_stopped)
        try:
            yield session
        finally:
            # A Spark that got the same signal as this process cannot be stopped any more.
            with suppress(Py4JError, OSError):
                if given is None:
                    session.stop()
    except (PySparkException, Py4JError, *JVM_GONE) as error:
        log = state_of(pipelines[0]).spark_log
        raise PipelineError(f"Spark failed: {one_sentence(error)}; see {log}") from error


def open_spark(
    pipelines: Sequence[Pipeline],
    is_stopped: Callable[[], bool] = _never,
    *,
    is_dry_run: bool = False,
) -> "SparkSession":
    """Start one session for all pipelines; a start costs more than most of their work.

    Ctrl-C cancels the start by `StartCancelled`.
    """
    from headrace.spark.java import find_java
    from headrace.spark.session import open_session

    settings: dict[str, str] = {}
    for pipeline in pipelines:
        settings |= pipeline.settings.spark
    if is_dry_run:
        settings |= dry_run_settings(settings)
    name = ", ".join(pipeline.settings.name for pipeline in pipelines)
    master = pipelines[0].settings.master
    with (
        spark_log(state_of(pipelines[0]).spark_log) as terminal,
        cancelled_by_signals(partial(os.write, terminal, _CANCELLED), is_stopped),
    ):
        if not is_connect_url(master):
            find_java()
        session = open_session(name, master, settings)
    silence_accumulators()
    return session


def silence_accumulators() -> None:
    """Keep PySpark from printing a trace if the JVM is lost, which the run reports in one line."""
    from pyspark import accumulators

    # PySpark has no setting for it. Older versions lack the server on a Unix socket.
    for name in ("AccumulatorTCPServer", "AccumulatorUnixServer"):
        if server := getattr(accumulators, name, None):
            server.handle_error = _ignore_error


def _ignore_error(self: object, request: object, client_address: object) -> None:
    pass


def dry_run_settings(given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a session that only plans; the user's own options win."""
    return {DRIVER_OPTIONS: f"{_ONE_COMPILER} {given.get(DRIVER_OPTIONS, '')}".rstrip()}


@contextmanager
def spark_log(path: Path) -> Iterator[int]:
    """Redirect the output of a JVM that starts in this block, and of its workers, to a file.

    Spark writes pages of traces even for errors that are caught and reported in one line. The
    block gets the descriptor of the terminal; afterwards this process writes to it as before.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > _LOG_BYTES_MAX:
        path.replace(path.with_suffix(".log.1"))
    sys.stderr.flush()
    before = os.dup(2)
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 2)
    try:
        yield before
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(log)
