"""A home for Spark of our own making: without the zip of PySpark, and always at the same place.

Spark puts `python/lib/pyspark.zip` of its home before all else on the path of every Python process
that it starts. What is imported from a zip is compiled each time: 0.6 s of a processor for each
streaming query, whose source is a process of its own, and as much for each kind of planning in a
session. On this machine these processes run the Python that runs the driver, which has the same
PySpark installed, with its modules compiled. So a driver gets a home of links to everything but
that zip, and Python finds the installed package behind it. Another Python than the driver's, which
may have none, finds the zip by PYTHONPATH.

It stays where it is between sessions, as archives of classes are bound to the paths of their jars
(`headrace.spark.class_archive`).
"""

import hashlib
import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

_log = logging.getLogger(__name__)

_LEFT_OUT = {"python", "__pycache__"}
"""The folder whose zips shadow the installed modules, and what is of no use to a JVM."""
_HOME = "SPARK_HOME"


@contextmanager
def compiled_modules() -> Iterator[Path | None]:
    """Let a JVM that is started meanwhile give its Python processes the installed PySpark.

    A home that the user has chosen stays: its PySpark may be another one than is installed here.
    """
    home = own_home()
    if _HOME in os.environ or home is None:
        yield None
        return
    os.environ[_HOME] = str(home)
    try:
        yield home
    finally:
        del os.environ[_HOME]


def pyspark_zips() -> list[Path]:
    """The zips that our home lacks, for a Python that may have no PySpark of its own."""
    installed = _installed()
    return [] if installed is None else sorted((installed / "python" / "lib").glob("*.zip"))


def own_home() -> Path | None:
    """The home for the PySpark that is installed here; None if that is not a whole Spark."""
    installed = _installed()
    if installed is None:
        return None
    try:
        return linked_home(installed)
    except (OSError, RuntimeError) as error:  # RuntimeError: a user who has no home.
        _log.warning("Spark starts slowly: there is no cache (%s); set XDG_CACHE_HOME", error)
        return None


def _installed() -> Path | None:
    """Where the PySpark is that is installed here; None if that is not a whole Spark."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    installed = Path(spec.origin).resolve().parent
    return installed if (installed / "jars").is_dir() else None


def linked_home(installed: Path) -> Path:
    """The home of an installed PySpark, made unless it is there."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headrace"
    home = cache / f"spark-{hashlib.sha256(str(installed).encode()).hexdigest()[:16]}"
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    for target in installed.iterdir():
        place = home / target.name
        if target.is_dir() and target.name not in _LEFT_OUT and not place.exists():
            _link(place, target)
    return home


def _link(place: Path, target: Path) -> None:
    """Make a link whoever else is making it, also in the place of one whose target has gone."""
    with tempfile.TemporaryDirectory(dir=place.parent) as aside:
        made = Path(aside) / place.name
        made.symlink_to(target)
        made.replace(place)
