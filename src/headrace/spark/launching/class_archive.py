"""An archive of Spark's classes for the JVM of the driver (class data sharing).

Half of the cost of a session's start is loading some fifteen thousand classes. A JVM can write them
to an archive when it ends, and map that at the next start. An archive belongs to one Java and to
the paths, sizes and times of the jars; other JVMs ignore it and load the classes as usual. The
cache has an archive for each of the user's virtual environments, so that one does not remove the
archive of another.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from shlex import quote  # Spark and Java split options at blanks and support quotes.

from headrace.errors import HeadraceError
from headrace.runtime.installation import pip_command
from headrace.spark.java import JavaMissing, locate_java

DRIVER_OPTIONS = "spark.driver.extraJavaOptions"

_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
"""A JVM that rejects an archive works without it, so the warning is of no use."""
_WRITER = "headrace.spark.archive_writer"
_WRITING_S_MAX = 300.0
_UNUSED_S_MAX = 30 * 86_400.0
_ARCHIVES_MAX = 5
"""Archives of one user; each is about 200 MB."""


class NotArchived(HeadraceError):
    """The archive could not be written; the message has the reason."""


def java_options() -> str:
    """Return the options by which a JVM uses the archive; empty without one."""
    try:
        archive = archive_path()
    except (JavaMissing, OSError, RuntimeError):  # RuntimeError: the user has no home directory.
        return ""
    if archive is None or not archive.exists():
        return ""
    with suppress(OSError):  # In a read-only cache nothing is removed either.
        os.utime(archive)  # The time of the last use.
    return f"{quote(f'-XX:SharedArchiveFile={archive}')} {_QUIET}"


def archive_path() -> Path | None:
    """Return the path for the installed Spark and Java; None without an installed Spark."""
    jars = _installed_jars()
    if jars is None:
        return None
    java = locate_java(os.environ).resolve()
    identity = f"{java} {java.stat().st_mtime_ns} {jars} {jars.stat().st_mtime_ns}"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headrace"
    return cache / f"classes-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.jsa"


def _installed_jars() -> Path | None:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    jars = Path(spec.origin).resolve().parent / "jars"
    return jars if jars.is_dir() else None


def make_archive(*, again: bool) -> Path:
    """Write the archive by a run of Spark, and remove archives that are no longer used."""
    archive, jars = archive_path(), _installed_jars()
    if archive is None or jars is None:
        raise NotArchived(f"PySpark is not installed: {pip_command('spark')}")
    folder = archive.parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(folder):
        if archive.exists() and not again:
            return archive
        # A JVM that uses an archive does not write one, so the old one is removed first.
        archive.unlink(missing_ok=True)
        aside = folder / "making"
        shutil.rmtree(aside, ignore_errors=True)  # Left by a run that was killed.
        aside.mkdir()
        _write(aside / archive.name, aside)
        (aside / archive.name).replace(archive)
        shutil.rmtree(aside)
        _jars_link(archive).unlink(missing_ok=True)
        _jars_link(archive).symlink_to(jars)
        _remove_others(archive)
    return archive


def _remove_others(archive: Path) -> None:
    """Remove archives without jars, unused ones, and the least recently used above the limit."""
    used_s = {one: one.stat().st_mtime for one in archive.parent.glob("classes-*.jsa")}
    del used_s[archive]
    oldest_s = time.time() - _UNUSED_S_MAX
    kept = 1
    for other in sorted(used_s, key=lambda one: used_s[one], reverse=True):
        if used_s[other] < oldest_s or kept == _ARCHIVES_MAX or _has_lost_its_jars(other):
            other.unlink()
            _jars_link(other).unlink(missing_ok=True)
        else:
            kept += 1


def _jars_link(archive: Path) -> Path:
    """Return the path of the link from an archive to its jars; earlier versions made no link."""
    return archive.with_suffix(".jars")


def _has_lost_its_jars(archive: Path) -> bool:
    link = _jars_link(archive)
    return link.is_symlink() and not link.exists()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Let one process write at a time; the others then find its archive."""
    with (folder / "making.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _write(archive: Path, directory: Path) -> None:
    """Run Spark in another process, whose JVM writes the archive when it ends."""
    command = [sys.executable, "-m", _WRITER, str(archive), str(directory)]
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, timeout=_WRITING_S_MAX, check=False
        )
    except subprocess.TimeoutExpired:
        raise NotArchived(
            f"Spark's classes were not archived: a session did not end in {_WRITING_S_MAX:.0f} s;"
            " try again when the machine is less busy"
        ) from None
    if result.returncode != 0 or not archive.exists():
        raise NotArchived(f"Spark's classes were not archived: {result.stderr[-2000:]}")
