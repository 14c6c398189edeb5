"""The type of file system of a path, by this machine's table of mounts."""

import os


def file_system(path: str) -> str | None:
    """The type of the file system of a path that exists or could be created; None if unknown."""
    return file_system_of(os.path.realpath(path), read_mounts())


def read_mounts() -> str:
    """The table of mounts; empty on a system without one."""
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""


def file_system_of(path: str, mounts: str) -> str | None:
    """The type of the file system of a path, by the longest mount point above it.

    The later of two mounts on one point wins.
    """
    best, kind = -1, None
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = fields[1].encode().decode("unicode_escape")  # A blank is written as \040.
        prefix = point.rstrip("/") + "/"
        if (path + "/").startswith(prefix) and len(prefix) >= best:
            best, kind = len(prefix), fields[2]
    return kind
