"""A PostgreSQL server for tests, where the machine has the program."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

START_S = 60


def programs() -> Path | None:
    """The folder of initdb and pg_ctl; Debian keeps them off the path."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    return next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)


@contextmanager
def running(bin_folder: Path) -> Iterator[str]:
    """A new server that listens on a socket in its folder only; its URL."""
    # Not pytest's own folder, which the user of the server may not enter.
    with tempfile.TemporaryDirectory(prefix="headrace-postgres-") as folder:
        user = _as_user(folder)
        data = f"{folder}/data"
        options = f"-c listen_addresses='' -c fsync=off -k {folder}"
        control = [*user, str(bin_folder / "pg_ctl"), "-D", data, "-w", "-t", str(START_S)]
        make = [*user, str(bin_folder / "initdb"), "-D", data, "-U", "headrace", "-A", "trust"]
        subprocess.run(make, check=True, capture_output=True, cwd=folder)
        start = [*control, "-o", options, "-l", f"{folder}/log", "start"]
        subprocess.run(start, check=True, stdout=subprocess.DEVNULL, cwd=folder)
        try:
            yield f"postgresql://headrace@/postgres?host={folder}"
        finally:
            stop = [*control, "-m", "fast", "stop"]
            subprocess.run(stop, check=True, stdout=subprocess.DEVNULL, cwd=folder)


def _as_user(folder: str) -> list[str]:
    """PostgreSQL refuses to run as root, so root becomes someone else."""
    if os.getuid() != 0:
        return []
    other = pwd.getpwnam("postgres")
    os.chown(folder, other.pw_uid, other.pw_gid)
    return ["setpriv", f"--reuid={other.pw_uid}", f"--regid={other.pw_gid}", "--clear-groups"]
