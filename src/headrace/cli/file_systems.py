"""Suitability of file systems for a broker, checked by `headrace doctor` and at each start.

Kafka is tested on ext4 and xfs. Network file systems break its guarantees: renames and fsync are
unreliable there, and deleting an open file fails.
"""

_GOOD = frozenset({"ext4", "xfs"})
_LOST = frozenset({"tmpfs", "ramfs", "overlay", "aufs"})
_SHARED = frozenset(
    {
        "nfs", "nfs3", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "drvfs", "fuseblk",
        "gfs2", "glusterfs", "lustre", "ncpfs", "ocfs2", "vboxsf", "virtiofs", "vmhgfs",
    }
)  # fmt: skip

SHARED_ADVICE = "records may be lost here: use a local disk with ext4 or xfs"


def is_good(kind: str) -> bool:
    """Return whether Kafka's guarantees are tested on this kind."""
    return kind in _GOOD


def is_shared(kind: str) -> bool:
    """Return whether other machines or programs also manage the files."""
    return kind in _SHARED or kind.startswith("fuse.")


def is_lost_at_restart(kind: str) -> bool:
    """Return whether the files are lost with the machine or the container."""
    return kind in _LOST
