"""Which file systems keep what a broker promises: asked by `headrace doctor` and at each start.

Kafka is at home on ext4 and xfs. What is shared over a network breaks its promises: there renames
and fsync do not keep their word, and deleting an open file fails.
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
    """Whether Kafka's promises are tested on it."""
    return kind in _GOOD


def is_shared(kind: str) -> bool:
    """Whether other machines, or another program, have a hand in it."""
    return kind in _SHARED or kind.startswith("fuse.")


def is_lost_at_restart(kind: str) -> bool:
    """Whether it goes with the machine or the container."""
    return kind in _LOST
