"""Facts about this machine: limits, file systems, memory, clocks.

`cli/doctor_checks.py` judges these facts. A fact that this system does not report is None.
"""

import os
import platform
import resource
import sys
import time
from collections.abc import Iterable
from importlib.util import cache_from_source

import msgspec

from headrace.runtime.mounts import file_system_of, read_mounts

_CLOCK_UNSYNCHRONIZED = 5  # The result of adjtimex while the clock is not synchronized.
_TIMEX_BYTES = 512  # Larger than the kernel's structure on any platform.


class DirectoryFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The directory that holds a log directory, or will hold it."""

    path: str
    exists: bool
    is_writable: bool
    file_system: str | None
    is_read_only: bool
    device: int
    total_bytes: int
    free_bytes: int
    total_inodes: int
    free_inodes: int


class MachineFacts(msgspec.Struct, frozen=True, kw_only=True):
    """All facts for the checks."""

    python: tuple[int, int, int]
    has_bytecode: bool
    """False if modules are compiled on their first import."""
    system: str
    cpu_count: int
    open_files_soft: int
    open_files_hard: int
    receive_buffer_max: int | None
    send_buffer_max: int | None
    listen_backlog_max: int | None
    memory_bytes: int | None
    memory_available_bytes: int | None
    swap_bytes: int | None
    swappiness: int | None
    now_ms: int
    clock_is_synchronized: bool | None
    clock_jump_ms: float
    directories: tuple[DirectoryFacts, ...]


def probe_machine(directories: Iterable[str]) -> MachineFacts:
    """Collect all facts; takes about a tenth of a second, for the clocks."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    memory = _memory(_read("/proc/meminfo"))
    mounts = read_mounts()
    return MachineFacts(
        python=sys.version_info[:3],
        has_bytecode=not sys.dont_write_bytecode or _is_compiled(__file__),
        system=f"{platform.system()} {platform.release()}",
        cpu_count=os.cpu_count() or 1,
        open_files_soft=_limit(soft),
        open_files_hard=_limit(hard),
        receive_buffer_max=_number("/proc/sys/net/core/rmem_max"),
        send_buffer_max=_number("/proc/sys/net/core/wmem_max"),
        listen_backlog_max=_number("/proc/sys/net/core/somaxconn"),
        memory_bytes=memory.get("MemTotal"),
        memory_available_bytes=memory.get("MemAvailable"),
        swap_bytes=memory.get("SwapTotal"),
        swappiness=_number("/proc/sys/vm/swappiness"),
        now_ms=time.time_ns() // 1_000_000,
        clock_is_synchronized=_clock_is_synchronized(),
        clock_jump_ms=_clock_jump_ms(),
        directories=tuple(probe_directory(path, mounts) for path in directories),
    )


def probe_directory(path: str, mounts: str) -> DirectoryFacts:
    """The facts of a directory, or of its nearest existing parent."""
    place = os.path.realpath(path)
    exists = os.path.isdir(place)
    while not os.path.isdir(place):
        place = os.path.dirname(place)
    space = os.statvfs(place)
    return DirectoryFacts(
        path=path,
        exists=exists,
        is_writable=os.access(place, os.W_OK | os.X_OK),
        file_system=file_system_of(place, mounts),
        is_read_only=bool(space.f_flag & os.ST_RDONLY),
        device=os.stat(place).st_dev,
        total_bytes=space.f_blocks * space.f_frsize,
        free_bytes=space.f_bavail * space.f_frsize,
        total_inodes=space.f_files,
        free_inodes=space.f_favail,
    )


def _memory(text: str) -> dict[str, int]:
    """Parse lines such as `MemTotal:  16374820 kB` into bytes."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        parts = value.split()
        if parts and parts[0].isdecimal():
            found[name] = int(parts[0]) * (1024 if parts[-1] == "kB" else 1)
    return found


def _clock_is_synchronized() -> bool | None:
    """Read the kernel's status, which covers chrony, ntpd and systemd."""
    import ctypes

    try:
        adjtimex = ctypes.CDLL(None).adjtimex
    except (OSError, AttributeError):
        return None
    state = adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    return None if state < 0 else state != _CLOCK_UNSYNCHRONIZED


def _clock_jump_ms() -> float:
    """The drift between wall clock and monotonic clock within a tenth of a second."""
    wall, monotonic = time.time_ns(), time.monotonic_ns()
    time.sleep(0.1)
    return abs((time.time_ns() - wall) - (time.monotonic_ns() - monotonic)) / 1e6


def _limit(value: int) -> int:
    return sys.maxsize if value == resource.RLIM_INFINITY else value


def _is_compiled(module: str) -> bool:
    """Return whether Python has cached the compiled module."""
    return os.path.exists(cache_from_source(module))


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""


def _number(path: str) -> int | None:
    text = _read(path).strip()
    return int(text) if text.isdecimal() else None
