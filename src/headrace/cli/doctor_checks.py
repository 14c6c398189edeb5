"""Checks of a machine and a cluster: pure judgements over collected facts.

A failure loses data or stops the broker; a warning causes trouble under load or later. Each
finding names the fact and the change to make.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum

import msgspec

from headrace.cli import file_systems
from headrace.cli.output import size_text
from headrace.runtime.machine import DirectoryFacts, MachineFacts

OPEN_FILES_WANTED = 128_000
_OPEN_FILES_NEEDED = 1024
_BUFFER_WANTED = 1 << 20
_BACKLOG_WANTED = 128
_SWAPPINESS_WANTED = 10
_MEMORY_WANTED = 512 << 20
_FREE_NEEDED = 512 << 20
_CLOCK_JUMP_MS_MAX = 50
_BUILT_MS = 1_735_689_600_000  # The year 2025: an earlier clock is wrong.

_TOPICS_MANY = 100
_TOPIC_SMALL_BYTES = 1 << 20
_PARTITIONS_PER_BROKER_MAX = 4000


class Verdict(StrEnum):
    """Severity of a finding."""

    OK = "ok"
    WARNING = "warning"
    FAIL = "fail"


class Finding(msgspec.Struct, frozen=True):
    """Outcome of one check."""

    check: str
    verdict: Verdict
    found: str
    advice: str = ""


class TopicFacts(msgspec.Struct, frozen=True):
    """A topic of a running cluster, summed over its partitions and replicas."""

    name: str
    partitions: int
    size_bytes: int


class ClusterFacts(msgspec.Struct, frozen=True):
    """Facts about a running cluster."""

    brokers: int
    topics: tuple[TopicFacts, ...]
    offline_directories: tuple[str, ...] = ()


def examine(machine: MachineFacts) -> list[Finding]:
    """Run every check of the machine, then of each directory."""
    findings = [check(machine) for check in _MACHINE_CHECKS]
    for directory in machine.directories:
        findings += examine_directory(directory)
    findings += check_devices(machine.directories)
    return findings


def examine_directory(directory: DirectoryFacts) -> list[Finding]:
    return [check(directory) for check in _DIRECTORY_CHECKS]


def examine_cluster(cluster: ClusterFacts) -> list[Finding]:
    """Run the checks that need a running cluster."""
    return [check_topics(cluster), check_partitions(cluster), check_offline(cluster)]


def has_failed(findings: Iterable[Finding]) -> bool:
    return any(finding.verdict is Verdict.FAIL for finding in findings)


def check_python(machine: MachineFacts) -> Finding:
    version = ".".join(map(str, machine.python))
    if machine.python < (3, 11, 0):
        return _fail("python", version, "install Python 3.11 or newer")
    if not machine.has_bytecode:
        return _warn(
            "python",
            f"{version}, which compiles every module at each start",
            "for faster starts unset PYTHONDONTWRITEBYTECODE, or run `python -m compileall` on it",
        )
    return _ok("python", version)


def check_open_files(machine: MachineFacts) -> Finding:
    """Check the limit of file descriptors: each connection and each open segment needs one."""
    soft, hard = machine.open_files_soft, machine.open_files_hard
    found = f"{_count(soft)}, may be raised to {_count(hard)}" if hard > soft else _count(soft)
    if soft >= OPEN_FILES_WANTED:
        return _ok("open files", found)
    unit = f"set LimitNOFILE={OPEN_FILES_WANTED} in the service's unit"
    shell = f"run `ulimit -n {OPEN_FILES_WANTED}` before the start"
    advice = f"{shell}, or {unit}" if hard >= OPEN_FILES_WANTED else f"{unit} or in limits.conf"
    verdict = Verdict.FAIL if soft < _OPEN_FILES_NEEDED else Verdict.WARNING
    return Finding("open files", verdict, found, advice)


def check_socket_buffers(machine: MachineFacts) -> Finding:
    """Check the kernel's maximum socket buffers: larger requests are reduced silently."""
    receive, send = machine.receive_buffer_max, machine.send_buffer_max
    if receive is None or send is None:
        return _ok("socket buffers", "not reported by this system")
    found = f"at most {size_text(receive)} for receiving, {size_text(send)} for sending"
    if min(receive, send) >= _BUFFER_WANTED:
        return _ok("socket buffers", found)
    return _warn(
        "socket buffers",
        found,
        "enough in one data center; for distant clients run `sysctl -w net.core.rmem_max=2097152 "
        "net.core.wmem_max=2097152` and raise socket.receive.buffer.bytes and "
        "socket.send.buffer.bytes",
    )


def check_backlog(machine: MachineFacts) -> Finding:
    backlog = machine.listen_backlog_max
    if backlog is None or backlog >= _BACKLOG_WANTED:
        return _ok(
            "listen backlog", "not reported by this system" if backlog is None else str(backlog)
        )
    return _warn(
        "listen backlog",
        str(backlog),
        "simultaneous connections beyond this are refused; run `sysctl -w net.core.somaxconn=1024`",
    )


def check_memory(machine: MachineFacts) -> Finding:
    """Check available memory: the kernel uses it to cache the logs."""
    available = machine.memory_available_bytes
    if available is None:
        return _ok("memory", "not reported by this system")
    total = size_text(machine.memory_bytes or available)
    found = f"{size_text(available)} available of {total}"
    if available >= _MEMORY_WANTED:
        return _ok("memory", found)
    return _warn("memory", found, "free memory: the logs are served from the page cache")


def check_swap(machine: MachineFacts) -> Finding:
    swap, swappiness = machine.swap_bytes, machine.swappiness
    if not swap or swappiness is None:
        return _ok("swap", "none" if swap == 0 else "not reported by this system")
    found = f"{size_text(swap)}, swappiness {swappiness}"
    if swappiness <= _SWAPPINESS_WANTED:
        return _ok("swap", found)
    return _warn(
        "swap",
        found,
        "the kernel may swap the broker out to cache more of its logs; run "
        "`sysctl -w vm.swappiness=1`",
    )


def check_clock(machine: MachineFacts) -> Finding:
    """Check the clock: timestamps, retention and the order of events depend on it."""
    if machine.now_ms < _BUILT_MS:
        return _fail(
            "clock", "years behind", "set the clock: retention would delete the wrong records"
        )
    if machine.clock_jump_ms > _CLOCK_JUMP_MS_MAX:
        return _warn(
            "clock",
            f"jumped by {machine.clock_jump_ms:.0f} ms while watched",
            "configure the time service to slew the clock instead of stepping it",
        )
    if machine.clock_is_synchronized is False:
        return _warn(
            "clock",
            "not synchronized according to the kernel",
            "run a time service such as chrony or systemd-timesyncd; for containers, on the host",
        )
    known = machine.clock_is_synchronized is not None
    return _ok("clock", "synchronized" if known else "steady")


def check_access(directory: DirectoryFacts) -> Finding:
    name = _about("access", directory)
    if directory.is_read_only:
        return _fail(name, "mounted read-only", "mount it writable or choose another --data")
    if not directory.is_writable:
        return _fail(name, "not writable for this user", "change its owner or choose another")
    return _ok(name, "writable" if directory.exists else "created at the first start")


def check_file_system(directory: DirectoryFacts) -> Finding:
    name, kind = _about("file system", directory), directory.file_system
    if kind is None:
        return _ok(name, "not reported by this system")
    if file_systems.is_good(kind):
        return _ok(name, kind)
    if file_systems.is_shared(kind):
        return _fail(name, f"{kind}, shared or remote", file_systems.SHARED_ADVICE)
    if file_systems.is_lost_at_restart(kind):
        return _warn(
            name,
            f"{kind}, lost at a restart of the machine or container",
            "sufficient for tests; use a disk with ext4 or xfs for data that matters",
        )
    return _warn(name, kind, "works, but Kafka's guarantees are tested on ext4 and xfs")


def check_space(directory: DirectoryFacts) -> Finding:
    name, free, total = _about("disk space", directory), directory.free_bytes, directory.total_bytes
    share = free / total if total else 1.0
    found = f"{size_text(free)} free of {size_text(total)} ({share:.0%})"
    if free < _FREE_NEEDED or share < 0.02:
        return _fail(name, found, "free space, or lower retention.ms and retention.bytes")
    if share < 0.10:
        return _warn(name, found, "produce requests fail on a full disk; plan for more space")
    return _ok(name, found)


def check_inodes(directory: DirectoryFacts) -> Finding:
    """Check free inodes: each segment needs at least three files."""
    name, free, total = _about("inodes", directory), directory.free_inodes, directory.total_inodes
    if not total:
        return _ok(name, "without a limit")
    share = free / total
    found = f"{_count(free)} free of {_count(total)} ({share:.0%})"
    advice = "files cannot be created without inodes; delete small files or use larger segments"
    if share < 0.01:
        return _fail(name, found, advice)
    return _warn(name, found, advice) if share < 0.05 else _ok(name, found)


def check_devices(directories: Iterable[DirectoryFacts]) -> Iterator[Finding]:
    """Check that several log directories are on several disks."""
    by_device: dict[int, list[str]] = {}
    for directory in directories:
        by_device.setdefault(directory.device, []).append(directory.path)
    for paths in by_device.values():
        if len(paths) > 1:
            yield _warn(
                "log directories",
                f"{', '.join(paths)} are on one device",
                "use one disk per directory: a failing disk then affects only its partitions",
            )


def check_topics(cluster: ClusterFacts) -> Finding:
    """Check for many small topics: a few large topics work better."""
    topics = [topic for topic in cluster.topics if not topic.name.startswith("__")]
    small = [topic for topic in topics if topic.size_bytes < _TOPIC_SMALL_BYTES]
    found = f"{_count(len(topics))} topics, {_count(len(small))} of them under 1 MiB"
    if len(topics) < _TOPICS_MANY or len(small) * 2 <= len(topics):
        return _ok("topics", found)
    return _warn(
        "topics",
        found,
        "every partition costs files, memory and a place in each request: put related records "
        "into one topic and tell them apart by key or header",
    )


def check_partitions(cluster: ClusterFacts) -> Finding:
    partitions = sum(topic.partitions for topic in cluster.topics)
    per_broker = partitions // max(cluster.brokers, 1)
    found = f"{_count(partitions)} on {cluster.brokers} brokers"
    if per_broker <= _PARTITIONS_PER_BROKER_MAX:
        return _ok("partitions", found)
    return _warn(
        "partitions",
        found,
        f"more than {_count(_PARTITIONS_PER_BROKER_MAX)} per broker make starts and failovers "
        "slow: use fewer partitions or more brokers",
    )


def check_offline(cluster: ClusterFacts) -> Finding:
    offline = cluster.offline_directories
    if not offline:
        return _ok("log directories", "all online")
    return _fail(
        "log directories",
        f"offline: {', '.join(offline)}",
        "find the disk's error in the broker's log, repair the disk and restart",
    )


_MACHINE_CHECKS: tuple[Callable[[MachineFacts], Finding], ...] = (
    check_python,
    check_open_files,
    check_socket_buffers,
    check_backlog,
    check_memory,
    check_swap,
    check_clock,
)
_DIRECTORY_CHECKS: tuple[Callable[[DirectoryFacts], Finding], ...] = (
    check_access,
    check_file_system,
    check_space,
    check_inodes,
)


def _ok(check: str, found: str) -> Finding:
    return Finding(check, Verdict.OK, found)


def _warn(check: str, found: str, advice: str) -> Finding:
    return Finding(check, Verdict.WARNING, found, advice)


def _fail(check: str, found: str, advice: str) -> Finding:
    return Finding(check, Verdict.FAIL, found, advice)


def _about(check: str, directory: DirectoryFacts) -> str:
    return f"{check} of {directory.path}"


def _count(number: int) -> str:
    return "unlimited" if number == sys.maxsize else f"{number:,}"
