"""What is good and bad for a broker about a machine: pure judgements over facts.

A failure is what will lose data or stop the broker, a warning what will hurt under load or
later. Each says what was found and what to change.
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
_BUILT_MS = 1_735_689_600_000  # 2025: no clock that is right shows less.

_TOPICS_MANY = 100
_TOPIC_SMALL_BYTES = 1 << 20
_PARTITIONS_PER_BROKER_MAX = 4000


class Verdict(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    FAIL = "fail"


class Finding(msgspec.Struct, frozen=True):
    """One check's outcome."""

    check: str
    verdict: Verdict
    found: str
    advice: str = ""


class TopicFacts(msgspec.Struct, frozen=True):
    """A topic of a running cluster, over all its partitions and replicas."""

    name: str
    partitions: int
    size_bytes: int


class ClusterFacts(msgspec.Struct, frozen=True):
    """What a running cluster holds."""

    brokers: int
    topics: tuple[TopicFacts, ...]
    offline_directories: tuple[str, ...] = ()


def examine(machine: MachineFacts) -> list[Finding]:
    """Every check of the machine, then of each directory."""
    findings = [check(machine) for check in _MACHINE_CHECKS]
    for directory in machine.directories:
        findings += examine_directory(directory)
    findings += check_devices(machine.directories)
    return findings


def examine_directory(directory: DirectoryFacts) -> list[Finding]:
    return [check(directory) for check in _DIRECTORY_CHECKS]


def examine_cluster(cluster: ClusterFacts) -> list[Finding]:
    """Checks that need a running cluster."""
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
            f"{version}, compiles every module at each start",
            "unset PYTHONDONTWRITEBYTECODE, or run `python -m compileall` on it: it starts faster",
        )
    return _ok("python", version)


def check_open_files(machine: MachineFacts) -> Finding:
    """Every connection and every open segment takes a descriptor."""
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
    """The kernel cuts larger buffers to these without a word."""
    receive, send = machine.receive_buffer_max, machine.send_buffer_max
    if receive is None or send is None:
        return _ok("socket buffers", "not told by this system")
    found = f"at most {size_text(receive)} to receive, {size_text(send)} to send"
    if min(receive, send) >= _BUFFER_WANTED:
        return _ok("socket buffers", found)
    return _warn(
        "socket buffers",
        found,
        "fine in one data center; for clients far away run `sysctl -w net.core.rmem_max=2097152 "
        "net.core.wmem_max=2097152` and raise socket.receive.buffer.bytes and "
        "socket.send.buffer.bytes",
    )


def check_backlog(machine: MachineFacts) -> Finding:
    backlog = machine.listen_backlog_max
    if backlog is None or backlog >= _BACKLOG_WANTED:
        return _ok("listen backlog", "not told by this system" if backlog is None else str(backlog))
    return _warn(
        "listen backlog",
        str(backlog),
        "clients that connect all at once are turned away; run `sysctl -w net.core.somaxconn=1024`",
    )


def check_memory(machine: MachineFacts) -> Finding:
    """What the broker leaves free the kernel uses to cache the logs."""
    available = machine.memory_available_bytes
    if available is None:
        return _ok("memory", "not told by this system")
    total = size_text(machine.memory_bytes or available)
    found = f"{size_text(available)} available of {total}"
    if available >= _MEMORY_WANTED:
        return _ok("memory", found)
    return _warn("memory", found, "free some: the logs are served from the page cache")


def check_swap(machine: MachineFacts) -> Finding:
    swap, swappiness = machine.swap_bytes, machine.swappiness
    if not swap or swappiness is None:
        return _ok("swap", "none" if swap == 0 else "not told by this system")
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
    """Timestamps, retention and the order of events between machines hang on it."""
    if machine.now_ms < _BUILT_MS:
        return _fail("clock", "years behind", "set it: retention would delete or keep wrongly")
    if machine.clock_jump_ms > _CLOCK_JUMP_MS_MAX:
        return _warn(
            "clock",
            f"jumped by {machine.clock_jump_ms:.0f} ms while watched",
            "let the time service slew the clock rather than step it",
        )
    if machine.clock_is_synchronized is False:
        return _warn(
            "clock",
            "not synchronized, says the kernel",
            "run a time service such as chrony or systemd-timesyncd; for a container, on its host",
        )
    known = machine.clock_is_synchronized is not None
    return _ok("clock", "synchronized" if known else "steady")


def check_access(directory: DirectoryFacts) -> Finding:
    name = _about("access", directory)
    if directory.is_read_only:
        return _fail(name, "mounted read-only", "mount it for writing or choose another --data")
    if not directory.is_writable:
        return _fail(name, "not writable for this user", "change its owner or choose another")
    return _ok(name, "writable" if directory.exists else "will be made on the first start")


def check_file_system(directory: DirectoryFacts) -> Finding:
    name, kind = _about("file system", directory), directory.file_system
    if kind is None:
        return _ok(name, "not told by this system")
    if file_systems.is_good(kind):
        return _ok(name, kind)
    if file_systems.is_shared(kind):
        return _fail(name, f"{kind}, shared or remote", file_systems.SHARED_ADVICE)
    if file_systems.is_lost_at_restart(kind):
        return _warn(
            name,
            f"{kind}, gone after a restart of the machine or container",
            "fine for tests; for data that matters use a disk with ext4 or xfs",
        )
    return _warn(name, kind, "works, but ext4 and xfs are what Kafka's promises are tested on")


def check_space(directory: DirectoryFacts) -> Finding:
    name, free, total = _about("disk space", directory), directory.free_bytes, directory.total_bytes
    share = free / total if total else 1.0
    found = f"{size_text(free)} free of {size_text(total)} ({share:.0%})"
    if free < _FREE_NEEDED or share < 0.02:
        return _fail(name, found, "make room, or lower retention.ms and retention.bytes")
    if share < 0.10:
        return _warn(name, found, "producers are refused when it is full; plan for more")
    return _ok(name, found)


def check_inodes(directory: DirectoryFacts) -> Finding:
    """A segment is three files and more."""
    name, free, total = _about("inodes", directory), directory.free_inodes, directory.total_inodes
    if not total:
        return _ok(name, "without a limit")
    share = free / total
    found = f"{_count(free)} free of {_count(total)} ({share:.0%})"
    advice = "no files can be made without; delete small files or use larger segments"
    if share < 0.01:
        return _fail(name, found, advice)
    return _warn(name, found, advice) if share < 0.05 else _ok(name, found)


def check_devices(directories: Iterable[DirectoryFacts]) -> Iterator[Finding]:
    """Several log directories are for several disks."""
    by_device: dict[int, list[str]] = {}
    for directory in directories:
        by_device.setdefault(directory.device, []).append(directory.path)
    for paths in by_device.values():
        if len(paths) > 1:
            yield _warn(
                "log directories",
                f"{', '.join(paths)} are on one device",
                "give each disk one directory: a failing disk then takes only its own partitions",
            )


def check_topics(cluster: ClusterFacts) -> Finding:
    """A few large topics work better than many small ones."""
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
        "look into the broker's log for the disk's error, repair the disk and restart",
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
