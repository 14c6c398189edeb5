"""Judgements over made-up machines."""

import sys
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from headrace.cli import doctor_checks as doctor
from headrace.cli.doctor_checks import ClusterFacts, Finding, TopicFacts, Verdict
from headrace.runtime.machine import DirectoryFacts, MachineFacts

GOOD_DIRECTORY = DirectoryFacts(
    path="/data",
    exists=True,
    is_writable=True,
    file_system="xfs",
    is_read_only=False,
    device=1,
    total_bytes=1 << 40,
    free_bytes=1 << 39,
    total_inodes=1_000_000,
    free_inodes=900_000,
)
GOOD_MACHINE = MachineFacts(
    python=(3, 11, 4),
    has_bytecode=True,
    system="Linux 6",
    cpu_count=4,
    open_files_soft=200_000,
    open_files_hard=sys.maxsize,
    receive_buffer_max=4 << 20,
    send_buffer_max=4 << 20,
    listen_backlog_max=4096,
    memory_bytes=16 << 30,
    memory_available_bytes=8 << 30,
    swap_bytes=0,
    swappiness=60,
    now_ms=1_800_000_000_000,
    clock_is_synchronized=True,
    clock_jump_ms=0.01,
    directories=(GOOD_DIRECTORY,),
)


def machine(**facts: Any) -> MachineFacts:
    return msgspec.structs.replace(GOOD_MACHINE, **facts)


def directory(**facts: Any) -> DirectoryFacts:
    return msgspec.structs.replace(GOOD_DIRECTORY, **facts)


def test_a_good_machine_has_nothing_to_change() -> None:
    findings = doctor.examine(GOOD_MACHINE)
    assert [finding for finding in findings if finding.verdict is not Verdict.OK] == []
    assert not doctor.has_failed(findings)


def test_a_machine_without_any_readings_passes() -> None:
    silent = machine(
        receive_buffer_max=None,
        send_buffer_max=None,
        listen_backlog_max=None,
        memory_bytes=None,
        memory_available_bytes=None,
        swap_bytes=None,
        swappiness=None,
        clock_is_synchronized=None,
        directories=(directory(file_system=None, total_inodes=0),),
    )
    assert not doctor.has_failed(doctor.examine(silent))


@pytest.mark.parametrize(
    ("check", "facts", "verdict", "advice"),
    [
        (doctor.check_python, {"python": (3, 10, 0)}, Verdict.FAIL, "3.11"),
        (doctor.check_python, {"has_bytecode": False}, Verdict.WARNING, "PYTHONDONTWRITE"),
        (doctor.check_open_files, {"open_files_soft": 1024}, Verdict.WARNING, "ulimit -n 128000"),
        (
            doctor.check_open_files,
            {"open_files_soft": 1024, "open_files_hard": 4096},
            Verdict.WARNING,
            "limits.conf",
        ),
        (doctor.check_open_files, {"open_files_soft": 256}, Verdict.FAIL, "LimitNOFILE=128000"),
        (
            doctor.check_socket_buffers,
            {"receive_buffer_max": 212_992},
            Verdict.WARNING,
            "net.core.rmem_max",
        ),
        (doctor.check_backlog, {"listen_backlog_max": 64}, Verdict.WARNING, "somaxconn"),
        (
            doctor.check_memory,
            {"memory_available_bytes": 100 << 20},
            Verdict.WARNING,
            "page cache",
        ),
        (doctor.check_swap, {"swap_bytes": 1 << 30}, Verdict.WARNING, "vm.swappiness=1"),
        (doctor.check_clock, {"now_ms": 0}, Verdict.FAIL, "set the clock"),
        (doctor.check_clock, {"clock_jump_ms": 900.0}, Verdict.WARNING, "slew"),
        (doctor.check_clock, {"clock_is_synchronized": False}, Verdict.WARNING, "chrony"),
    ],
)
def test_problems_of_a_machine_are_reported_with_advice(
    check: Callable[[MachineFacts], Finding], facts: dict[str, Any], verdict: Verdict, advice: str
) -> None:
    """OPS-6: descriptors and socket buffers among others."""
    finding = check(machine(**facts))
    assert finding.verdict is verdict
    assert advice in finding.advice


@pytest.mark.parametrize(
    ("check", "facts", "verdict", "advice"),
    [
        (doctor.check_access, {"is_read_only": True}, Verdict.FAIL, "mount it writable"),
        (doctor.check_access, {"is_writable": False}, Verdict.FAIL, "owner"),
        (doctor.check_file_system, {"file_system": "nfs4"}, Verdict.FAIL, "local disk"),
        (doctor.check_file_system, {"file_system": "cifs"}, Verdict.FAIL, "local disk"),
        (doctor.check_file_system, {"file_system": "fuse.sshfs"}, Verdict.FAIL, "local disk"),
        (doctor.check_file_system, {"file_system": "tmpfs"}, Verdict.WARNING, "for tests"),
        (doctor.check_file_system, {"file_system": "overlay"}, Verdict.WARNING, "for tests"),
        (doctor.check_file_system, {"file_system": "btrfs"}, Verdict.WARNING, "ext4 and xfs"),
        (doctor.check_space, {"free_bytes": 1 << 20}, Verdict.FAIL, "retention"),
        (doctor.check_space, {"free_bytes": 1 << 36}, Verdict.WARNING, "plan for more"),
        (doctor.check_inodes, {"free_inodes": 10}, Verdict.FAIL, "larger segments"),
        (doctor.check_inodes, {"free_inodes": 40_000}, Verdict.WARNING, "larger segments"),
    ],
)
def test_problems_of_a_directory_are_reported_with_advice(
    check: Callable[[DirectoryFacts], Finding],
    facts: dict[str, Any],
    verdict: Verdict,
    advice: str,
) -> None:
    """OPS-6: ext4 and xfs yes, NFS and other shared mounts no."""
    finding = check(directory(**facts))
    assert finding.verdict is verdict
    assert advice in finding.advice
    assert "/data" in finding.check


def test_two_directories_on_one_disk_are_a_finding() -> None:
    both = (directory(path="/a"), directory(path="/b"), directory(path="/c", device=2))
    (finding,) = doctor.check_devices(both)
    assert finding.found == "/a, /b are on one device"


def test_a_directory_that_does_not_exist_yet_is_fine() -> None:
    assert doctor.check_access(directory(exists=False)).verdict is Verdict.OK


def topics(count: int, size_bytes: int, partitions: int = 1) -> tuple[TopicFacts, ...]:
    return tuple(TopicFacts(f"t{number}", partitions, size_bytes) for number in range(count))


def test_many_small_topics_are_a_warning() -> None:
    """OPS-3: few large topics work better than many small."""
    finding = doctor.check_topics(ClusterFacts(1, topics(500, 1000)))
    assert finding.verdict is Verdict.WARNING
    assert "into one topic" in finding.advice


@pytest.mark.parametrize("found", [topics(20, 1000), topics(500, 1 << 30)])
def test_few_or_large_topics_are_fine(found: tuple[TopicFacts, ...]) -> None:
    assert doctor.check_topics(ClusterFacts(1, found)).verdict is Verdict.OK


def test_kafkas_own_topics_do_not_count() -> None:
    own = tuple(TopicFacts(f"__internal-{number}", 1, 0) for number in range(500))
    assert doctor.check_topics(ClusterFacts(1, own)).verdict is Verdict.OK


def test_too_many_partitions_per_broker_are_a_warning() -> None:
    cluster = ClusterFacts(2, topics(10, 1 << 30, partitions=1000))
    assert doctor.check_partitions(cluster).verdict is Verdict.WARNING
    assert doctor.check_partitions(ClusterFacts(3, cluster.topics)).verdict is Verdict.OK


def test_an_offline_directory_fails() -> None:
    findings = doctor.examine_cluster(ClusterFacts(1, (), ("/data of broker 1",)))
    assert doctor.has_failed(findings)
