"""Mount tables of other machines, and that of this machine."""

import pytest

from headrace.runtime.mounts import file_system, file_system_of

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


def test_the_file_system_of_the_root_is_found() -> None:
    assert file_system("/") == file_system("/no such directory yet")
