"""Spark sessions with the settings that pipelines need, wherever the cluster is."""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

from headrace.spark.connect import is_connect_url
from headrace.spark.pools import ALLOCATIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.spark.fork_server import ForkServer

LOCAL = "local[*]"

SECRET_NAMES = (
    r"(?i)secret|passw(or)?d|token|credential|(access|account|private)[.]?key|jaas|user[.]info"
    r"|ssl[.]key|keystore[.]key"
)
"""The names of options and settings whose values are nobody's business: Spark's own, and what
Kafka's clients, registries and stores call them besides."""

SETTINGS: dict[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # What Spark leaves out of logs, plans and event logs, by the names of options.
    "spark.redaction.regex": SECRET_NAMES,
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # Over TCP each micro-batch waits 40 ms for an acknowledgement that is late on purpose.
    "spark.python.unix.domain.socket.enabled": "true",
    # Streams and batch runs share executors without one starving the other.
    "spark.scheduler.mode": "FAIR",
    "spark.scheduler.allocation.file": str(ALLOCATIONS),
}
"""What every session of ours has unless the caller says otherwise."""

ON_THIS_MACHINE = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.python.daemon.module": "headrace.spark.daemon",
}
"""What a local session has besides."""

CHECKPOINT_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
"""Which class of Spark writes the files of checkpoints."""

PYTHON = "spark.pyspark.python"
"""Spark's setting for the Python of the executors; ours to obey, as only spark-submit does."""

_EXECUTOR_ENVIRONMENT = "spark.executorEnv."
_YARN = "yarn"
"""Where Spark sends the zip of PySpark that is in its home, and ends if there is none."""
_TASK_ATTEMPTS = 4
_SET_WHILE_RUNNING = "spark.sql."
_SERVER_RETRIES, _SERVER_BACKOFF_MS_MAX = 8, 5_000


def open_session(
    name: str, master: str = LOCAL, settings: Mapping[str, str] | None = None
) -> "SparkSession":
    """A new session, or the one that this process has already.

    `master` is `local[N]`, `spark://host:port`, `k8s://https://host:port`, or `sc://host:port` for
    a Spark Connect server. Anything but a local one is sent headrace itself. The workers run the
    Python that runs this, not the first `python3` on their path, unless `spark.pyspark.python`
    names another.
    """
    from headrace.spark.class_archive import DRIVER_OPTIONS, java_options
    from headrace.spark.home import compiled_modules, pyspark_zips
    from headrace.spark.shipping import on_path_of_children, packed, ship

    wanted = {**SETTINGS, **(settings or {})}
    if is_connect_url(master):
        session = _connect(name, master, wanted)
        ship(session, packed())
        return session
    with nullcontext() if master.startswith(_YARN) else compiled_modules() as home:
        if home is not None:
            wanted[DRIVER_OPTIONS] = f"{java_options(home)} {wanted.get(DRIVER_OPTIONS, '')}"
        lacks_zips = home is not None and _workers_python(wanted) != sys.executable
        zips = pyspark_zips() if lacks_zips else []
        if master.startswith("local"):
            with on_path_of_children(*zips):
                return _start_here(name, master, wanted)
        archive = packed()
        with on_path_of_children(archive, *zips):
            session = _start(name, master, wanted)
    ship(session, archive)
    return session


def _start_here(name: str, master: str, wanted: Mapping[str, str]) -> "SparkSession":
    """A session whose executors are in its driver's JVM."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with _forked(wanted):
        session = _start(name, with_retries(master), {**ON_THIS_MACHINE, **wanted})
    if not session.conf.get(CHECKPOINT_MANAGER, ""):
        _avoid_link_checks(session)
    return session


def _avoid_link_checks(session: "SparkSession") -> None:
    """Let checkpoints be written without asking a process about each of their files.

    Hadoop does so for every link that a file might be, where it lacks its native library: 24 times
    for a stream with one batch, a quarter of its time. A Spark that has this manager elsewhere, or
    not at all, keeps to its own.
    """
    from py4j.protocol import Py4JJavaError

    place = "org.apache.spark.sql.execution.streaming.checkpointing"
    manager = f"{place}.FileSystemBasedCheckpointFileManager"
    jvm: Any = session.sparkContext._jvm
    with suppress(Py4JJavaError):
        jvm.java.lang.Class.forName(manager)
        session.conf.set(CHECKPOINT_MANAGER, manager)


def with_retries(master: str) -> str:
    """A local master whose tasks are tried as often as a cluster's, not once.

    Otherwise a Python worker that has died ends the query, and each dead one ends it once more.
    """
    found = re.fullmatch(r"local\[([^,\]]+)\]", master)
    return master if found is None else f"local[{found[1]},{_TASK_ATTEMPTS}]"


def _workers_python(settings: Mapping[str, str]) -> str:
    """The Python of the workers, and of what Spark runs beside the driver."""
    return os.environ.get("PYSPARK_PYTHON") or settings.get(PYTHON, sys.executable)


@contextmanager
def _forked(settings: Mapping[str, str]) -> Iterator[None]:
    """Let a session that is started meanwhile run its Pythons by forks of one that is ready."""
    before = {
        "PYSPARK_PYTHON": _workers_python(settings),
        "PYSPARK_DRIVER_PYTHON": os.environ.get("PYSPARK_DRIVER_PYTHON", sys.executable),
    }
    server = _server_for(settings)
    if server is not None:
        # By the second Spark plans, and reads from sources.
        os.environ.update(dict.fromkeys(before, server.program))
    try:
        yield
    finally:
        os.environ.update(before)


def _server_for(settings: Mapping[str, str]) -> "ForkServer | None":
    """Who forks for a session; None where forks would not be as what Spark starts itself.

    Only on Linux: elsewhere a fork may not use what was loaded before it. What executors are told
    in their environment may count when Python or a library is loaded. A JVM that is there already
    knows nothing of a server that is not.
    """
    from pyspark import SparkContext

    from headrace.spark.fork_server import fork_server

    is_own = bool(sys.executable) and _workers_python(settings) == sys.executable
    is_told_more = any(name.startswith(_EXECUTOR_ENVIRONMENT) for name in settings)
    is_late = SparkContext._gateway is not None and not fork_server.cache_info().currsize
    if sys.platform != "linux" or not is_own or is_told_more or is_late:
        return None
    return fork_server()


def _start(name: str, master: str, settings: Mapping[str, str]) -> "SparkSession":
    """A session with its driver in this process."""
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
    """Start the JVM before the session where that would show secrets to all of this machine.

    A session hands its settings to the JVM that it starts on the command line, which every user
    can read. One that is there is told them over its own socket.
    """
    if not any(is_secret(name) for name in settings):
        return
    from pyspark import SparkConf, SparkContext

    told = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        if not is_secret(name):
            told.set(name, value)
    SparkContext._ensure_initialized(conf=told)


def is_secret(name: str) -> bool:
    """Whether the value of a setting must not be seen."""
    return re.search(SECRET_NAMES, name) is not None


def _connect(name: str, server: str, settings: Mapping[str, str]) -> "SparkSession":
    """A session on a server; what only its own start could set is not asked for."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name).remote(server)
    for key, value in settings.items():
        if key.startswith(_SET_WHILE_RUNNING):
            builder = builder.config(key, value)
    session = builder.getOrCreate()
    _be_impatient(session)
    return session


def _be_impatient(session: "SparkSession") -> None:
    """Let a call to a server that is gone fail in half a minute; by default it waits for ten."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    policy = DefaultPolicy(max_retries=_SERVER_RETRIES, max_backoff=_SERVER_BACKOFF_MS_MAX)
    session.client.set_retry_policies([policy])
