"""The Spark session in which pipelines run, and the log where Spark says what it has to say."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.pipelines.model import Pipeline
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.running.state import state_of
from headrace.spark.class_archive import DRIVER_OPTIONS
from headrace.spark.connect import is_connect_url
from headrace.spark.starting import ended_by_signals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG_BYTES_MAX = 10 << 20
_CALLED_OFF = b"\nstopping the start of Spark ...\n"
_ONE_COMPILER = "-XX:TieredStopAtLevel=1"
"""A dry run is over before the better compiler pays, which takes half of all that it costs."""

Tell = Callable[[], None]


def say_nothing() -> None:
    """Where nobody waits for Spark to start."""


def _never() -> bool:
    """Where nobody can ask for an end but by a signal."""
    return False


@contextmanager
def session_for(
    pipelines: Sequence[Pipeline],
    given: "SparkSession | None",
    starting: Tell = say_nothing,
    is_stopped: Callable[[], bool] = _never,
) -> Iterator["SparkSession"]:
    """The session that was given, or one that is stopped afterwards; its start takes a while.

    What Spark raises meanwhile is told in one line; its own pages are in its log.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from headrace.pipelines.running.restarts import told

    try:
        if given is None:
            starting()
        session = given or open_spark(pipelines, is_stopped)
        try:
            yield session
        finally:
            # A Spark that was ended by the signal that ends us cannot be asked to stop.
            with suppress(Py4JError, OSError):
                if given is None:
                    session.stop()
    except (PySparkException, Py4JError) as error:
        log = state_of(pipelines[0]).spark_log
        raise PipelineError(f"Spark failed: {told(error)}; see {log}") from error


def open_spark(
    pipelines: Sequence[Pipeline],
    is_stopped: Callable[[], bool] = _never,
    *,
    is_dry_run: bool = False,
) -> "SparkSession":
    """One session for all pipelines: starting it takes longer than most of what they do.

    Ctrl-C and its likes do not wait for that: `StartCalledOff`.
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
        ended_by_signals(partial(os.write, terminal, _CALLED_OFF), is_stopped),
    ):
        if not is_connect_url(master):
            find_java()
        return open_session(name, master, settings)


def dry_run_settings(given: Mapping[str, str]) -> dict[str, str]:
    """What a session that only plans has besides; options of the user's come later, and win."""
    return {DRIVER_OPTIONS: f"{_ONE_COMPILER} {given.get(DRIVER_OPTIONS, '')}".rstrip()}


@contextmanager
def spark_log(path: Path) -> Iterator[int]:
    """Let a JVM that is started meanwhile, and its workers, write to a file.

    Spark writes pages of traces also for what is caught and told in one line; a user's terminal is
    no place for them. What this process itself says later goes where it did, and meanwhile by the
    number that one gets.
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
