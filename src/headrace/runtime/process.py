"""Metrics of this process, under the names of the Prometheus client libraries."""

import os
import resource
from collections.abc import Iterator

from headrace.runtime.exposition import Family, counter, gauge


def process_families() -> Iterator[Family]:
    """CPU, memory, descriptors and start time at each call; empty without /proc."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    yield counter(
        "process_cpu_seconds_total",
        "CPU time that the process used, in user and system mode.",
        usage.ru_utime + usage.ru_stime,
    )
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield gauge("process_max_fds", "Maximum number of open file descriptors.", soft)
    try:
        yield from _proc_families()
    except OSError:
        return


def _proc_families() -> Iterator[Family]:
    page = resource.getpagesize()
    with open("/proc/self/statm", "rb") as file:
        virtual, resident = file.read().split()[:2]
    yield gauge("process_virtual_memory_bytes", "Address space in use.", int(virtual) * page)
    yield gauge("process_resident_memory_bytes", "Memory in use.", int(resident) * page)
    count = len(os.listdir("/proc/self/fd")) - 1  # Listing the directory opens one more.
    yield gauge("process_open_fds", "File descriptors that are open.", count)
    with open("/proc/self/stat", "rb") as file:
        ticks = int(file.read().rpartition(b")")[2].split()[19])
    with open("/proc/stat", "rb") as file:
        boot = next(int(line.split()[1]) for line in file if line.startswith(b"btime"))
    start = boot + ticks / os.sysconf("SC_CLK_TCK")
    yield gauge("process_start_time_seconds", "Start time of the process since 1970.", start)
