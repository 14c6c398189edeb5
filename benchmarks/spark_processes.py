"""Spark's processes, the JVM and the Pythons of its workers, and the CPU time they used."""

import os
from pathlib import Path

from benchmarks.processes import cpu_seconds


def spark_processes() -> list[int]:
    """The JVM and all that it started; this process itself only orders."""
    parents: dict[int, int] = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                fields = (path / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            parents[int(path.name)] = int(fields[1])
    found = {os.getpid()}
    while True:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        if not more:
            break
        found |= more
    return sorted(found - {os.getpid()})


def spark_cpu_seconds() -> float:
    """Processor time so far of all that Spark runs in; the broker is not among it."""
    total = 0.0
    for pid in spark_processes():
        try:
            if "headrace.cli.main" not in command_of(pid):
                total += cpu_seconds(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total


def worker_megabytes() -> float:
    """The largest that a living Python worker has ever been."""
    largest = 0.0
    for pid in spark_processes():
        try:
            if not is_python_of_spark(command_of(pid)):
                continue
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    largest = max(largest, int(line.split()[1]) / 1024)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return largest


def is_python_of_spark(command: str) -> bool:
    """Return whether a command line is a worker's: Spark's own, or a fork's with its server's."""
    is_own = command.rstrip().endswith("pyspark.worker") and "python_stub.py" not in command
    return is_own or "headrace.spark.launching.fork_server" in command


def command_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
