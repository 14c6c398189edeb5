"""Which kind of file system holds a path, by this machine's table of mounts."""

import os


def file_system(path: str) -> str | None:
    """The kind of the file system where a path is, or would be made; None if nobody tells."""
    return file_system_of(os.path.realpath(path), read_mounts())


def read_mounts() -> str:
    """The table of mounts; empty on a system that has none to show."""
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""


def file_system_of(path: str, mounts: str) -> str | None:
    """The kind of the file system that holds a path, by the longest mount point above it.

    Of two mounts on one point the later lies on top.
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
