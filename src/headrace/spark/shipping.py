"""Headrace itself, brought to where Spark runs Python: executors, and a Spark Connect server.

Workers need a Python with the packages of `headrace[spark]` (`headrace spark doctor` lists them),
but not headrace: it is sent as a zip, so that a cluster runs the driver's version.

Sources are registered with each session. Those that Spark finds by itself are bound to the Python
of the driver and to no zip, and executors would have to have both; registered ones run in the
workers' Python and bring the zip along.
"""

import atexit
import hashlib
import io
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.spark.arriving import PACKAGES
from headrace.spark.carrying import carried, carry
from headrace.spark.connect import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOT_SENT = frozenset(
    {
        *("broker", "capture", "cli", "controller", "coordination", "groups", "http", "metadata"),
        *("raft", "registry", "rest", "serving", "shares", "storage", "testing", "transactions"),
    }
)
"""Parts of headrace that nothing in Spark's processes uses."""

_DIGEST_LENGTH = 16


def packed() -> Path:
    """The zip of headrace, for as long as this process lives: executors fetch it when they come."""
    place = Path(tempfile.mkdtemp(prefix="headrace-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return package_zip(place)


@contextmanager
def on_path_of_children(*archives: Path) -> Iterator[None]:
    """Let a JVM that is started meanwhile give these zips to the processes of streaming sources.

    They run beside the driver, in the workers' Python, and Spark gives them none of the files that
    all others get.
    """
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([*map(str, archives), *([before] if before else [])])
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def ship(spark: "SparkSession", archive: Path) -> None:
    """Let the session's executors, and its server if that is elsewhere, import headrace.

    What a client adds to a server's session reaches batch queries and what batch functions start.
    What goes elsewhere brings headrace along by itself.
    """
    from headrace.spark.source.source import DefaultSource
    from headrace.spark.tables.source import TableSource

    if is_connect(spark):
        carry(archive.name, archive.read_bytes())
        spark.addArtifact(str(archive), pyfile=True)
    else:
        spark.sparkContext.addPyFile(str(archive))
    for source in (DefaultSource, TableSource):
        spark.dataSource.register(carried(source))


def package_zip(directory: Path) -> Path:
    """A zip of the packages as they are installed here, with a name that tells its content."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in sorted(_files()):
            archive.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)
    content = buffer.getvalue()
    digest = hashlib.sha256(content).hexdigest()[:_DIGEST_LENGTH]
    target = directory / f"headrace-{digest}.zip"
    target.write_bytes(content)
    return target


def digest_named(name: str) -> str | None:
    """What the name of such a zip says of its content; None for any other name."""
    found = re.fullmatch(rf"headrace-([0-9a-f]{{{_DIGEST_LENGTH}}})\.zip", name)
    return None if found is None else found[1]


def _files() -> Iterator[tuple[str, Path]]:
    for package in PACKAGES:
        spec = find_spec(package)
        assert spec is not None, f"{package} is a part of headrace"
        assert spec.origin is not None, f"{package} has an __init__.py"
        root = Path(spec.origin).parent
        for path in root.rglob("*"):
            inside = path.relative_to(root)
            is_sent = inside.parts[0] not in NOT_SENT and "__pycache__" not in inside.parts
            if is_sent and path.is_file():
                yield f"{package}/{inside.as_posix()}", path
