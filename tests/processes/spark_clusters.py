"""Clusters of Spark on this machine, from the pip-installed PySpark, for tests."""

import os
import socket
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

HOST = "127.0.0.1"
SPARK_HOME = Path(pyspark.__file__).parent
START_S_MAX = 90.0
STOP_S_MAX = 20.0
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
ENVIRONMENT = {"SPARK_LOCAL_IP": HOST}
"""For clusters and for the drivers that use them."""


def python_without_headrace(directory: Path) -> Path:
    """A Python with all packages of this one but headrace.

    A .pth file in a directory that a .pth file adds is not read, and headrace is installed by one.
    """
    venv.create(directory, with_pip=False)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    place = directory / "lib" / version / "site-packages" / "packages.pth"
    place.write_text(sysconfig.get_path("purelib") + "\n")
    python = directory / "bin" / "python"
    found = subprocess.run(
        [python, "-c", "import headrace"],
        cwd=directory,
        env=own_environment(),
        stderr=subprocess.DEVNULL,
        check=False,
    )
    assert found.returncode != 0, "headrace must not be there"
    return python


def own_environment() -> dict[str, str]:
    """The environment of this process without `PYTHONPATH`, which leads a Python to headrace."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


@dataclass(frozen=True, slots=True)
class Cluster:
    """A standalone cluster of Spark: its address, and its workers by their process ids."""

    master: str
    workers: tuple[int, ...]

    def executors(self) -> set[int]:
        """The process ids of the executors that run now, which are children of the workers.

        A worker may have another child: a shell of the script that became the worker, which has
        ended and stays a zombie.
        """
        return {
            pid
            for pid, (parent, command) in processes().items()
            if parent in self.workers and EXECUTOR in command
        }

    def busy_executors(self) -> set[int]:
        """The executors that have begun to run Python."""
        return self.executors() & {parent for parent, _ in processes().values()}


def processes() -> dict[int, tuple[int, str]]:
    """The parent and the command of each process."""
    table = subprocess.run(
        ["ps", "-e", "-ww", "-o", "pid=,ppid=,args="], capture_output=True, check=True, text=True
    )
    rows = (line.split(maxsplit=2) for line in table.stdout.splitlines())
    return {int(pid): (int(parent), command) for pid, parent, command in rows}


@contextmanager
def standalone_cluster(directory: Path, workers: int = 2) -> Iterator[Cluster]:
    """A master and workers of one core each."""
    port = free_port()
    address = f"spark://{HOST}:{port}"
    deploy = "org.apache.spark.deploy"
    with ExitStack() as stack:
        command = [f"{deploy}.master.Master", *("--host", HOST), *("--port", str(port))]
        master = stack.enter_context(
            running(directory, "master", [*command, "--webui-port", "0"], "New state: ALIVE")
        )
        master.await_ready()
        started = []
        for number in range(workers):
            name = f"worker-{number}"
            place = ["--work-dir", str(directory / name), "--memory", "1g", "--webui-port", "0"]
            command = [f"{deploy}.worker.Worker", *("--host", HOST), *("--cores", "1"), *place]
            started.append(
                stack.enter_context(
                    running(directory, name, [*command, address], "Successfully registered")
                )
            )
        for worker in started:
            worker.await_ready()
        yield Cluster(address, tuple(worker.process.pid for worker in started))


@contextmanager
def connect_server(directory: Path, python: Path) -> Iterator[str]:
    """A Spark Connect server whose driver and executors run the given Python."""
    port = free_port()
    command = [
        "org.apache.spark.deploy.SparkSubmit",
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        *("--master", "local[2]"),
        *("--conf", f"spark.connect.grpc.binding.address={HOST}"),
        *("--conf", f"spark.connect.grpc.binding.port={port}"),
        *("--conf", f"spark.driver.host={HOST}"),
        *("--conf", f"spark.driver.bindAddress={HOST}"),
        *("--conf", "spark.ui.enabled=false"),
        *("--conf", f"spark.sql.warehouse.dir={directory / 'warehouse'}"),
        "spark-internal",
    ]
    environment = {"PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python)}
    ready = "Spark Connect server started"
    with running(directory, "connect", command, ready, environment) as server:
        server.await_ready()
        yield f"sc://{HOST}:{port}"


@dataclass(frozen=True, slots=True)
class Program:
    """One of Spark's programs, which logs when it is ready."""

    name: str
    process: "subprocess.Popen[bytes]"
    log: Path
    ready: str

    def await_ready(self) -> None:
        deadline = time.monotonic() + START_S_MAX
        while self.ready not in (text := self.log.read_text(errors="replace")):
            assert self.process.poll() is None, f"{self.name} ended:\n{text[-3000:]}"
            assert time.monotonic() < deadline, f"{self.name} is not ready:\n{text[-3000:]}"
            time.sleep(0.1)


@contextmanager
def running(
    directory: Path,
    name: str,
    command: Sequence[str],
    ready: str,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Program]:
    """One of Spark's programs, from its start; `await_ready` waits until it is of use."""
    directory.mkdir(parents=True, exist_ok=True)
    log = directory / f"{name}.log"
    variables = {
        **own_environment(),
        **ENVIRONMENT,
        "SPARK_HOME": str(SPARK_HOME),
        **(environment or {}),
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [SPARK_HOME / "bin" / "spark-class", *command],
            cwd=directory,
            env=variables,
            stdout=output,
            stderr=output,
        )
    try:
        yield Program(name, process, log, ready)
    finally:
        process.terminate()
        try:
            process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
