"""Spark sessions with the settings of pipelines, local or on a cluster."""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from headrace.spark.connect import is_connect, is_connect_url
from headrace.spark.pools import ALLOCATIONS

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headrace.spark.launching.fork_server import ForkServer

LOCAL = "local[*]"

SECRET_NAMES = (
    r"(?i)secret|passw(or)?d|token|credential|(access|account|private)[.]?key|jaas|user[.]info"
    r"|ssl[.]key|keystore[.]key"
)
"""Names of options and settings with secret values: Spark's own, and those of Kafka's clients,
registries and object stores."""

SETTINGS: dict[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # Spark hides the values of such options in logs, plans and event logs.
    "spark.redaction.regex": SECRET_NAMES,
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # Over TCP each micro-batch waits 40 ms for a delayed acknowledgement.
    "spark.python.unix.domain.socket.enabled": "true",
    # Streams and batch runs share executors without one starving the other.
    "spark.scheduler.mode": "FAIR",
    "spark.scheduler.allocation.file": str(ALLOCATIONS),
}
"""Defaults of every session."""

LOCAL_SETTINGS = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
"""Further defaults of local sessions."""

PYTHON = "spark.pyspark.python"
"""The Python of the executors; of Spark's own launchers only spark-submit applies this setting."""

_EXECUTOR_ENVIRONMENT = "spark.executorEnv."
_TASK_ATTEMPTS = 4
_SET_WHILE_RUNNING = "spark.sql."
_SERVER_RETRIES, _SERVER_BACKOFF_MS_MAX = 8, 5_000


def open_session(
    name: str, master: str = LOCAL, settings: Mapping[str, str] | None = None
) -> "SparkSession":
    """Start a session, or return the one of this process.

    `master` is `local[N]`, `spark://host:port`, `k8s://https://host:port`, or `sc://host:port` for
    a Spark Connect server. Remote masters are sent headrace itself. Workers run the Python of this
    process, not the first `python3` on their path, unless `spark.pyspark.python` names another.
    """
    from headrace.spark.launching.class_archive import DRIVER_OPTIONS, java_options
    from headrace.spark.launching.package_zip import on_python_path, temporary_zip

    wanted = {**SETTINGS, **(settings or {})}
    if is_connect_url(master):
        session = _connect(name, master, wanted)
        _send_package(session, temporary_zip())
        return session
    if options := f"{java_options()} {wanted.get(DRIVER_OPTIONS, '')}".strip():
        wanted[DRIVER_OPTIONS] = options
    if master.startswith("local"):
        return _start_local(name, master, wanted)
    archive = temporary_zip()
    with on_python_path(archive):
        session = _start(name, master, wanted)
    _send_package(session, archive)
    return session


def _send_package(session: "SparkSession", archive: "Path") -> None:
    """Send headrace to the session's executors, or to its Spark Connect server.

    Files that a client adds to a server's session reach batch queries and the jobs of batch
    functions. Everything else contains the package in its pickle.

    Sources are registered with each session: a source that Spark discovers uses the driver's Python
    and no zip, so executors would need both installed.
    """
    from headrace.spark.launching.pickled_package import attach_package, with_package
    from headrace.spark.source.source import DefaultSource
    from headrace.spark.tables.source import TableSource

    if is_connect(session):
        attach_package(archive.name, archive.read_bytes())
        session.addArtifact(str(archive), pyfile=True)
    else:
        session.sparkContext.addPyFile(str(archive))
    for source in (DefaultSource, TableSource):
        session.dataSource.register(with_package(source))


def _start_local(name: str, master: str, wanted: Mapping[str, str]) -> "SparkSession":
    """Start a session with its executors in the driver's JVM."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with _forked(wanted):
        return _start(name, with_retries(master), {**LOCAL_SETTINGS, **wanted})


def with_retries(master: str) -> str:
    """Let a local master retry tasks as often as a cluster does.

    By default the first Python worker that dies ends the query.
    """
    found = re.fullmatch(r"local\[([^,\]]+)\]", master)
    return master if found is None else f"local[{found[1]},{_TASK_ATTEMPTS}]"


def _workers_python(settings: Mapping[str, str]) -> str:
    """Return the Python of the workers and of the processes that plan for the driver."""
    return os.environ.get("PYSPARK_PYTHON") or settings.get(PYTHON, sys.executable)


@contextmanager
def _forked(settings: Mapping[str, str]) -> Iterator[None]:
    """Let a session that is started in this context run forks in place of new Python processes."""
    before = {
        "PYSPARK_PYTHON": _workers_python(settings),
        "PYSPARK_DRIVER_PYTHON": os.environ.get("PYSPARK_DRIVER_PYTHON", sys.executable),
    }
    server = _server_for(settings)
    if server is not None:
        # Spark runs tasks by the first, and plans and reads from sources by the second.
        os.environ.update(dict.fromkeys(before, server.program))
    try:
        yield
    finally:
        os.environ.update(before)


def _server_for(settings: Mapping[str, str]) -> "ForkServer | None":
    """Return the fork server for a session; None where forks may differ from new processes.

    Forks are for Linux: on other systems they may not use libraries that were loaded before. They
    are also not used with another Python, or with an environment for executors, which may matter
    when Python or a library is loaded. A running JVM cannot be given a server later.
    """
    from pyspark import SparkContext

    from headrace.spark.launching.fork_server import fork_server

    is_own = bool(sys.executable) and _workers_python(settings) == sys.executable
    has_environment = any(name.startswith(_EXECUTOR_ENVIRONMENT) for name in settings)
    # PySpark has no public way to ask for a JVM whose session was stopped.
    is_late = SparkContext._gateway is not None and not fork_server.cache_info().currsize
    if sys.platform != "linux" or not is_own or has_environment or is_late:
        return None
    return fork_server()


def _start(name: str, master: str, settings: Mapping[str, str]) -> "SparkSession":
    """Start a session with its driver in this process."""
    os.environ["PYSPARK_PYTHON"] = _workers_python(settings)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)

    from pyspark.sql import SparkSession

    wanted = {"spark.app.name": name, "spark.master": master, **settings}
    _start_jvm(wanted)
    builder = SparkSession.builder
    for key, value in wanted.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _start_jvm(settings: Mapping[str, str]) -> None:
    """Start the JVM before the session if there are secret settings.

    A session passes its settings on the command line of the JVM that it starts, which every user of
    the machine can read. A running JVM gets them over its socket.
    """
    if not any(is_secret(name) for name in settings):
        return
    from pyspark import SparkConf, SparkContext

    shown = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        if not is_secret(name):
            shown.set(name, value)
    # PySpark has no public way to start the JVM of a session that is built later.
    SparkContext._ensure_initialized(conf=shown)


def is_secret(name: str) -> bool:
    """Return whether the value of a setting is secret."""
    return re.search(SECRET_NAMES, name) is not None


def _connect(name: str, server: str, settings: Mapping[str, str]) -> "SparkSession":
    """Open a session on a Spark Connect server, with the settings that a running server accepts."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name).remote(server)
    for key, value in settings.items():
        if key.startswith(_SET_WHILE_RUNNING):
            builder = builder.config(key, value)
    session = builder.getOrCreate()
    _set_retry_policy(session)
    return session


def _set_retry_policy(session: "SparkSession") -> None:
    """Let calls to an unreachable server fail after half a minute; the default is ten minutes."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    policy = DefaultPolicy(max_retries=_SERVER_RETRIES, max_backoff=_SERVER_BACKOFF_MS_MAX)
    session.client.set_retry_policies([policy])
