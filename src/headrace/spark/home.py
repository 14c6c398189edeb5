"""A home for Spark that has no zip of PySpark, so that Python processes load it compiled.

Spark puts `python/lib/pyspark.zip` of its home before all else on the path of every Python process
that it starts. What is imported from a zip is compiled each time: 0.6 s of a processor for each
streaming query, whose source is a process of its own, and as much for each kind of planning in a
session. On this machine these processes run the Python that runs the driver, which has the same
PySpark installed, with its modules compiled. So a local session gets a home of links to everything
but that zip, and Python finds the installed package behind it.
"""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

_ZIPPED = "python"
"""The folder of Spark's home whose zips shadow the installed modules."""
_HOME = "SPARK_HOME"


@contextmanager
def compiled_modules() -> Iterator[None]:
    """Let a JVM that is started meanwhile give its Python processes the installed PySpark.

    A home that the user has chosen stays: its PySpark may be another one than is installed here.
    """
    installed = _installed()
    if _HOME in os.environ or installed is None:
        yield
        return
    os.environ[_HOME] = str(linked_home(installed))
    try:
        yield
    finally:
        del os.environ[_HOME]


def linked_home(installed: Path) -> Path:
    """The home, for as long as this process lives: the JVM loads from it when it needs to."""
    home = Path(tempfile.mkdtemp(prefix="headrace-spark-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    for entry in installed.iterdir():
        if entry.is_dir() and entry.name != _ZIPPED:
            (home / entry.name).symlink_to(entry)
    return home


def _installed() -> Path | None:
    """Where PySpark is installed, if Spark itself lies in it, as pip installs it."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    place = Path(spec.origin).parent
    return place if (place / "jars").is_dir() else None
