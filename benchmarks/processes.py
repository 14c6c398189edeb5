"""The kernel's figures of a process: CPU time used and memory held."""

import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time of all threads since the process began."""
    # The name in parentheses may hold anything, so the fields are counted from behind it.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def resident_megabytes(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise LookupError(f"no VmRSS of process {pid}")


def settle(pid: int) -> None:
    """Wait, for a bounded time, until a process has finished its earlier work."""
    for _ in range(40):
        before = cpu_seconds(pid)
        time.sleep(0.5)
        if cpu_seconds(pid) - before <= 0.02:
            return


class CpuMeter:
    """Measures a process's CPU time over a `with` block, in `.seconds`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.seconds = 0.0

    def __enter__(self) -> Self:
        self.began = cpu_seconds(self.pid)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.seconds = cpu_seconds(self.pid) - self.began
