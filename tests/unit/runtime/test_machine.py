"""Facts of the machine that the tests run on, and of mount tables from elsewhere."""

from pathlib import Path

import pytest

from headrace.runtime.machine import file_system_of, probe_directory, probe_machine

MOUNTS = """\
proc /proc proc rw 0 0
/dev/sda1 / ext4 rw,relatime 0 0
tmpfs /data tmpfs rw 0 0
/dev/sdb1 /data xfs rw 0 0
server:/export /mnt/with\\040blank nfs4 rw 0 0
short line
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/home/x", "ext4"),
        ("/data", "xfs"),
        ("/data/logs", "xfs"),
        ("/database", "ext4"),
        ("/mnt/with blank/logs", "nfs4"),
    ],
)
def test_the_longest_and_last_mount_above_a_path_counts(path: str, kind: str) -> None:
    assert file_system_of(path, MOUNTS) == kind


def test_without_a_mount_table_the_kind_is_unknown() -> None:
    assert file_system_of("/data", "") is None


def test_this_machine_has_facts(tmp_path: Path) -> None:
    facts = probe_machine([str(tmp_path)])
    assert facts.python >= (3, 11, 0)
    assert facts.open_files_hard >= facts.open_files_soft > 0
    assert facts.now_ms > 1_700_000_000_000
    assert facts.clock_jump_ms < 10_000
    assert facts.directories[0].exists


def test_a_directory_that_is_not_there_yet_has_the_facts_of_its_parent(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for missing in (tmp_path / "a" / "b", tmp_path / "file" / "b"):
        facts = probe_directory(str(missing), MOUNTS)
        assert not facts.exists
        assert facts.is_writable
        assert facts.device == tmp_path.stat().st_dev
