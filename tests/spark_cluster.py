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
from pathlib import Path

import pyspark

HOST = "127.0.0.1"
SPARK_HOME = Path(pyspark.__file__).parent
START_S_MAX = 90.0
STOP_S_MAX = 20.0


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
        [python, "-c", "import headrace"], cwd=directory, stderr=subprocess.DEVNULL, check=False
    )
    assert found.returncode != 0, "headrace must not be there"
    return python


@contextmanager
def standalone_cluster(directory: Path, workers: int = 2) -> Iterator[str]:
    """A master and workers of one core each; yields the master's address."""
    port = free_port()
    address = f"spark://{HOST}:{port}"
    deploy = "org.apache.spark.deploy"
    with ExitStack() as stack:
        master = [f"{deploy}.master.Master", *("--host", HOST), *("--port", str(port))]
        stack.enter_context(
            running(directory, "master", [*master, "--webui-port", "0"], "New state: ALIVE")
        )
        worker = [f"{deploy}.worker.Worker", *("--host", HOST), *("--cores", "1")]
        for number in range(workers):
            name = f"worker-{number}"
            place = ["--work-dir", str(directory / name), "--memory", "1g", "--webui-port", "0"]
            stack.enter_context(
                running(directory, name, [*worker, *place, address], "Successfully registered")
            )
        yield address


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
    with running(directory, "connect", command, "Spark Connect server started", environment):
        yield f"sc://{HOST}:{port}"


@contextmanager
def running(
    directory: Path,
    name: str,
    command: Sequence[str],
    ready: str,
    environment: Mapping[str, str] | None = None,
) -> Iterator[None]:
    """One of Spark's programs, from when its log says that it is ready."""
    directory.mkdir(parents=True, exist_ok=True)
    log = directory / f"{name}.log"
    variables = {
        **os.environ,
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": HOST,
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
        deadline = time.monotonic() + START_S_MAX
        while ready not in log.read_text(errors="replace"):
            assert process.poll() is None, f"{name} ended:\n{log.read_text()[-3000:]}"
            assert time.monotonic() < deadline, f"{name} is not ready:\n{log.read_text()[-3000:]}"
            time.sleep(0.1)
        yield
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
